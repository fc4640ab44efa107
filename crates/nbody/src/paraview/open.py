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

