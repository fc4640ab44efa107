"""Arrays on a GPU. Without one, or without a library of such arrays, the tests say that they are skipped."""

import os

import numpy as np
import pytest

import nbody_fmm


def skip(why):
    if os.environ.get("NBODY_REQUIRE_GPU") == "1":
        pytest.fail(why)
    pytest.skip(f"skipped: {why}")


def library(name):
    """Functions that make an array on the GPU of one of NumPy, and the way back."""
    try:
        nbody_fmm.evaluate(np.zeros((1, 3)), [1], device="cuda")
    except nbody_fmm.DeviceError:
        skip("no device")
    try:
        if name == "cupy":
            import cupy

            return cupy.asarray, cupy.asnumpy
        if name == "torch":
            import torch

            return lambda x: torch.as_tensor(x, device="cuda"), lambda x: x.cpu().numpy()
        import jax

        jax.config.update("jax_enable_x64", True)
        return lambda x: jax.device_put(x, jax.devices("gpu")[0]), np.asarray
    except ImportError:
        skip(f"no {name}")


@pytest.fixture(params=["cupy", "torch", "jax"])
def convert(request):
    return library(request.param)


CASES = [
    ("laplace", {}),
    ("laplace", {"method": "direct", "precision": "f64"}),
    ("laplace", {"method": "fmm", "tolerance": 1e-6}),
    ("laplace", {"method": "treecode", "softening": "plummer:0.01"}),
    ("laplace", {"method": "fmm", "hessian": True}),
    ("yukawa:2", {"method": "direct", "hessian": True}),
    ("laplace", {"box": 1.0, "method": "fmm"}),
    ("laplace", {"box": (1.0, 1.5, 2.0), "method": "direct", "surroundings": "vacuum"}),
    ("yukawa:2", {"method": "fmm"}),
    ("vortex", {"method": "fmm"}),
]


@pytest.mark.parametrize("kernel, options", CASES, ids=lambda value: str(value))
@pytest.mark.parametrize("others", [False, True], ids=["own", "targets"])
def test_bits_are_those_of_numpy(convert, rng, kernel, options, others):
    there, back = convert
    x, at = rng.random((5000, 3)), rng.random((777, 3)) if others else None
    q = rng.normal(size=(5000, 3)) if kernel == "vortex" else np.repeat([1.0, -1.0], 2500)
    host = nbody_fmm.evaluate(x, q, at, kernel=kernel, device="cuda", **options)
    solver = nbody_fmm.Solver(kernel=kernel, **options)
    # Twice: the memory of the first sum serves the second.
    for _ in range(2):
        r = solver(there(x), there(q), None if at is None else there(at))
        assert type(r.field) is type(there(x)) and r.device == "cuda:0" and r.choice == host.choice
        assert back(r.field).tobytes() == host.field.tobytes()
        assert (r.potential is None) == (host.potential is None)
        assert host.potential is None or back(r.potential).tobytes() == host.potential.tobytes()
        assert (r.hessian is None) == (host.hessian is None)
        assert host.hessian is None or back(r.hessian).tobytes() == host.hessian.tobytes()
        assert r.coincident_pairs == host.coincident_pairs


def test_other_dtypes_and_strides(convert, rng):
    there, back = convert
    x, q = rng.random((3000, 6)).astype(np.float32), np.arange(6000, dtype=np.int64)
    r = nbody_fmm.evaluate(there(x)[:, ::2], there(q)[::2], method="fmm")
    host = nbody_fmm.evaluate(x[:, ::2], q[::2], method="fmm", device="cuda")
    assert back(r.field).tobytes() == host.field.tobytes()


def test_what_is_refused(convert, rng):
    there, _ = convert
    x, q = there(rng.random((2000, 3))), there(rng.random(2000))
    for arguments, error, text in [
        ((x, rng.random(2000)), TypeError, "strengths: not on a GPU, where sources is"),
        ((x, q[:5]), ValueError, "strengths: shape \\(5,\\), dtype"),
        ((x[:, :2], q), ValueError, "sources: shape \\(2000, 2\\), dtype"),
        ((x, q, q), ValueError, "targets: shape \\(2000,\\), dtype"),
    ]:
        with pytest.raises(error, match=text):
            nbody_fmm.evaluate(*arguments)
    for options, error, text in [
        ({"device": "cpu"}, ValueError, "device: the arrays are on cuda:0; allowed: auto, cuda:0"),
        ({"kernel": "gauss:1"}, ValueError, "kernel: with arrays on a GPU allowed: laplace"),
        ({"check": 5}, ValueError, "check: with arrays on a GPU there is none"),
        ({"exclusions": [[0, 1]]}, ValueError, "exclusions: with arrays on a GPU there are none"),
    ]:
        with pytest.raises(error, match=text):
            nbody_fmm.evaluate(x, q, **options)
    bad = rng.random((2000, 3))
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match="position of particle 7 is NaN"):
        nbody_fmm.evaluate(there(bad), q)
    with pytest.raises(ValueError, match="a coordinate of 1e150"):
        nbody_fmm.evaluate(x * 0 + 1e150, q)
    with pytest.raises(ValueError, match="potential of target|e_x of target|of target"):
        nbody_fmm.evaluate(x * 1e-90, q * 1e250, method="direct", precision="f64")


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_work_of_the_callers_stream_comes_first(name, rng):
    """The positions are written late on a stream of the caller; a sum that does not wait reads zeros."""
    there, back = library(name)
    x, q = rng.random((20_000, 3)), np.ones(20_000)
    expected = nbody_fmm.evaluate(x, q, method="fmm", device="cuda").field.tobytes()
    solver = nbody_fmm.Solver(method="fmm")
    solver(there(x), there(q))
    if name == "cupy":
        import cupy

        stream, synchronize = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Device().synchronize
        on_stream = stream
    else:
        import torch

        stream, synchronize = torch.cuda.Stream(), torch.cuda.synchronize
        on_stream = torch.cuda.stream(stream)
    slow, right, strengths, results = there(rng.random((6000, 6000))), there(x), there(q), []
    # The first round loads the kernels, which may wait for the GPU.
    for rounds in (1, 30):
        to = there(np.zeros((20_000, 3)))
        synchronize()
        with on_stream:
            for _ in range(rounds):
                slow = slow @ slow / 6000
            to += right
            results.append(solver(to, strengths))
    r = results[-1]
    assert back(r.field).tobytes() == expected


def test_torch_tensors_with_gradients(rng):
    there, back = library("torch")
    x, q = there(rng.random((2000, 3))).requires_grad_(), there(rng.random(2000)).requires_grad_()
    r = nbody_fmm.evaluate(x, q)
    assert not r.field.requires_grad
    assert np.isfinite(back(r.field)).all()
