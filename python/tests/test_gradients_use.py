"""Gradients in use: dtypes, what is refused, transformations, solvers, threads, a GPU."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import client
from test_device import library as on_gpu

import nbody_fmm

EXACT = {"method": "direct", "precision": "f64"}


def points(n=30, m=7, seed=7):
    rng = np.random.default_rng(seed)
    return rng.random((n, 3)), rng.normal(size=n), rng.random((m, 3))


class Counted(nbody_fmm.Solver):
    """Keeps the numbers of sources of its sums."""

    def __init__(self, **options):
        super().__init__(**options)
        self.sums = []

    def __call__(self, sources, strengths, targets=None):
        self.sums.append(len(sources))
        return super().__call__(sources, strengths, targets)


@pytest.fixture
def jax():
    jax = client("jax")
    jax.config.update("jax_enable_x64", True)
    return jax


@pytest.fixture
def torch():
    return client("torch")


def test_pairs_at_one_place_have_no_gradient(library):
    x, q, _ = points()
    x[3] = x[4]
    w = np.ones(len(x))
    for options, finite in [({}, 0), ({"softening": "plummer:0.1"}, 10)]:
        values, (at, of_q) = library.pull(lambda x, q: library.sums.potential(x, q, **options, **EXACT), [x, q], w)
        alone, (_, other) = library.pull(
            lambda x, q: library.sums.potential(x, q, exclusions=[[3, 4]], **options, **EXACT), [x, q], w
        )
        assert np.isfinite(at).all()
        # Softened, the pair has a potential: 1 / 0.1.
        assert np.allclose((values - alone)[[3, 4]], finite * q[[4, 3]]) and np.allclose((of_q - other)[3:5], finite)
    # Targets at the places of sources.
    _, found = library.pull(lambda *a: library.sums.potential(*a, **EXACT), [x[:1], q[:1], x[:1]], w[:1])
    assert all((g == 0).all() for g in found)


def test_empty_arrays(library):
    x, q, y = points()
    for n, m in [(0, 0), (0, 7), (30, 0)]:
        arrays = [x[:n], q[:n], y[:m]]
        value, found = library.pull(library.sums.potential, arrays, np.ones(m))
        assert (value == 0).all() and [g.shape for g in found] == [a.shape for a in arrays]
        assert all((g == 0).all() for g in found)
    value, found = library.pull(library.sums.energy, [x[:0], q[:0]], np.float64(1))
    assert value == 0 and [g.shape for g in found] == [(0, 3), (0,)]


def test_weights_of_zero(library):
    x, q, y = points()
    _, found = library.pull(library.sums.potential, [x, q, y], np.zeros(7))
    assert all((g == 0).all() for g in found)


def test_gradients_have_the_dtypes_of_the_arguments(library):
    x, q, y = points()
    exact = library.pull(lambda *a: library.sums.potential(*a, **EXACT), [x, q, y], np.ones(7))
    for given in ["fff", "fdd", "dfd", "ddf"]:
        arrays = [a.astype(t) for a, t in zip((x, q, y), given)]
        wide = "d" if "d" in given else "f"
        value, found = library.pull(lambda *a: library.sums.potential(*a, **EXACT), arrays, np.ones(7, wide))
        assert value.dtype == wide and [g.dtype for g in found] == list(given)
        for f, e in zip([value, *found], [exact[0], *exact[1]]):
            assert np.abs(f - e).max() <= 1e-5 * np.abs(e).max()
    whole = library.sums.energy(library.array([[0, 0, 0], [2, 0, 0]]), library.array([1, -1]))
    assert float(whole) == -0.5 and "float64" in str(whole.dtype)


def test_what_is_refused(library):
    x, q, y = [library.array(a) for a in points()]
    potential, solver = library.sums.potential, nbody_fmm.Solver()
    for call, error, text in [
        (lambda: potential(x, q, kernel="log"), ValueError, "kernel: no gradients of log, only sums in space have"),
        (lambda: potential(x, q, kernel="gauss:1"), ValueError, "kernel: no gradients of gauss, only sums in space"),
        (lambda: potential(x, q, kernel="vortex"), ValueError, "kernel: no gradients of vortex, it has no potential"),
        (lambda: potential(x, q, kernel="harmonic"), ValueError, "kernel: no gradients of harmonic, it has no poten"),
        (lambda: potential(x, q, box=1, surroundings="vacuum"), ValueError, "surroundings: no gradients in vacuum, wh"),
        (lambda: potential(x, q, box=1, surroundings=80.0), ValueError, "surroundings: no gradients in 80.0, where st"),
        (lambda: potential(x, q, tolerance=2), ValueError, "tolerance"),
        (lambda: potential(x, q, tolerance="small"), TypeError, "tolerance"),
        (lambda: potential(x, q, sigma=2), TypeError, "sigma"),
        (lambda: potential(x, q, solver=solver, kernel="log"), TypeError, "solver: it has options of its own; given n"),
        (lambda: potential(x, q, solver="fmm"), TypeError, "solver: str; expected nbody_fmm.Solver"),
        (lambda: potential(x[:, :2], q), ValueError, r"sources: shape \(30, 2\); expected real numbers of shape"),
        (lambda: potential(x, q[:3]), ValueError, r"strengths: shape \(3,\); expected real numbers of shape \(30,"),
        (lambda: potential(x, x), ValueError, r"strengths: shape \(30, 3\); expected"),
        (lambda: potential(x, q, q), ValueError, r"targets: shape \(30,\); expected real numbers of shape \(n, 3\)"),
        (lambda: potential(x, q, y, exclusions=[[0, 1]]), ValueError, "exclusions: not available with targets"),
        (lambda: potential(x, q * 1j), TypeError, "strengths: dtype .*complex128, shape \\(30,\\); expected real"),
        (lambda: potential(x, q > 0), TypeError, "strengths: dtype .*bool, shape \\(30,\\); expected real numbers"),
        (lambda: library.sums.energy(x, q, kernel="log"), ValueError, "kernel: no gradients of log"),
        (lambda: library.sums.energy(x, q[:3]), ValueError, r"strengths: shape \(3,\)"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_gradients_have_no_gradients(library):
    x, q, _ = points()
    for f in (library.sums.energy, lambda *a: library.sums.potential(*a).sum()):
        with pytest.raises((NotImplementedError, RuntimeError), match="a gradient cannot be differentiated again"):
            if library.name == "jax":
                slope = library.jax.grad(f)
                library.jax.grad(lambda x: (slope(x, q) ** 2).sum() + x.sum())(x)
            else:
                t = library.array(x).requires_grad_()
                (slope,) = library.xp.autograd.grad(f(t, library.array(q)), t, create_graph=True)
                library.xp.autograd.grad((slope**2).sum() + t.sum(), t)


def test_numbers_of_sums(library):
    """Potentials cost one sum and one for their gradients; energies one in all."""
    x, q, y = points()
    solver = Counted()
    library.pull(lambda *a: library.sums.energy(*a, solver=solver), [x, q], np.float64(1))
    assert solver.sums == [30]
    library.pull(lambda *a: library.sums.potential(*a, solver=solver), [x, q, y], np.ones(7))
    assert solver.sums[1:] == [30, 7]


def test_targets_alone_need_one_sum(library):
    x, q, y = points()
    solver = Counted()

    def f(y):
        return library.sums.potential(library.array(x), library.array(q), y, solver=solver).sum()

    if library.name == "jax":
        library.jax.block_until_ready(library.jax.jit(library.jax.grad(f))(y))
    else:
        library.pull(f, [y], np.float64(1))
    assert solver.sums == [30]


def test_a_frozen_solver(library):
    x, q, _ = points(2000)
    solver = nbody_fmm.Solver(tolerance=1e-3, method="fmm")
    potential = lambda *a: library.sums.potential(*a, solver=solver)
    if library.name == "jax":
        potential = library.jax.jit(potential)
    before = library.pull(potential, [x, q], np.ones(2000))
    kept = solver._choice
    solver.freeze()
    after = library.pull(potential, [x, q], np.ones(2000))
    assert solver._choice == kept and solver._options["order"] == kept["order"]
    assert np.allclose(before[1][0], after[1][0], rtol=1e-2, atol=1e-2 * np.abs(before[1][0]).max())


def test_descent_finds_charges(library):
    """Charges that have given potentials are found by steps along the gradient."""
    x, wanted, y = points(5, 40, 3)
    x, wanted, y = library.array(5 * x), library.array(wanted), library.array(5 * y)
    solver = nbody_fmm.Solver(softening="plummer:0.5")
    data = library.sums.potential(x, wanted, y, solver=solver)
    loss = lambda q: ((library.sums.potential(x, q, y, solver=solver) - data) ** 2).mean()
    history = []
    if library.name == "jax":
        step = library.jax.jit(library.jax.value_and_grad(loss))
        q = np.zeros(5)
        for _ in range(40):
            value, slope = step(q)
            history.append(float(value))
            q -= slope
    else:
        q = library.xp.zeros(5, dtype=library.xp.float64, requires_grad=True)
        optimizer = library.xp.optim.SGD([q], lr=1.0)
        for _ in range(40):
            optimizer.zero_grad()
            value = loss(q)
            value.backward()
            history.append(value.item())
            optimizer.step()
    assert history[-1] < 0.02 * history[0] and all(b < a for a, b in zip(history, history[1:]))


def test_values_that_are_not_finite_in_jax(jax):
    """The callback's error reaches the caller with the text of the sum, at the call or when the result is read."""
    import nbody_fmm.jax as sums

    x, q, _ = points()
    x[5, 1] = np.nan
    for f in [sums.energy, jax.jit(sums.energy), jax.grad(sums.energy), jax.jit(jax.grad(sums.energy))]:
        with pytest.raises((ValueError, jax.errors.JaxRuntimeError)) as raised:
            jax.block_until_ready(f(x, q))
        assert "ValueError: sources: row 5 (counted from 0) holds NaN, which is not finite" in str(raised.value)
    # What follows is not affected.
    assert np.isfinite(sums.energy(*points()[:2]))


def test_values_that_are_not_finite_in_torch(torch):
    import nbody_fmm.torch as sums

    x, q = [torch.tensor(a, requires_grad=True) for a in points()[:2]]
    with pytest.raises(ValueError, match="sources: row 0 .counted from 0. holds NaN, which is not finite"):
        sums.energy(x * np.nan, q)
    with pytest.raises(ValueError, match="strengths: row 0 .counted from 0. holds NaN, which is not finite"):
        (sums.potential(x, q) * np.nan).sum().backward()


def test_jax_without_float64(jax):
    import nbody_fmm.jax as sums

    x, q, y = points()
    expected = sums.potential(x, q, y)
    with jax.enable_x64(False):
        with pytest.raises(TypeError, match="sources: float64, which JAX would round to float32; call jax.config"):
            sums.potential(x, q, y)
        with pytest.raises(TypeError, match="targets: float64"):
            sums.potential(x.astype("f"), q.astype("f"), y)
        for arrays in ([a.astype("f") for a in (x, q, y)], [a.tolist() for a in (x, q, y)]):
            found = sums.potential(*arrays)
            assert found.dtype == "float32" and np.allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_transformations_of_jax(jax):
    import nbody_fmm.jax as sums

    x, q, y = points()
    exact = lambda *a: sums.potential(*a, **EXACT)
    many = np.stack([x, x + [1, 0, 0], 2 * x])
    batch = jax.vmap(exact, (0, None))(many, q)
    assert all((b == exact(one, q)).all() for b, one in zip(batch, many))
    # The Jacobian in the strengths is the matrix of 1 / r, by either product with vectors of weights.
    r = np.linalg.norm(y[:, None] - x[None], axis=2)
    assert np.allclose(jax.jacrev(exact, 1)(x, q, y), 1 / r, rtol=1e-12)
    assert np.allclose(jax.jit(jax.jacrev(exact, 1))(x, q, y), 1 / r, rtol=1e-12)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(exact, (x, q), (x, q))
    # A sum among other operations of one program, in a loop too.
    step = lambda k, x: x - 1e-3 * jax.grad(lambda x: sums.energy(x, abs(q), **EXACT))(x)
    apart = jax.jit(lambda x: jax.lax.fori_loop(0, 3, step, x))(x)
    assert np.allclose(apart, step(2, step(1, step(0, x))), rtol=1e-12)


def test_calls_with_the_same_options_share_a_solver(jax):
    import nbody_fmm.jax as sums

    x, q, _ = points()
    known = sums._kept.cache_info().misses
    for _ in range(3):
        sums.potential(x, q, tolerance=1.5e-3, exclusions=[[0, 1]], box=[1, 1, 1])
        assert sums._kept.cache_info().misses == known + 1


def test_transformations_of_torch(torch):
    import nbody_fmm.torch as sums

    x, q, y = [torch.tensor(a) for a in points()]
    exact = lambda *a: sums.potential(*a, **EXACT)
    r = torch.linalg.norm(y[:, None] - x[None], axis=2)
    assert torch.allclose(torch.autograd.functional.jacobian(lambda q: exact(x, q, y), q), 1 / r, rtol=1e-12)
    of_x = torch.func.grad(lambda x: sums.energy(x, q, **EXACT))(x)
    t = x.clone().requires_grad_()
    sums.energy(t, q, **EXACT).backward()
    assert (t.grad == of_x).all()
    with pytest.raises(TypeError, match="sources: ndarray; expected torch.Tensor"):
        sums.potential(x.numpy(), q)


THREADS = """
import os, sys, threading

# On one core JAX has one thread, which any callback that waits for it stops.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np

sys.path.insert(0, sys.argv[2])
from differentiate import LIBRARIES

library = LIBRARIES[sys.argv[1]]()
rng = np.random.default_rng(1)
x, q = rng.random((6000, 3)), rng.normal(size=6000)

def loss(x, q):
    # Three sums that do not depend on each other, of arrays that the library makes.
    return sum((library.sums.potential(x * j, q + 0.0, tolerance=0.1) ** 2).sum() for j in range(1, 4))

if library.name == "jax":
    slope = library.jax.jit(library.jax.grad(loss))
    gradients = lambda k: np.asarray(slope(k * x, q)).tobytes()
else:
    gradients = lambda k: library.pull(loss, [k * x, q], np.float64(1))[1][0].tobytes()

expected = [gradients(k) for k in range(1, 5)]
found = {}
threads = [threading.Thread(target=lambda k=k: found.update({k: gradients(k)}), daemon=True) for k in range(1, 5)]
[t.start() for t in threads]
[t.join() for t in threads]
assert [found[k] for k in range(1, 5)] == expected
"""


def test_threads(library, tmp_path):
    """Bits are the same from four threads, and no thread waits for another without end."""
    file = tmp_path / "script.py"
    file.write_text(THREADS)
    command = [sys.executable, file, library.name, str(pathlib.Path(__file__).parent)]
    done = subprocess.run(command, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_tensors_on_a_gpu_stay_there():
    there, back = on_gpu("torch")
    import torch

    import nbody_fmm.torch as sums

    x, q, y = points(3000, 500)
    of = {}
    for device in ("cpu", "cuda"):
        arrays = [torch.tensor(a, device=device, requires_grad=True) for a in (x, q, y)]
        value = sums.potential(*arrays, tolerance=1e-6)
        gradients = torch.autograd.grad(value.sum(), arrays)
        assert value.device.type == device and all(g.device.type == device for g in gradients)
        energy = sums.energy(*arrays[:2], tolerance=1e-6)
        found = (value, *gradients, energy, *torch.autograd.grad(energy, arrays[:2]))
        of[device] = [t.detach().cpu().numpy() for t in found]
    for a, b in zip(of["cpu"], of["cuda"]):
        assert np.linalg.norm(a - b) <= 1e-5 * np.linalg.norm(a)


def test_arrays_of_jax_on_a_gpu():
    there, back = on_gpu("jax")
    import jax

    import nbody_fmm.jax as sums

    arrays = points(3000, 500)
    f = jax.value_and_grad(lambda *a: sums.potential(*a, tolerance=1e-6).sum(), (0, 1, 2))
    expected = f(*[jax.device_put(a, jax.devices("cpu")[0]) for a in arrays])
    for found in (f(*map(there, arrays)), jax.jit(f)(*map(there, arrays))):
        for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found)):
            assert b.devices() == {jax.devices("gpu")[0]}
            assert np.linalg.norm(a - back(b)) <= 1e-5 * np.linalg.norm(a)
    bad = there(arrays[0] * np.nan)
    with pytest.raises(jax.errors.JaxRuntimeError, match="holds NaN, which is not finite"):
        jax.block_until_ready(sums.energy(bad, there(arrays[1])))


def test_whole_numbers_keep_their_digits_and_results_their_range(library):
    far = np.array([[20000001, 0, 0], [20000003, 0, 0]])
    found = library.sums.energy(library.array(far), library.array(np.ones(2)))
    assert float(found) == 0.5
    x, q = np.array([[0, 0, 0], [1e-20, 0, 0]], np.float32), np.full(2, 1e20, np.float32)
    with pytest.raises(Exception, match="beyond the range of .*float32; give float64"):
        np.asarray(library.sums.potential(library.array(x), library.array(q)))
