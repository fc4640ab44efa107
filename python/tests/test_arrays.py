"""Arrays of any order and dtype give right values; all others are refused with the argument, its shape and what is expected."""

import pickle

import numpy as np
import pytest

import nbody_fmm


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def strided(a):
    wide = np.full((2 * a.shape[0], *a.shape[1:]), np.nan)
    wide[::2] = a
    return wide[::2]


def unaligned(a):
    raw = np.empty(a.nbytes + 1, np.uint8)[1:]
    raw[:] = np.frombuffer(a.tobytes(), np.uint8)
    array = raw.view(np.float64).reshape(a.shape)
    assert not array.flags.aligned
    return array


FORMS = {
    "C order": lambda a: a,
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "backward": lambda a: a[::-1].copy()[::-1],
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "long double": lambda a: a.astype(np.longdouble),
    "int64": lambda a: a.astype(np.int64),
    "uint8": lambda a: a.astype(np.uint8),
    "big-endian": lambda a: a.astype(">f8"),
    "read-only": read_only,
    "unaligned": unaligned,
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(map(tuple, a.tolist())) if a.ndim == 2 else tuple(a.tolist()),
    "broadcast": lambda a: np.broadcast_to(a, (2, *a.shape))[1],
}


@pytest.mark.parametrize("kernel", ["laplace", "vortex", "harmonic", "gauss:3"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_array(form, kernel, rng):
    d = 2 if kernel == "harmonic" else 3
    # Whole numbers: every dtype holds them.
    x = rng.integers(0, 100, (50, d)).astype(float)
    q = rng.integers(0, 9, (50, 3) if kernel == "vortex" else 50).astype(float)
    at = rng.integers(0, 100, (20, d)).astype(float)
    kept = [a.copy() for a in (x, q, at)]
    expected = nbody_fmm.evaluate(x, q, at, kernel=kernel)
    found = nbody_fmm.evaluate(*(FORMS[form](a) for a in (x, q, at)), kernel=kernel)
    assert np.abs(expected.field).max() > 0
    assert found.field.tobytes() == expected.field.tobytes()
    assert all((a == b).all() for a, b in zip(kept, (x, q, at)))


def test_complex_strengths_of_any_form(rng):
    x, q = rng.random((30, 2)), (rng.integers(0, 9, 30) + 1j * rng.integers(0, 9, 30))
    expected = nbody_fmm.evaluate(x, q, kernel="harmonic").field
    for form in (q[::-1].copy()[::-1], q.astype(np.complex64), q.astype(">c16"), q.tolist()):
        assert nbody_fmm.evaluate(x, form, kernel="harmonic").field.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kernel, d", [("laplace", 3), ("log", 2), ("harmonic", 2), ("vortex", 3), ("gauss:1", 2)])
def test_empty_arrays(kernel, d):
    width = (3,) if kernel == "vortex" else ()
    shape = lambda m: (m,) if kernel == "harmonic" else (m, d)
    none = nbody_fmm.evaluate(np.empty((0, d)), np.empty((0, *width)), kernel=kernel)
    assert none.field.shape == shape(0)
    no_sources = nbody_fmm.evaluate(np.empty((0, d)), np.empty((0, *width)), np.ones((4, d)), kernel=kernel)
    assert no_sources.field.shape == shape(4) and not no_sources.field.any()
    no_targets = nbody_fmm.evaluate(np.ones((2, d)), np.ones((2, *width)), np.empty((0, d)), kernel=kernel)
    assert no_targets.field.shape == shape(0)
    assert nbody_fmm.evaluate([], [], kernel="laplace").potential.shape == (0,)


def test_results_belong_to_the_caller(rng):
    r = nbody_fmm.evaluate(rng.random((5, 3)), np.ones(5))
    for array in (r.potential, r.field):
        assert array.flags.writeable and array.flags.c_contiguous and array.dtype == np.float64
        array[:] = 1


X, Q = np.arange(12.0).reshape(4, 3), np.ones(4)
NAN = X.copy()
NAN[2, 1] = np.nan

REFUSED = {
    "transposed": ((X.T[:, :2], Q), {}, ValueError, r"sources: shape \(3, 2\); expected .*\(n, 3\)"),
    "flat": ((X.ravel(), Q), {}, ValueError, r"sources: shape \(12,\)"),
    "deep": ((X[None], Q), {}, ValueError, r"sources: shape \(1, 4, 3\)"),
    "number": ((1.0, Q), {}, ValueError, r"sources: shape \(\)"),
    "few strengths": ((X, Q[:3]), {}, ValueError, r"strengths: shape \(3,\); expected .*\(4,\)"),
    "wide strengths": ((X, np.ones((4, 1))), {}, ValueError, r"strengths: shape \(4, 1\)"),
    "flat vortices": ((X, Q), {"kernel": "vortex"}, ValueError, r"strengths: shape \(4,\); expected .*\(4, 3\)"),
    "flat targets": ((X, Q, X[:, :2]), {}, ValueError, r"targets: shape \(4, 2\); expected .*\(n, 3\)"),
    "space in the plane": ((X, Q), {"kernel": "log"}, ValueError, r"sources: shape \(4, 3\); expected .*\(n, 2\)"),
    "other axes": ((X, Q, X[:, :2]), {"kernel": "gauss:1"}, ValueError, r"targets: shape \(4, 2\)"),
    "ragged": (([[1, 2, 3], [1, 2]], [1, 1]), {}, ValueError, "sources: not an array"),
    "complex": ((X + 0j, Q), {}, TypeError, r"sources: dtype complex128, shape \(4, 3\); expected real"),
    "complex charges": ((X, Q + 0j), {}, TypeError, "strengths: dtype complex128"),
    "objects": ((X.astype(object), Q), {}, TypeError, "sources: dtype object"),
    "None": ((None, Q), {}, TypeError, "sources: dtype object"),
    "strings": ((X.astype(str), Q), {}, TypeError, "sources: dtype <U"),
    "booleans": ((X, Q > 0), {}, TypeError, "strengths: dtype bool"),
    "masked": ((np.ma.masked_less(X, 2), Q), {}, TypeError, "sources: a masked array"),
    "NaN": ((NAN, Q), {}, ValueError, r"sources: row 2 \(counted from 0\) holds NaN"),
    "NaN targets": ((X, Q, NAN), {}, ValueError, "targets: row 2 .* NaN"),
    "infinite": ((X, [1, 1, 1, np.inf]), {}, ValueError, "strengths: row 3 .* inf"),
    "kernel": ((X, Q), {"kernel": "stokes"}, ValueError, "kernel: allowed: laplace"),
    "no width": ((X, Q), {"kernel": "gauss"}, ValueError, "kernel: its width is missing"),
    "softening": ((X, Q), {"softening": "plumer:1"}, ValueError, "softening: allowed: none, plummer:E"),
    "softening of another": ((X, Q), {"softening": "gaussian:1"}, ValueError, "softening: with kernel laplace"),
    "tolerance": ((X, Q), {"tolerance": 0.5}, ValueError, "tolerance = 0.5 is outside"),
    "text": ((X, Q), {"tolerance": "1e-4"}, TypeError, "tolerance: '1e-4' is not a number"),
    "method": ((X, Q), {"method": "pm"}, ValueError, "method: .*allowed: auto, direct, treecode, fmm, mesh"),
    "precision": ((X, Q), {"precision": "f16"}, ValueError, "precision: .*allowed: auto, f32, mixed, f64"),
    "order": ((X, Q), {"order": -1}, ValueError, "order: -1 is negative"),
    "long order": ((X, Q), {"order": 10**30}, ValueError, f"order: {10**30} has more than 64 bits"),
    "ragged pairs": ((X, Q), {"exclusions": [[0, 1], [2]]}, ValueError, "exclusions: "),
    "large row": (
        (X, Q),
        {"exclusions": np.array([[0, 2**64 - 1]], np.uint64)},
        ValueError,
        f"exclusions: {2**64 - 1} is no row of the sources",
    ),
    "high order": ((X, Q), {"order": 99, "method": "fmm"}, ValueError, "order = 99 is outside"),
    "theta": ((X, Q), {"theta": 2.0, "method": "fmm"}, ValueError, "theta = 2 is outside"),
    "real order": ((X, Q), {"order": 1.5}, TypeError, "order: 1.5 is not a whole number"),
    "box": ((X, Q), {"box": [1, 2]}, ValueError, r"box: shape \(2,\)"),
    "side": ((X, Q), {"box": -1}, ValueError, "outside"),
    "charged": ((X, Q), {"box": 3, "surroundings": "vacuum"}, ValueError, "charge|strengths"),
    "no box": ((X, Q), {"surroundings": "vacuum"}, ValueError, "surroundings: only with a box"),
    "box of another": ((X, Q), {"box": 1, "kernel": "yukawa:1"}, ValueError, "box: the kernel yukawa has none"),
    "threads": ((X, Q), {"threads": 0}, ValueError, "threads: 0 is outside 1 to 1024"),
    "device": ((X, Q), {"device": "gpu"}, ValueError, "device: allowed: auto, cpu"),
    "no such device": ((X, Q), {"device": "cuda:4711"}, nbody_fmm.DeviceError, "device = cuda:4711"),
    "exclusion": ((X, Q), {"exclusions": [[0, 4]]}, ValueError, "exclusions: 4 is not one of 4 sources"),
    "negative exclusion": ((X, Q), {"exclusions": [[0, -1]]}, ValueError, "exclusions: -1"),
    "exclusion of itself": ((X, Q), {"exclusions": [[1, 1]]}, ValueError, "exclusions: the pair 1, 1"),
    "exclusion twice": ((X, Q), {"exclusions": [[0, 1], [1, 0]]}, ValueError, "exclusions: .*twice"),
    "exclusion shape": ((X, Q), {"exclusions": [0, 1]}, ValueError, r"exclusions: shape \(2,\)"),
    "real exclusions": ((X, Q), {"exclusions": [[0.0, 1.0]]}, TypeError, "exclusions: dtype float64"),
    "exclusions at targets": ((X, Q, X), {"exclusions": [[0, 1]]}, ValueError, "exclusions: not available with targets"),
    "beyond the range": ((X * 1e-90, Q * 1e300), {}, ValueError, "beyond the range"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    arguments, options, error, text = REFUSED[case]
    with pytest.raises(error, match=text) as raised:
        nbody_fmm.evaluate(*arguments, **options)
    assert raised.type is error


def test_tolerance_that_is_not_reached():
    # A crystal of alternating charges on top of large equal ones, whose fields cancel.
    x = np.indices((14, 14, 14)).reshape(3, -1).T
    q = 1000 + (-1.0) ** x.sum(axis=1)
    with pytest.raises(nbody_fmm.ToleranceError, match="is not reached"):
        nbody_fmm.evaluate(x, q, box=14, method="fmm", precision="f32", tolerance=1e-5)


def test_panic_is_a_runtime_error():
    with pytest.raises(RuntimeError, match="internal error of nbody_fmm.*asked for") as raised:
        nbody_fmm._library.panic()
    assert raised.type is RuntimeError
    # The threads go on.
    assert nbody_fmm.evaluate(X, Q, threads=2).field.shape == (4, 3)


def test_solvers_are_pickled_by_their_options(rng):
    x, q = rng.random((100, 3)), rng.normal(size=100)
    solver = nbody_fmm.Solver(box=(1, 2, 3), tolerance=1e-6, exclusions=[[3, 1]], threads=2, check=10)
    expected = solver(x, q)
    copy = pickle.loads(pickle.dumps(solver))
    assert repr(copy) == repr(solver) and "tolerance=1e-06" in repr(copy)
    assert copy(x, q).field.tobytes() == expected.field.tobytes()
    assert pickle.loads(pickle.dumps(expected)).field.tobytes() == expected.field.tobytes()


def test_solver_keeps_its_own_exclusions(rng):
    pairs = np.array([[0, 1]])
    x, q = rng.random((10, 3)), np.ones(10)
    solver = nbody_fmm.Solver(exclusions=pairs)
    before = solver(x, q).potential
    pairs[:] = [[2, 3]]
    assert (solver(x, q).potential == before).all()


def test_version_is_that_of_the_workspace():
    import pathlib
    import re

    manifest = pathlib.Path(__file__).resolve().parents[2] / "Cargo.toml"
    version = re.search(r'^version = "(.*)"', manifest.read_text(), re.M)[1]
    assert nbody_fmm.__version__ == version
