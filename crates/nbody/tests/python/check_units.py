"""Opens a snapshot of 500 Myr in kpc, Msun and km/s with yt and pynbody as docs/results.md says.   usage: check_units.py SNAPSHOT PNG"""

import sys

import h5py
import numpy as np
import pynbody
import yt

file, picture = sys.argv[1:]
yt.set_log_level(50)
with h5py.File(file) as f:
    own = {name: data[:].astype("f8") for name, data in f["PartType1"].items()}
mass = own["Masses"].sum()

# Time and units without a word of the user.
ds = yt.load(file)
assert abs(float(ds.current_time.to("Myr")) - 500) < 1e-3, ds.current_time.to("Myr")
assert abs(float(ds.length_unit.to("kpc")) - 1) < 1e-6 and abs(float(ds.mass_unit.to("Msun")) - 1) < 1e-3
assert abs(float(ds.velocity_unit.to("km/s")) - 1) < 1e-9

# The lines of docs/results.md.
ds = yt.load(file, bounding_box=h5py.File(file)["Header"].attrs["BoundingBox"])
plot = yt.ParticleProjectionPlot(ds, "z", ("all", "particle_mass"))
plot.set_unit(("all", "particle_mass"), "Msun")
shown = np.nan_to_num(np.asarray(plot.frb["all", "particle_mass"].to("Msun"))).sum()
assert abs(shown / mass - 1) < 1e-2, (shown, mass)
plot.save(picture)
everything = ds.all_data()
order = np.argsort(np.asarray(everything["all", "particle_index"]))
x = np.asarray(everything["all", "particle_position_x"].to("kpc"))[order]
assert np.allclose(x, own["Coordinates"][:, 0], rtol=1e-5, atol=1e-6)

s = pynbody.load(file)
assert abs(float(s.properties["time"].in_units("Myr")) - 500) < 1e-3, s.properties["time"]
assert np.allclose(np.asarray(s.dm["pos"].in_units("kpc")), own["Coordinates"], rtol=1e-5)
assert abs(float(s.dm["mass"].in_units("Msol").sum()) / mass - 1) < 1e-3
assert np.allclose(np.asarray(s.dm["vel"].in_units("km s**-1")), own["Velocities"], rtol=1e-5, atol=1e-6)
print(f"ok yt {yt.__version__}, pynbody {pynbody.__version__}: 500 Myr, {len(x)} particles")
