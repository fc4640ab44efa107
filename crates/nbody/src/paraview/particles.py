import os
import sys

from paraview.simple import *

# The folder of this script; some ways to run it do not say where it lies.
folder = os.path.dirname(os.path.abspath(__file__)) if "__file__" in globals() else RUN
index = os.path.join(folder, "run.hdf.series")
if not os.path.isfile(index):
    index = os.path.join(RUN, "run.hdf.series")

run = OpenDataFile(index)
view = GetActiveViewOrCreate("RenderView")

# Colors on a logarithmic scale: the depth of the potential, or the speed.
quantity = Calculator(Input=run)
quantity.Function = FUNCTION
quantity.ResultArrayName = NAME

display = Show(quantity, view)
display.SetRepresentationType("Point Gaussian")
display.GaussianRadius = RADIUS
display.ShaderPreset = "Gaussian Blur"
# Light adds up: points need no order.
display.Emissive = 1
ColorBy(display, ("POINTS", NAME))
colors = GetColorTransferFunction(NAME)
colors.ApplyPreset("Inferno (matplotlib)", True)
colors.RescaleTransferFunction(LOWEST, HIGHEST)
if LOWEST > 0.0:
    colors.MapControlPointsToLogSpace()
    colors.UseLogScale = 1
display.SetScalarBarVisibility(view, True)
GetScalarBar(colors, view).Title = NAME
Show(AnnotateTime(), view)
Hide(run, view)
