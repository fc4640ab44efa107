"""Opens converted files.   usage: check_converted.py SNAPSHOT.hdf GADGET.hdf5 TABLE.npy TABLE.csv"""

import csv
import sys

import h5py
import numpy as np
import pynbody
import yt

snapshot, gadget, npy, table = sys.argv[1:]
yt.set_log_level("error")

with h5py.File(snapshot) as f:
    own = {name: data[:] for name, data in f["PartType1"].items()}
    time = f["Header"].attrs["Time"]
    length = f["Header"].attrs["UnitLength_in_cm"]
with h5py.File(gadget) as f:
    assert set(f) >= {"Header", "PartType1"} and "VTKHDF" not in f, list(f)
    for name, data in f["PartType1"].items():
        assert (data[:] == own[name]).all() and data.chunks is None and data.compression is None, name
    assert set(f["PartType1"]) == set(own)

s = pynbody.load(gadget)
assert len(s) == len(s.dm) == len(own["Masses"]), len(s)
for name, mine in (("pos", "Coordinates"), ("vel", "Velocities"), ("mass", "Masses"), ("iord", "ParticleIDs")):
    assert (np.asarray(s.dm[name]) == own[mine]).all(), name
one = float(s.dm["pos"].units.ratio("cm"))
assert abs(one / length - 1) < 1e-6, (s.dm["pos"].units, length)
gyr = float(s.properties["time"].in_units("Gyr"))
assert abs(gyr / (time * length / 1e5 / 3.15576e16) - 1) < 1e-9, s.properties["time"]

ds = yt.load(gadget, bounding_box=h5py.File(gadget)["Header"].attrs["BoundingBox"])
assert abs(float(ds.length_unit.to("cm")) / length - 1) < 1e-9, ds.length_unit
code = {"particle_mass": "code_mass", "particle_position_x": "code_length"}
ad = ds.all_data()
order = np.argsort(np.asarray(ad["PartType1", "particle_index"]))
for field, mine in (("particle_mass", "Masses"), ("particle_position_x", "Coordinates"), ("ParticleIDs", "ParticleIDs")):
    there = ad["PartType1", field]
    there = np.asarray(there.to(code[field]) if field in code else there)[order]
    expected = own[mine][:, 0] if own[mine].ndim == 2 else own[mine]
    assert np.allclose(there, expected, rtol=1e-12, atol=0), field
assert float(ds.current_time.value) == time or ds.parameters["Time"] == time, ds.current_time

a = np.load(npy)
assert a.dtype.names[:4] == ("id", "x", "y", "z") and a.dtype["x"] == "<f4" and a.dtype["id"] == "<u8", a.dtype
assert (a["id"] == own["ParticleIDs"]).all()
for k, name in enumerate(("vx", "vy", "vz")):
    assert (a[name] == own["Velocities"][:, k].astype("f4")).all(), name

with open(table) as text:
    rows = list(csv.DictReader(line for line in text if not line.startswith("#")))
assert [int(r["id"]) for r in rows] == own["ParticleIDs"].tolist()
for k, name in enumerate("xyz"):
    assert [float(r[name]) for r in rows] == own["Coordinates"][:, k].tolist(), name
print(f"ok pynbody {pynbody.__version__}, yt {yt.__version__}, numpy {np.__version__}: {len(rows)} particles")
