"""Opens every snapshot of a run with yt.   usage: check_yt.py RUN.hdf.series N STEPS"""

import json
import sys
from pathlib import Path

import h5py
import numpy as np
import yt

yt.set_log_level(50)
index, n, steps = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
files = json.loads(index.read_text())["files"]
assert len(files) == steps, files
for entry in files:
    name = str(index.parent / entry["name"])
    with h5py.File(name) as f:
        header = f["Header"].attrs
        units = {k: float(header[k]) for k in ("UnitLength_in_cm", "UnitMass_in_g", "UnitVelocity_in_cm_per_s")}
        box = header["BoundingBox"]
        x = f["PartType1/Coordinates"][:].astype(np.float64)
        mass = f["PartType1/Masses"][:].sum(dtype=np.float64)
    low, high = x.min(axis=0), x.max(axis=0)
    pad = 0.05 * (high - low).max()
    assert (box[0] < low).all() and (box[1] > high).all(), box
    ds = yt.load(name, bounding_box=box)
    # Its reader of AREPO's files is the one that looks at the units.
    assert type(ds).__name__ == "ArepoHDF5Dataset", type(ds)
    everything = ds.all_data()
    masses = everything["all", "particle_mass"].to("code_mass")
    assert len(masses) == n
    assert abs(float(masses.sum()) - mass) <= 1e-9 * mass
    assert float(ds.current_time.to("code_time")) == entry["time"]
    assert abs(float(ds.length_unit.to("cm")) / units["UnitLength_in_cm"] - 1) < 1e-9
    seen = np.sort(everything["all", "particle_position_x"].to("code_length").d)
    assert np.allclose(seen, np.sort(x[:, 0]), rtol=1e-6, atol=1e-6 * pad)
    yt.ParticlePlot(ds, ("all", "particle_position_x"), ("all", "particle_position_y"), ("all", "particle_mass"))
print(f"ok yt {yt.__version__}: {steps} snapshots of {n} particles, units {ds.length_unit}, {ds.mass_unit}")
