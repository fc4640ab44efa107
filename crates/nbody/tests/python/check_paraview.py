"""Opens a run with ParaView.   usage: pvpython --force-offscreen-rendering check_paraview.py RUN.hdf.series N STEPS"""

import json
import sys

from paraview import servermanager
from paraview.simple import GetParaViewVersion, OpenDataFile

COMPONENTS = {"velocity": 3, "mass": 1, "id": 1, "potential": 1, "acceleration": 3}

path, n, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(path) as index:
    expected = [entry["time"] for entry in json.load(index)["files"]]
reader = OpenDataFile(path)
assert reader is not None, "no reader of ParaView took the file"
reader.UpdatePipelineInformation()
times = list(reader.TimestepValues) if steps > 1 else expected
assert len(times) == steps and times == expected, (times, expected)
first = []
for time in times:
    reader.UpdatePipeline(time)
    grid = servermanager.Fetch(reader)
    assert (grid.GetNumberOfPoints(), grid.GetNumberOfCells()) == (n, n)
    data = grid.GetPointData()
    found = {data.GetArrayName(i): data.GetArray(i).GetNumberOfComponents() for i in range(data.GetNumberOfArrays())}
    assert found.items() >= COMPONENTS.items(), found
    first.append(tuple(grid.GetPoint(0)))
assert steps == 1 or len(set(first)) > 1, f"the first particle rests at {first[0]}: one file was read for all times"
print(f"ok ParaView {GetParaViewVersion()}: {steps} snapshots of {n} points and cells at {times}")
