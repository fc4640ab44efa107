"""Makes a checkpoint of a later format and a snapshot of big-endian numbers for faults_files.rs.   usage: other_versions.py RUN_DIR"""

import shutil
import sys
from pathlib import Path

import h5py
import numpy as np

folder = Path(sys.argv[1])
shutil.copy(folder / "checkpoint.0.hdf", folder / "later.hdf")
with h5py.File(folder / "later.hdf", "r+") as f:
    f["Checkpoint"].attrs["Format"] = np.int64(5)
with h5py.File(folder / "snap_000001.hdf") as own, h5py.File(folder / "big_endian.hdf5", "w") as big:
    header = big.create_group("Header").attrs
    for name, value in own["Header"].attrs.items():
        value = np.asarray(value)
        header[name] = value.astype(value.dtype.newbyteorder(">")) if value.dtype.kind in "iuf" else value
    for name, array in own["PartType1"].items():
        big["PartType1/" + name] = array[:].astype(array.dtype.newbyteorder(">"))
