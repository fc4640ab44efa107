
# The animation shows each snapshot once, and begins at the last: that is what the run was made for.
scene = GetAnimationScene()
scene.UpdateAnimationUsingDataTimeSteps()
times = run.TimestepValues
if hasattr(times, "__len__") and len(times) > 1:
    scene.PlayMode = "Snap To TimeSteps"
    scene.StartTime, scene.EndTime = times[0], times[-1]
    scene.AnimationTime = times[-1]
# The first picture chooses a camera; only then may another be set.
Render(view)

# The camera looks along the axis on which the run is thinnest, at the same part of space at all times.
view.UseColorPaletteForBackground = 0
view.Background = [0.02, 0.02, 0.05]
view.OrientationAxesVisibility = 1
view.CameraParallelProjection = 1
view.CameraFocalPoint = CENTER
view.CameraPosition = [c + 3.0 * SIDE * d for c, d in zip(CENTER, TOWARDS)]
view.CameraViewUp = UP
view.CameraParallelScale = 0.55 * SIDE
Render(view)

# pvpython SCRIPT picture.png    a picture of the last time
if len(getattr(sys, "argv", [])) > 1 and sys.argv[-1].endswith(".png"):
    view.ViewSize = [1000, 1000]
    SaveScreenshot(sys.argv[-1], view, ImageResolution=[1000, 1000])
    print("wrote", sys.argv[-1])
