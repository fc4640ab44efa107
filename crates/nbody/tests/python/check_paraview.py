"""Opens a run with ParaView.

usage: pvpython --force-offscreen-rendering check_paraview.py RUN.hdf.series N STEPS [RUN.vtkhdf]
"""

import json
import sys

from paraview import servermanager
from paraview.simple import GetParaViewVersion, OpenDataFile
from vtkmodules.util.numpy_support import vtk_to_numpy

COMPONENTS = {"velocity": 3, "mass": 1, "id": 1, "potential": 1, "acceleration": 3}

path, n, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
temporal = sys.argv[4] if len(sys.argv) > 4 else None
with open(path) as index:
    expected = [entry["time"] for entry in json.load(index)["files"]]


def opened(path):
    """A reader of the file, whose times are those of the run."""
    reader = OpenDataFile(path)
    assert reader is not None, f"no reader of ParaView took {path}"
    reader.UpdatePipelineInformation()
    times = list(reader.TimestepValues) if steps > 1 else expected
    assert len(times) == steps and times == expected, (times, expected)
    return reader


def arrays(reader, time):
    """Points and point data at a time, by name."""
    reader.UpdatePipeline(time)
    grid = servermanager.Fetch(reader)
    assert (grid.GetNumberOfPoints(), grid.GetNumberOfCells()) == (n, n)
    data = grid.GetPointData()
    found = {data.GetArrayName(i): vtk_to_numpy(data.GetArray(i)) for i in range(data.GetNumberOfArrays())}
    components = {name: values.reshape(n, -1).shape[1] for name, values in found.items()}
    assert components.items() >= COMPONENTS.items(), components
    return {"position": vtk_to_numpy(grid.GetPoints().GetData())} | found


run = opened(path)
snapshots = [{name: values.copy() for name, values in arrays(run, time).items()} for time in expected]
first = {tuple(snapshot["position"][0]) for snapshot in snapshots}
assert steps == 1 or len(first) > 1, f"the first particle rests at {first}: one file was read for all times"
version = GetParaViewVersion()
done = f"{steps} snapshots of {n} points and cells at {expected}"
if temporal is not None and (version.major, version.minor) < (5, 12):
    try:
        refused = OpenDataFile(temporal) is None
    except RuntimeError as error:
        refused = "No reader found" in str(error)
    assert refused, f"ParaView {version} takes {temporal}: compare it as newer versions do"
    done += "; no reader of temporal VTKHDF before 5.12"
elif temporal is not None:
    reader = opened(temporal)
    for time, snapshot in zip(expected, snapshots):
        found = arrays(reader, time)
        for name, values in snapshot.items():
            assert (found[name] == values).all(), (time, name)
    done += ", the same in the temporal file"
print(f"ok ParaView {version}: {done}")
