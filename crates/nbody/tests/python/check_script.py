"""Runs a script of `nbody paraview` with a module that stands for paraview.simple.   usage: check_script.py SCRIPT grid|particles

Prints the calls. scripts/check-paraview runs the script in ParaView itself.
"""

import os
import runpy
import sys
import types
from unittest.mock import MagicMock

script, kind = sys.argv[1:]
simple = types.ModuleType("paraview.simple")
names = """AnnotateTime Calculator CellDatatoPointData ColorBy Contour GetActiveViewOrCreate GetAnimationScene
GetColorTransferFunction GetScalarBar Hide OpenDataFile Render SaveScreenshot Show Slice""".split()
for name in names:
    setattr(simple, name, MagicMock(name=name))
paraview = types.ModuleType("paraview")
paraview.simple = simple
sys.modules.update({"paraview": paraview, "paraview.simple": simple})
sys.argv = [script]
facts = runpy.run_path(script, run_name="__main__")

(opened,), _ = simple.OpenDataFile.call_args
assert os.path.isfile(opened) and os.path.basename(opened) == "run.hdf.series", opened
assert facts["SIDE"] > 0 and facts["HIGHEST"] > facts["LOWEST"] >= 0, facts
view = simple.GetActiveViewOrCreate.return_value
away = [p - c for p, c in zip(view.CameraPosition, facts["CENTER"])]
assert abs(sum(a * a for a in away) ** 0.5 - 3 * facts["SIDE"]) < 1e-6 * facts["SIDE"], away
assert not simple.SaveScreenshot.called
if kind == "particles":
    simple.Show.return_value.SetRepresentationType.assert_called_once_with("Point Gaussian")
    assert simple.GetColorTransferFunction.return_value.UseLogScale == 1
    assert simple.Calculator.return_value.Function == "-potential"
else:
    assert simple.Slice.return_value.SliceType.Normal == facts["NORMAL"]
    assert all(0 < v < facts["HIGHEST"] for v in simple.Contour.return_value.Isosurfaces)
print("ok", facts["NAME"], facts["CENTER"], facts["SIDE"])
