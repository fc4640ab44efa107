"""The calculator of ASE: Madelung's constant, forces as derivatives of the energy, refusals."""

import doctest

import numpy as np
import pytest
from conftest import client, run_examples

ase = client("ase")
import ase.build  # noqa: E402
from ase.calculators.calculator import PropertyNotImplementedError  # noqa: E402
from ase.units import Bohr, Hartree  # noqa: E402

import nbody_fmm  # noqa: E402
import nbody_fmm.ase  # noqa: E402
from nbody_fmm.ase import CoulombCalculator  # noqa: E402

COULOMB_CONSTANT = Hartree * Bohr


def salt(repeat=1, **options):
    atoms = ase.build.bulk("NaCl", "rocksalt", a=5.64, cubic=True).repeat(repeat)
    atoms.set_initial_charges([1.0 if symbol == "Na" else -1.0 for symbol in atoms.get_chemical_symbols()])
    atoms.calc = CoulombCalculator(**options)
    return atoms


def test_docstrings():
    failed, run = doctest.testmod(nbody_fmm.ase)
    assert run == 6 and failed == 0


@pytest.mark.parametrize("repeat", [1, 3, (1, 1, 4)])
def test_rock_salt_has_madelungs_constant(repeat):
    atoms = salt(repeat, tolerance=1e-9)
    energy = atoms.get_potential_energy() / (len(atoms) / 2)
    assert -energy * 2.82 / COULOMB_CONSTANT == pytest.approx(1.74756459463318, rel=1e-9)
    assert np.abs(atoms.get_forces()).max() < 1e-8 * COULOMB_CONSTANT / 2.82**2


@pytest.mark.parametrize("periodic", [True, False])
def test_forces_are_derivatives_of_the_energy(periodic):
    atoms = salt(2, tolerance=1e-10, freeze=True)
    atoms.pbc = periodic
    atoms.rattle(0.2, seed=1)
    forces = atoms.get_forces()
    for row, axis in ((0, 0), (7, 1), (33, 2)):
        energies = []
        for shift in (-1e-3, 1e-3):
            moved = atoms.copy()
            moved.positions[row, axis] += shift
            moved.calc = atoms.calc
            energies.append(moved.get_potential_energy())
        assert forces[row, axis] == pytest.approx((energies[0] - energies[1]) / 2e-3, rel=1e-5, abs=1e-6)


def test_forces_of_many_ions_keep_the_tolerance():
    atoms = salt(6, tolerance=1e-4)
    atoms.rattle(0.2, seed=1)
    charges = atoms.get_initial_charges()
    r = nbody_fmm.evaluate(atoms.positions, charges, box=atoms.cell.lengths(), method="direct")
    expected = COULOMB_CONSTANT * charges[:, None] * r.field
    error = np.linalg.norm(atoms.get_forces() - expected, axis=1) / np.sqrt(np.mean(np.sum(expected**2, axis=1)))
    assert np.sqrt(np.mean(error**2)) <= 1e-4 and np.quantile(error, 0.99) <= 4e-4 and error.max() <= 1e-3
    assert atoms.get_potential_energy() == pytest.approx(0.5 * COULOMB_CONSTANT * charges @ r.potential, rel=1e-5)


def test_pressure_is_a_third_of_the_energy_density():
    energies = []
    for factor in (0.999, 1.001):
        atoms = salt(2, tolerance=1e-9)
        atoms.rattle(0.2, seed=1)
        atoms.set_cell(atoms.cell * factor, scale_atoms=True)
        energies.append((atoms.get_potential_energy(), atoms.get_volume()))
    atoms = salt(2, tolerance=1e-9)
    atoms.rattle(0.2, seed=1)
    slope = (energies[1][0] - energies[0][0]) / (energies[1][1] - energies[0][1])
    assert -slope == pytest.approx(atoms.get_potential_energy() / (3 * atoms.get_volume()), rel=1e-5)


def test_excluded_pairs_do_not_interact():
    atoms = ase.Atoms("H3", positions=[[0, 0, 0], [1, 0, 0], [0, 2, 0]])
    atoms.set_initial_charges([1, 1, -1])
    atoms.calc = CoulombCalculator(exclusions=[(0, 1)], tolerance=1e-10)
    expected = -(1 / 2 + 1 / np.sqrt(5))
    assert atoms.get_potential_energy() == pytest.approx(COULOMB_CONSTANT * expected, rel=1e-9)


def test_new_charges_give_a_new_energy():
    atoms = ase.Atoms("H2", positions=[[0, 0, 0], [2, 0, 0]])
    atoms.calc = CoulombCalculator()
    for charges in ([1, 1], [1, -1], [0, 0]):
        atoms.set_initial_charges(charges)
        assert atoms.get_potential_energy() == pytest.approx(COULOMB_CONSTANT * charges[0] * charges[1] / 2, rel=1e-6)


def slab(atoms):
    atoms.pbc = [True, True, False]


def sheared(atoms):
    atoms.cell[1, 0] = 0.5


def long(atoms):
    atoms.cell[2, 2] = 4.01 * 5.64


def flat(atoms):
    atoms.cell[2, 2] = 0.0


def without_charges(atoms):
    del atoms.arrays["initial_charges"]


@pytest.mark.parametrize(
    "change, reason",
    [
        (slab, r"pbc is \[True, True, False\]: space must be periodic along all three axes or open along all"),
        (sheared, "is not rectangular along x, y, z: a diagonal cell is needed"),
        (long, "box of 5.64 x 5.64 x 22.62: its longest side may be up to 4 times its shortest one"),
        (flat, "box of 5.64 x 5.64 x 0: its sides must be above 0"),
        (without_charges, "the atoms have no charges: set them by atoms.set_initial_charges"),
    ],
)
def test_refused_atoms(change, reason):
    atoms = salt()
    change(atoms)
    with pytest.raises(ValueError, match=reason):
        atoms.get_potential_energy()


def test_stress_is_refused_with_the_reason():
    with pytest.raises(PropertyNotImplementedError, match="only its trace: the pressure is energy"):
        salt().get_stress()


@pytest.mark.parametrize("options", [{"tolerance": 0.0}, {"threads": 0}, {"device": "abacus"}, {"exclusions": [1, 2]}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        CoulombCalculator(**options)


def test_examples_of_the_page_run():
    names = run_examples("ASE")
    assert names["energy"] < 0 and names["forces"].shape == (8, 3)
