"""Opens a file of fields on blocks with VTK's reader, and compares it with the table of the same fields.

usage: check_amr.py GRID.hdf GRID.csv"""

import csv
import sys

from vtkmodules.vtkCommonCore import vtkVersion
from vtkmodules.vtkIOHDF import vtkHDFReader

name, table = sys.argv[1], sys.argv[2]
reader = vtkHDFReader()
reader.SetFileName(name)
assert reader.CanReadFile(name), f"{name} is not taken for VTKHDF"
reader.Update()
amr = reader.GetOutputDataObject(0)
assert amr.GetClassName() == "vtkOverlappingAMR", amr.GetClassName()


def blocks(level):
    count = amr.GetNumberOfBlocks(level) if hasattr(amr, "GetNumberOfBlocks") and vtkVersion.GetVTKMinorVersion() > 5 else None
    count = amr.GetNumberOfDataSets(level) if count is None else count
    get = getattr(amr, "GetDataSetAsImageData", None) or amr.GetDataSet
    return [get(level, i) for i in range(count)]


# The fields of every cell that no finer block covers, by its center.
found, hidden = {}, 0
for level in range(amr.GetNumberOfLevels()):
    for grid in blocks(level):
        data = grid.GetCellData()
        ghosts = data.GetArray("vtkGhostType")
        arrays = [data.GetArray(n) for n in ("vorticity", "stream", "velocity")]
        assert all(a.GetNumberOfComponents() == 3 and a.GetNumberOfTuples() == 4096 for a in arrays)
        (x, y, z), (h, _, _) = grid.GetOrigin(), grid.GetSpacing()
        for c in range(4096):
            if ghosts and ghosts.GetValue(c) & 8:
                hidden += 1
                continue
            i, j, k = c % 16, c // 16 % 16, c // 256
            center = tuple(round(o + (n + 0.5) * h, 9) for o, n in ((x, i), (y, j), (z, k)))
            found[center] = [v for a in arrays for v in a.GetTuple(c)]

rows = list(csv.DictReader(open(table)))
assert list(rows[0]) == ["x", "y", "z", "h"] + [f"{f}_{a}" for f in ("vorticity", "stream", "velocity") for a in "xyz"]
assert len(rows) == len(found), (len(rows), len(found), hidden)
for row in rows:
    values = [float(v) for v in row.values()]
    there = found[tuple(round(v, 9) for v in values[:3])]
    assert all(abs(a - b) <= 1e-6 * abs(b) + 1e-30 for a, b in zip(there, values[4:])), (row, there)
print(f"ok VTK {vtkVersion.GetVTKVersion()}: {len(found)} cells, {hidden} below finer ones")
