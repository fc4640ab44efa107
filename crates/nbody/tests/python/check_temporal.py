"""Opens a temporal VTKHDF file.   usage: check_temporal.py RUN.vtkhdf RUN.hdf.series"""

import json
import os
import sys

import numpy as np
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonCore import vtkVersion
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline as Pipeline
from vtkmodules.vtkIOHDF import vtkHDFReader

path, index = sys.argv[1:]
with open(index) as f:
    entries = json.load(f)["files"]
reader = vtkHDFReader()
assert reader.CanReadFile(path)
reader.SetFileName(path)
reader.UpdateInformation()
times = list(reader.GetOutputInformation(0).Get(Pipeline.TIME_STEPS()))
assert times == [e["time"] for e in entries], times


def arrays(grid):
    data = grid.GetPointData()
    found = {data.GetArrayName(i): vtk_to_numpy(data.GetArray(i)) for i in range(data.GetNumberOfArrays())}
    return {"position": vtk_to_numpy(grid.GetPoints().GetData())} | found


for entry in entries:
    reader.UpdateTimeStep(entry["time"])
    grid = reader.GetOutputDataObject(0)
    assert grid.GetClassName() == "vtkPolyData", grid.GetClassName()
    # The snapshot itself, opened by the same reader.
    single = vtkHDFReader()
    single.SetFileName(os.path.join(os.path.dirname(index), entry["name"]))
    single.Update()
    mine, own = arrays(grid), arrays(single.GetOutputDataObject(0))
    n = len(own["position"])
    assert grid.GetNumberOfPoints() == grid.GetNumberOfVerts() == grid.GetNumberOfCells() == n
    assert set(mine) >= set(own) and len(own) >= 6, (list(mine), list(own))
    for name in own:
        assert (mine[name] == own[name]).all(), (entry, name)
    cells = grid.GetVerts()
    assert (vtk_to_numpy(cells.GetConnectivityArray()) == np.arange(n)).all()
print(f"ok VTK {vtkVersion.GetVTKVersion()}: {len(times)} steps of {n} particles at {times}")
