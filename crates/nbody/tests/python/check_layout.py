"""Checks the layout of snapshots with h5py.   usage: check_layout.py RUN.hdf.series N STEPS"""

import json
import sys
from pathlib import Path

import h5py
import numpy as np

index, n, steps = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
series = json.loads(index.read_text())
assert series["file-series-version"] == "1.0", series
assert len(series["files"]) == steps, series
times = [entry["time"] for entry in series["files"]]
assert all(a < b for a, b in zip(times, times[1:])), times

LINKS = {
    "Points": "Coordinates",
    "PointData/velocity": "Velocities",
    "PointData/mass": "Masses",
    "PointData/id": "ParticleIDs",
    "PointData/potential": "Potential",
    "PointData/acceleration": "Acceleration",
    "PointData/charge": "Charges",
    "PointData/force_error": "ForceError",
    "PointData/vorticity": "Vorticity",
}
COMPRESSED = {"Masses", "ParticleIDs", "Charges"}

for entry in series["files"]:
    # Version 2 of the superblock: later ones come with arrays that ParaView up to 5.13 cannot read.
    assert (index.parent / entry["name"]).read_bytes()[:9] == b"\x89HDF\r\n\x1a\n\x02"
    with h5py.File(index.parent / entry["name"]) as f:
        header = f["Header"].attrs
        assert header["Time"] == entry["time"], (header["Time"], entry)
        assert header["NumPart_ThisFile"].tolist() == [0, n, 0, 0, 0, 0]
        assert header["NumPart_ThisFile"].dtype == np.uint32
        assert header["NumPart_Total"].tolist() == [0, n, 0, 0, 0, 0]
        assert header["NumPart_Total_HighWord"].tolist() == [0] * 6
        assert header["MassTable"].tolist() == [0.0] * 6
        assert header["Code"] == b"nbody" and header["NumFilesPerSnapshot"] == 1
        for name in ("BoxSize", "Redshift", "Omega0", "OmegaLambda", "HubbleParam", "Flag_DoublePrecision",
                     "UnitLength_in_cm", "UnitMass_in_g", "UnitVelocity_in_cm_per_s"):
            assert np.isfinite(header[name]), name

        particles, vtk = f["PartType1"], f["VTKHDF"]
        for name, data in particles.items():
            assert len(data) == n and data.shuffle and data.fletcher32, name
            assert data.chunks[0] == min(n, 65536), (name, data.chunks)
            assert (data.compression == "gzip") == (name in COMPRESSED), (name, data.compression)
        ids = particles["ParticleIDs"][:]
        assert ids.dtype == np.uint64 and (np.diff(ids.astype(np.int64)) > 0).all()

        # The same object by hard link: neither a copy nor a path to it.
        for link, name in LINKS.items():
            assert vtk[link] == particles[name], link
            assert isinstance(vtk.get(link, getlink=True), h5py.HardLink), link
        kind = vtk.attrs.get_id("Type").get_type()
        assert not kind.is_variable_str() and kind.get_cset() == h5py.h5t.CSET_ASCII and kind.get_size() == 16
        assert vtk.attrs["Type"] == b"UnstructuredGrid"
        assert vtk.attrs["Version"].tolist() == [1, 0] and vtk.attrs["Version"].dtype == np.int64
        for name in ("NumberOfPoints", "NumberOfCells", "NumberOfConnectivityIds"):
            assert vtk[name][:].tolist() == [n], name
        assert (vtk["Connectivity"][:] == np.arange(n)).all() and (vtk["Offsets"][:] == np.arange(n + 1)).all()
        assert vtk["Types"].dtype == np.uint8 and (vtk["Types"][:] == 1).all()
        assert vtk["FieldData/time"][:].tolist() == [entry["time"]] and vtk["FieldData/step"].dtype == np.int64
print(f"ok h5py {h5py.__version__}: {steps} snapshots of {n} particles at {times}")
