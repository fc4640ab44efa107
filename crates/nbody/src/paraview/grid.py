# Contours need values at points; those of cells are averaged.
points = CellDatatoPointData(Input=run)
quantity = Calculator(Input=points)
quantity.Function = FUNCTION
quantity.ResultArrayName = NAME

colors = GetColorTransferFunction(NAME)
colors.ApplyPreset("Inferno (matplotlib)", True)

plane = Slice(Input=quantity)  # a plane, if nothing else is said
plane.SliceType.Origin = CENTER
plane.SliceType.Normal = NORMAL
plane_display = Show(plane, view)
ColorBy(plane_display, ("POINTS", NAME))

contour = Contour(Input=quantity)
contour.ContourBy = ["POINTS", NAME]
contour.Isosurfaces = [0.25 * HIGHEST, 0.5 * HIGHEST]
contour_display = Show(contour, view)
ColorBy(contour_display, ("POINTS", NAME))
contour_display.Opacity = 0.5

colors.RescaleTransferFunction(LOWEST, HIGHEST)
plane_display.SetScalarBarVisibility(view, True)
GetScalarBar(colors, view).Title = NAME
Show(AnnotateTime(), view)
Hide(run, view)
