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
