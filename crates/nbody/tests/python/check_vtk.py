"""Opens every snapshot of a run with VTK's reader.   usage: check_vtk.py RUN.hdf.series N STEPS"""

import json
import sys
from pathlib import Path

from vtkmodules.vtkCommonCore import vtkVersion
from vtkmodules.vtkIOHDF import vtkHDFReader

COMPONENTS = {"velocity": 3, "mass": 1, "id": 1, "potential": 1, "acceleration": 3}

index, n, steps = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
files = json.loads(index.read_text())["files"]
assert len(files) == steps, files
for entry in files:
    name = str(index.parent / entry["name"])
    reader = vtkHDFReader()
    reader.SetFileName(name)
    assert reader.CanReadFile(name), f"{name} is not taken for VTKHDF"
    reader.Update()
    grid = reader.GetOutputDataObject(0)
    assert grid.GetClassName() == "vtkUnstructuredGrid", grid.GetClassName()
    assert (grid.GetNumberOfPoints(), grid.GetNumberOfCells()) == (n, n)
    # One vertex a particle, in order.
    assert all(grid.GetCellType(i) == 1 and grid.GetCell(i).GetPointId(0) == i for i in (0, n // 2, n - 1))
    data = grid.GetPointData()
    found = {data.GetArrayName(i): data.GetArray(i).GetNumberOfComponents() for i in range(data.GetNumberOfArrays())}
    assert found.items() >= COMPONENTS.items(), found
    assert all(data.GetArray(i).GetNumberOfTuples() == n for i in range(data.GetNumberOfArrays()))
    ids = data.GetArray("id")
    assert all(ids.GetTuple1(i) < ids.GetTuple1(i + 1) for i in range(n - 1))
    assert grid.GetFieldData().GetArray("time").GetTuple1(0) == entry["time"]
print(f"ok VTK {vtkVersion.GetVTKVersion()}: {steps} snapshots of {n} points and cells, arrays {sorted(found)}")
