"""Gradients in JAX and PyTorch agree with those that JAX and PyTorch find for direct sums in float64."""

import numpy as np
import pytest
from differentiate import KERNELS, direct, ewald

import nbody_fmm

EXACT = {"method": "direct", "precision": "f64"}


def points(rng, n=60, m=25, box=1.0):
    """Sources, strengths, targets, and weights of the potentials at the targets and at the sources."""
    x, q, y = rng.random((n, 3)) * box, rng.normal(size=n), rng.random((m, 3)) * box
    return x, q, y, rng.normal(size=m), rng.normal(size=n)


def agree(found, expected, tolerance):
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        assert f.shape == e.shape and f.dtype == e.dtype
        assert np.abs(f - e).max() <= tolerance * np.abs(e).max()


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("own", [True, False], ids=["at the sources", "at targets"])
def test_potentials_of_exact_sums(library, name, own, rng):
    options, kernel = KERNELS[name]
    x, q, y, at_targets, at_sources = points(rng)
    arrays, w = ([x, q], at_sources) if own else ([x, q, y], at_targets)
    value, found = library.pull(lambda *a: library.sums.potential(*a, **options, **EXACT), arrays, w)
    reference, expected = library.pull(direct(library, kernel), arrays, w)
    agree([value, *found], [reference, *expected], 2e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_energies_of_exact_sums(library, name, rng):
    options, kernel = KERNELS[name]
    x, q, *_ = points(rng)
    potential = direct(library, kernel)
    value, found = library.pull(lambda x, q: library.sums.energy(x, q, **options, **EXACT), [x, q], np.float64(1.7))
    reference, expected = library.pull(lambda x, q: 0.5 * (q * potential(x, q)).sum(), [x, q], np.float64(1.7))
    agree([value, *found], [reference, *expected], 2e-12)


def test_excluded_pairs(library, rng):
    x, q, _, _, w = points(rng)
    pairs, kept = [[0, 1], [5, 3], [58, 0]], np.ones((60, 60))
    for i, j in pairs:
        kept[i, j] = kept[j, i] = 0
    value, found = library.pull(lambda *a: library.sums.potential(*a, exclusions=pairs, **EXACT), [x, q], w)
    reference, expected = library.pull(direct(library, KERNELS["laplace"][1], kept), [x, q], w)
    agree([value, *found], [reference, *expected], 2e-12)
    assert np.abs(expected[0] - library.pull(direct(library, KERNELS["laplace"][1]), [x, q], w)[1][0]).max() > 0.1


@pytest.mark.parametrize("own", [True, False], ids=["at the sources", "at targets"])
@pytest.mark.parametrize("neutral", [True, False], ids=["neutral", "charged"])
def test_periodic_boxes(library, own, neutral, rng):
    """Neither strengths nor weights need add up to zero: the background belongs to both."""
    box = np.array([0.9, 1.0, 1.2])
    x, q, y, at_targets, at_sources = points(rng, 24, 10, box)
    # Positions outside the box are those of an image.
    x[0] += 2 * box
    if neutral:
        q -= q.mean()
    arrays, w = ([x, q], at_sources) if own else ([x, q, y], at_targets)
    value, found = library.pull(lambda *a: library.sums.potential(*a, box=box, method="direct"), arrays, w)
    reference, expected = library.pull(ewald(library, box), arrays, w)
    agree([value, *found], [reference, *expected], 1e-9)
    if own and not neutral:
        value, found = library.pull(lambda *a: library.sums.energy(*a, box=box, method="direct"), [x, q], np.float64(1))
        potential = ewald(library, box)
        reference, expected = library.pull(lambda x, q: 0.5 * (q * potential(x, q)).sum(), [x, q], np.float64(1))
        agree([value, *found], [reference, *expected], 1e-9)


# What the direct sums above do not have.
DIFFERENCES = [
    {"softening": "spline:0.05"},
    {"softening": "spline:0.05", "box": 1.0},
    {"box": (1.0, 2.0, 3.0)},
    {"box": 1.0, "exclusions": [[0, 1], [2, 5]]},
    {"kernel": "yukawa:2", "exclusions": [[0, 1], [2, 5]]},
]


@pytest.mark.parametrize("options", DIFFERENCES, ids=str)
def test_finite_differences(library, options, rng):
    x, q, _, _, w = points(rng, 12)
    options = {**options, "method": "direct"}
    _, found = library.pull(lambda *a: library.sums.potential(*a, **options), [x, q], w)
    _, force = library.pull(lambda *a: library.sums.energy(*a, **options), [x, q], np.float64(1))

    def values(x, q):
        potential = nbody_fmm.evaluate(x, q, **options).potential
        return w @ potential, 0.5 * q @ potential

    h = 1e-5
    for array, of_potential, of_energy in zip((x, q), found, force):
        for at in [(0, 0), (1, 2), (5, 1)] if array is x else [(0,), (5,)]:
            kept = array[at]
            array[at] = kept + h
            above = values(x, q)
            array[at] = kept - h
            below = values(x, q)
            array[at] = kept
            differences = [(a - b) / (2 * h) for a, b in zip(above, below)]
            assert np.allclose([of_potential[at], of_energy[at]], differences, rtol=1e-6, atol=1e-5)


def errors(found, expected):
    """rms, 99th percentile and maximum of the relative error of a row; a row below the median counts as the median."""
    off, size = [np.linalg.norm(a.reshape(len(a), -1), axis=1) for a in (found - expected, expected)]
    relative = off / np.maximum(size, np.median(size))
    return np.sqrt((relative**2).mean()), np.percentile(relative, 99), relative.max()


@pytest.mark.parametrize("case", ["at the sources", "at targets", "box"])
def test_the_tolerance_holds_for_gradients(library, case, rng):
    x, q, y, at_targets, w = points(rng, 1500, 1000)
    options = {"method": "fmm", "leaf_size": 32}
    arrays, of = [x, q], direct(library, KERNELS["laplace"][1])
    if case == "at targets":
        arrays, w = [x, q, y], at_targets
    elif case == "box":
        # Ewald's sum of the library, which test_periodic_boxes compares.
        options["box"] = 1.0
        of = lambda *a: library.sums.potential(*a, box=1.0, method="direct")
    reference, expected = library.pull(of, arrays, w)
    for tolerance in (1e-3, 1e-6):
        value, found = library.pull(lambda *a: library.sums.potential(*a, tolerance=tolerance, **options), arrays, w)
        for name, f, e in zip(["value", "sources", "strengths", "targets"], [value, *found], [reference, *expected]):
            rms, p99, worst = errors(f, e)
            print(f"{case} {tolerance:.0e} {name}: rms {rms:.1e}, 99 % {p99:.1e}, max {worst:.1e}")
            # Not the direct sum, whose error is that of rounding.
            assert 1e-12 < rms <= tolerance and p99 <= 5 * tolerance and worst <= 20 * tolerance
