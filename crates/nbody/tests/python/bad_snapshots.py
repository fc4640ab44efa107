"""Makes one good and many bad snapshots for readers_bad.rs.   usage: bad_snapshots.py FOLDER"""

import sys
from pathlib import Path

import h5py
import numpy as np

folder = Path(sys.argv[1])
N = 10


def good(name, counts=(0, N, 0, 0, 0, 0), leave_out=(), **replace):
    """A sound file, less what is left out; `replace` gives other data sets or calls that make them."""
    f = h5py.File(folder / f"{name}.hdf5", "w")
    header = f.create_group("Header").attrs
    header["NumPart_ThisFile"] = np.array(counts, "u4")
    header["MassTable"] = np.zeros(6)
    header["Time"] = 2.0
    header["NumFilesPerSnapshot"] = 1
    group = f.create_group("PartType1")
    data = {
        "Coordinates": np.arange(3.0 * N).reshape(N, 3),
        "ParticleIDs": np.arange(N, dtype="u4"),
        "Masses": np.ones(N, "f4"),
    }
    data.update(replace)
    for key, value in data.items():
        if key in leave_out:
            continue
        if callable(value):
            value(group, key)
        else:
            group[key] = value
    return f


def changed(array, index, value):
    array[index] = value
    return array


(folder / "not_hdf5.hdf5").write_text("x,y,z\n1,2,3\n")
f = good("no_header")
del f["Header"]
good("no_coordinates", leave_out=["Coordinates"])
good("no_masses", leave_out=["Masses"])
good("wrong_shape", Coordinates=np.zeros((N, 2)))
good("wrong_length", Masses=np.ones(N - 1))
good("wrong_type", Masses=np.array([b"heavy"] * N))
good("float_ids", ParticleIDs=np.arange(float(N)))
good("negative_ids", ParticleIDs=changed(np.arange(N), 3, -4))
good("twice", ParticleIDs=changed(np.arange(N), 9, 5))
good("nan", Coordinates=changed(np.zeros((N, 3)), (6, 1), np.nan))
# A header and arrays that agree on 2^32 - 1 particles, in a file of some kB.
many = 2**32 - 1
good(
    "huge",
    counts=(0, many, 0, 0, 0, 0),
    Coordinates=lambda g, k: g.create_dataset(k, (many, 3), "f8", chunks=(65536, 3), compression="gzip"),
)
good("bomb", Masses=lambda g, k: g.create_dataset(k, data=np.zeros(10**8), compression="gzip", chunks=(10**6,)))
good("never_filled", Masses=lambda g, k: g.create_dataset(k, (N,), "f8", chunks=(N,)))
(folder / "secret.txt").write_bytes(b"s" * 8 * N)
good("external_storage", Masses=lambda g, k: g.create_dataset(k, (N,), "f8", external=[("secret.txt", 0, 8 * N)]))
with h5py.File(folder / "other.h5", "w") as other:
    other["Masses"] = np.ones(N)
good("external_link", Masses=lambda g, k: g.__setitem__(k, h5py.ExternalLink("other.h5", "/Masses")))
good("soft_link", Masses=lambda g, k: g.__setitem__(k, h5py.SoftLink("/PartType1/Coordinates")))


def virtual(group, key):
    layout = h5py.VirtualLayout((N,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "Masses", (N,))
    group.create_virtual_dataset(key, layout)


good("virtual", Masses=virtual)
good("other_types", counts=(5, N, 0, 0, 0, 0))
f = good("part_of_many")
f["Header"].attrs["NumFilesPerSnapshot"] = 4
good("lzf", Masses=lambda g, k: g.create_dataset(k, data=np.ones(N), chunks=(N,), compression="lzf"))



def missing_chunk(group, key):
    # 2 chunks, of which the second is never written.
    group.create_dataset(key, (N,), "f8", chunks=(N // 2,), compression="gzip", fillvalue=1.0)[: N // 2] = 1.0


def unchecked(group, key):
    data = group.create_dataset(key, (N,), "f8", chunks=(N,), fletcher32=True)
    # The mask says that the checksum was left out.
    data.id.write_direct_chunk((0,), np.ones(N).tobytes(), filter_mask=1)


good("missing_chunk", Masses=missing_chunk)
good("unchecked", Masses=unchecked)
good("large_chunks", Masses=lambda g, k: g.create_dataset(
    k, data=np.ones(N), maxshape=(None,), chunks=(2**22,), compression="gzip"))
good("long_chunk", Masses=lambda g, k: g.create_dataset(k, data=np.ones(N), chunks=(N,), compression="gzip")).close()
# The size of the only chunk, after the 24 bytes at the head of the tree of chunks.
bytes = bytearray((folder / "long_chunk.hdf5").read_bytes())
tree = bytes.index(b"TREE\x01")
bytes[tree + 24 : tree + 28] = (2**31 - 1).to_bytes(4, "little")
(folder / "long_chunk.hdf5").write_bytes(bytes)

f = good("gadget", leave_out=["Masses"])
f["Header"].attrs["MassTable"] = np.array([0, 0.25, 0, 0, 0, 0])
