"""Sums agree with direct sums written in NumPy."""

import pickle

import numpy as np
import pytest

import nbody_fmm


def direct(kernel, x, q, at, own):
    """Potential (or None) and field by the formulas of the documentation."""
    name, _, parameter = kernel.partition(":")
    d = at[:, None, :] - x[None, :, :]
    r2 = (d**2).sum(axis=2)
    if own and name != "gauss":
        np.fill_diagonal(r2, np.inf)
    r = np.sqrt(r2)
    if name == "laplace":
        return (q / r).sum(axis=1), ((q / r**3)[..., None] * d).sum(axis=1)
    if name == "yukawa":
        kappa = float(parameter)
        with np.errstate(invalid="ignore"):
            e = np.where(np.isinf(r), 0, q * np.exp(-kappa * r) * (1 + kappa * r) / r**3)
        return (q * np.exp(-kappa * r) / r).sum(axis=1), (e[..., None] * d).sum(axis=1)
    if name == "log":
        logs = np.where(np.isinf(r), 0, np.log(r))
        return (q * logs).sum(axis=1), -((q / r2)[..., None] * d).sum(axis=1)
    if name == "harmonic":
        z = d[..., 0] + 1j * d[..., 1]
        return None, np.where(np.isinf(r2), 0, -q / np.where(z == 0, 1, z)).sum(axis=1)
    if name == "vortex":
        return None, -(np.cross(d, q[None]) / r[..., None] ** 3).sum(axis=1) / (4 * np.pi)
    sigma = float(parameter)
    g = q * np.exp(-r2 / (2 * sigma**2))
    return g.sum(axis=1), ((g / sigma**2)[..., None] * d).sum(axis=1)


CASES = [("laplace", 3), ("yukawa:3", 3), ("log", 2), ("harmonic", 2), ("vortex", 3)]
CASES += [("gauss:0.3", d) for d in (1, 2, 3)]


@pytest.mark.parametrize("own", [True, False], ids=["at the sources", "at targets"])
@pytest.mark.parametrize("method", ["direct", "fmm"])
@pytest.mark.parametrize("kernel, dimension", CASES)
def test_agrees_with_a_direct_sum(kernel, dimension, method, own, rng):
    n, tolerance = 400, 1e-8
    x = rng.random((n, dimension))
    q = rng.normal(size=(n, 3) if kernel == "vortex" else n)
    if kernel == "harmonic":
        q = q + 1j * rng.normal(size=n)
    at = x if own else rng.random((70, dimension))
    potential, field = direct(kernel, x, q, at, own)
    r = nbody_fmm.evaluate(x, q, None if own else at, kernel=kernel, method=method, tolerance=tolerance)
    assert r.choice["method"] == method
    assert r.field.shape == field.shape and r.field.dtype == field.dtype
    # The tolerance of sums of Gaussians is a part of the sum of strengths, and their gradient has a factor 1 / sigma.
    scale = np.abs(q).sum() * np.sqrt(len(at)) * 10 if kernel.startswith("gauss") else np.linalg.norm(field)
    assert np.linalg.norm(r.field - field) <= 3 * tolerance * scale
    if potential is not None:
        assert np.linalg.norm(r.potential - potential) <= 1e-6 * np.linalg.norm(potential)


def test_error_of_a_sample_is_measured(rng):
    x, q = rng.random((2000, 3)), rng.normal(size=2000)
    r = nbody_fmm.evaluate(x, q, method="fmm", tolerance=1e-4, check=500)
    exact = nbody_fmm.evaluate(x, q, method="direct", precision="f64")
    # Targets are drawn by their estimated errors: one that is drawn twice is compared once.
    assert 200 < r.errors["sample"] <= 500 and 0 < r.errors["rms"] <= 1e-4 and r.error is None
    for norm in ("rms", "l2"):
        low, high = r.errors[norm + "_interval"]
        assert 0 < low < r.errors[norm] < high < 2 * r.errors[norm]
    every = nbody_fmm.evaluate(x, q, method="fmm", tolerance=1e-4, check=2000).errors
    assert every["sample"] == 2000 and every["rms_interval"] == (every["rms"], every["rms"])
    assert r.errors["rms_interval"][0] < every["rms"] < r.errors["rms_interval"][1]
    l2 = np.linalg.norm(r.field - exact.field) / np.linalg.norm(exact.field)
    assert 0.5 < r.errors["l2"] / l2 < 2
    assert exact.errors is None and "errors" not in exact.times
    assert r.times["sum"] > 0 and r.times["errors"] > 0 and "P2P" in r.times


def test_pairs_at_the_same_place_are_counted():
    x = np.zeros((3, 3))
    x[2] = 1
    r = nbody_fmm.evaluate(x, [1, 2, 4])
    assert r.coincident_pairs == 1
    assert np.allclose(r.potential, np.array([4, 4, 3]) / np.sqrt(3))
    assert nbody_fmm.evaluate(x, [1, 2, 4], x).coincident_pairs == 5


def test_results_do_not_depend_on_threads(rng):
    x, q = rng.random((3000, 3)), rng.normal(size=3000)
    results = [nbody_fmm.evaluate(x, q, method="fmm", threads=threads).field.tobytes() for threads in (1, 2, 5, None)]
    assert len(set(results)) == 1


@pytest.mark.parametrize("options", [{}, {"method": "fmm", "tolerance": 1e-6}, {"method": "treecode"}, {"box": 1.0}])
def test_a_frozen_solver_keeps_its_choice(rng, options):
    x, q = rng.random((3000, 3)), np.repeat([1.0, -1.0], 1500)
    solver = nbody_fmm.Solver(**options)
    free = solver(x, q)
    solver.freeze()
    fewer = slice(0, 40)
    assert nbody_fmm.evaluate(x[fewer], q[fewer], **options).choice != free.choice
    for solver in [solver, pickle.loads(pickle.dumps(solver))]:
        assert solver(x[fewer], q[fewer]).choice == free.choice
    assert np.linalg.norm(solver(x, q).field - free.field) <= 1e-4 * np.linalg.norm(free.field)


def test_nothing_to_freeze(rng):
    with pytest.raises(RuntimeError, match="freeze: there is no sum yet"):
        nbody_fmm.Solver().freeze()


@pytest.mark.parametrize("kernel, kappa", [("laplace", 0.0), ("yukawa:2", 2.0)])
def test_second_derivatives_agree_with_a_direct_sum(kernel, kappa, rng):
    n, tolerance = 2000, 1e-6
    x, q = rng.random((n, 3)), rng.normal(size=n)
    excluded = [[0, 1], [5, 3]]
    d = x[:, None] - x
    r = np.sqrt((d**2).sum(axis=2))
    np.fill_diagonal(r, np.inf)
    for i, j in excluded:
        r[i, j] = r[j, i] = np.inf
    with np.errstate(invalid="ignore"):
        e = np.where(np.isinf(r), 0, q * np.exp(-kappa * r))
    g, h = e * (1 + kappa * np.where(np.isinf(r), 0, r)) / r**3, e * (3 / r**5 + 3 * kappa / r**4 + kappa**2 / r**3)
    exact = np.stack([(h * d[..., a] * d[..., b] - (g if a == b else 0)).sum(axis=1) for a, b in AXES], axis=1)
    r = nbody_fmm.evaluate(x, q, kernel=kernel, method="fmm", tolerance=tolerance, exclusions=excluded, hessian=True)
    assert r.hessian.shape == (n, 6) and r.choice["method"] == "fmm"
    assert np.linalg.norm(r.hessian - exact) <= tolerance * np.linalg.norm(exact)
    if kernel == "laplace":
        assert np.abs(r.hessian[:, :3].sum(axis=1)).max() <= 1e-11 * np.abs(r.hessian).max()
    assert nbody_fmm.evaluate(x, q).hessian is None


AXES = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]


def test_second_derivatives_that_do_not_exist_are_refused():
    x, q = [[0.0, 0, 0], [1, 0, 0]], [1.0, 1]
    for options, message in [
        ({"kernel": "gauss:1"}, "hessian: the kernel gauss has none; only laplace and yukawa have"),
    ]:
        with pytest.raises(ValueError, match=message):
            nbody_fmm.evaluate(x, q, hessian=True, **options)
    with pytest.raises(TypeError, match="hessian: 2 is not True or False"):
        nbody_fmm.evaluate(x, q, hessian=2)
