"""Coulomb sums of a run: choices that are kept, boxes and numbers of atoms that change. Reference: direct sums."""

import pickle
import sys
import threading

import numpy as np
import pytest

import nbody_fmm
from nbody_fmm._coulomb import Coulomb

KEPT = ("method", "precision", "order", "theta", "leaf_size")


@pytest.fixture
def ions(rng):
    """1,500 ions on a distorted lattice in a box of 3: positions, charges, sides."""
    x = np.indices((15, 10, 10)).reshape(3, -1).T / [5, 3.34, 3.34] + rng.normal(scale=0.02, size=(1500, 3))
    return x, (-1.0) ** np.arange(1500), np.array([3.0, 3.0, 3.0])


def direct(x, q, box, constant=1.0, exclusions=None):
    r = nbody_fmm.evaluate(x, q, box=box, method="direct", exclusions=exclusions)
    return 0.5 * constant * q @ r.potential, constant * q[:, None] * r.field


def error(forces, expected):
    return np.linalg.norm(forces - expected) / np.linalg.norm(expected)


def kept(coulomb):
    return [coulomb._made[2]._options[name] for name in KEPT]


@pytest.mark.parametrize("periodic", [False, True])
def test_energy_and_forces_match_direct_sums(ions, periodic):
    x, q, box = ions
    box = box if periodic else None
    energy, forces = Coulomb(2.5, 1e-5)(x, q, box)
    expected = direct(x, q, box, 2.5)
    assert error(forces, expected[1]) <= 1e-5
    assert energy == pytest.approx(expected[0], rel=1e-5)


def test_tolerance_holds_without_excluded_pairs(rng):
    x = rng.random((1000, 3)) * 3
    x = np.concatenate([x, x + rng.normal(scale=0.003, size=x.shape)])
    q = np.repeat([1.0, -1.0], 1000)
    pairs = [(i, i + 1000) for i in range(1000)]
    box = np.full(3, 3.0)
    energy, forces = Coulomb(1.0, 1e-4, exclusions=pairs)(x, q, box)
    expected = direct(x, q, box, exclusions=pairs)
    assert error(forces, expected[1]) <= 1e-4


def test_shells_that_start_on_their_cores_have_double_precision(ions):
    x, q, box = ions
    coulomb = Coulomb(1.0, 1e-3, exclusions=[(0, 1500), (1, 1501)])
    coulomb(np.concatenate([x, x[:2]]), np.concatenate([q, -q[:2]]), box)
    assert coulomb._made[2]._options["precision"] == "f64"


def test_pairs_that_are_all_excluded_have_no_forces():
    for distance in (0.0, 1.0):
        x, q = np.diag([distance, 0, 0])[:2], np.array([1.0, -1.0])
        energy, forces = Coulomb(1.0, 1e-4, exclusions=[(0, 1)])(x, q, None)
        assert energy == 0 and not forces.any()


def test_choice_is_kept_while_the_box_changes(ions):
    x, q, box = ions
    coulomb = Coulomb(1.0, 1e-5)
    coulomb(x, q, box)
    choice = kept(coulomb)
    # Of method, precision, order, opening angle and leaf size a mesh has no opening angle.
    assert None not in choice[:3] + choice[4:]
    for factor in (0.9, 1.0, 1.2):
        forces = coulomb(x * factor, q, box * factor)[1]
        assert kept(coulomb) == choice
        assert error(forces, direct(x * factor, q, box * factor)[1]) <= 1e-5


def test_choice_is_new_with_other_atoms_or_space(ions):
    x, q, box = ions
    coulomb = Coulomb(1.0, 1e-5)
    for rows, sides in ((40, box), (40, None), (1500, None), (1500, box)):
        forces = coulomb(x[:rows], q[:rows], sides)[1]
        assert error(forces, direct(x[:rows], q[:rows], sides)[1]) <= 1e-5
    again = Coulomb(1.0, 1e-5)
    again(x, q, box)
    assert kept(coulomb) == kept(again)


def test_choice_is_free_without_freeze(ions):
    x, q, box = ions
    coulomb = Coulomb(1.0, 1e-5, freeze=False)
    coulomb(x, q, box)
    assert kept(coulomb) == ["auto", "auto", None, None, None]


def test_freeze_is_yes_or_no():
    for freeze in ("a", 1, None):
        with pytest.raises(TypeError, match=f"freeze: {freeze!r}; expected True or False"):
            Coulomb(1.0, 1e-5, freeze=freeze)


def test_pickled_copies_give_the_same_bits(ions):
    x, q, box = ions
    coulomb = Coulomb(1.0, 1e-5, exclusions=[(0, 1)])
    energy, forces = coulomb(x, q, box)
    again = pickle.loads(pickle.dumps(coulomb))(x, q, box)
    assert again[0] == energy
    np.testing.assert_array_equal(again[1], forces)


def test_threads_with_different_boxes_share_one_object(ions):
    x, q, box = ions[0][:8], ions[1][:8], ions[2]
    coulomb, wrong = Coulomb(1.0, 1e-5), []
    coulomb(x, q, box)
    expected = {factor: coulomb(x, q, box * factor)[0] for factor in (1.0, 1.1)}

    def sums(factor):
        for _ in range(1000):
            if coulomb(x, q, box * factor)[0] != expected[factor]:
                wrong.append(factor)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=sums, args=(factor,)) for factor in 2 * list(expected)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert not wrong


def test_boxes_that_are_too_long_are_refused(ions):
    x, q, _ = ions
    coulomb = Coulomb(1.0, 1e-4)
    coulomb(x, q, np.array([1.0, 1.0, 4.0]))
    with pytest.raises(ValueError, match="box of 1 x 1 x 4.01: its longest side may be up to 4 times its shortest one"):
        coulomb(x, q, np.array([1.0, 1.0, 4.01]))
    with pytest.raises(ValueError, match="box of 1 x 1 x 0: its sides must be above 0"):
        coulomb(x, q, np.array([1.0, 1.0, 0.0]))


def test_atoms_at_one_place_are_reported(ions):
    x, q, box = ions
    coulomb = Coulomb(1.0, 1e-4)
    coulomb(x, q, box)
    x[7] = x[8]
    with pytest.warns(RuntimeWarning, match="1 pairs of atoms lie at one place"):
        coulomb(x, q, box)
    # Of excluded pairs nothing is left out.
    Coulomb(1.0, 1e-4, exclusions=[[7, 8]])(x, q, box)
