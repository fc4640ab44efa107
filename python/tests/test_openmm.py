"""OpenMM with our sums in place of PME: forces, energies, boxes. Reference: OpenMM's Ewald sum in double precision."""

import copy

import numpy as np
import pytest
from conftest import client, run_examples

mm = client("openmm")
from openmm import app  # noqa: E402
from openmm_systems import KJ, NM, context, energy_and_forces, nonbonded_of, sums  # noqa: E402

from nbody_fmm.openmm import replace_pme  # noqa: E402


def exact_copy(system):
    """A copy of a system with an Ewald sum whose error is below 1e-7."""
    made = copy.deepcopy(system)
    nonbonded_of(made).setNonbondedMethod(mm.NonbondedForce.Ewald)
    nonbonded_of(made).setEwaldErrorTolerance(1e-8)
    return made


def without_lennard_jones(system):
    """The system, in which only charges act."""
    nonbonded = nonbonded_of(system)
    for i in range(nonbonded.getNumParticles()):
        charge, sigma, _ = nonbonded.getParticleParameters(i)
        nonbonded.setParticleParameters(i, charge, sigma, 0.0)
    for i in range(nonbonded.getNumExceptions()):
        first, second, product, sigma, _ = nonbonded.getExceptionParameters(i)
        nonbonded.setExceptionParameters(i, first, second, product, sigma, 0.0)
    return system


def assert_close(forces, expected, tolerance):
    """The tolerance bounds the rms; single atoms may have larger errors."""
    error = np.linalg.norm(forces - expected, axis=1)
    size = np.linalg.norm(expected, axis=1)
    scale = np.sqrt(np.mean(size**2))
    assert np.sqrt(np.mean(error**2)) / scale <= tolerance
    assert np.quantile(error, 0.99) / scale <= 4 * tolerance
    assert np.max(error) / scale <= 10 * tolerance


@pytest.fixture(scope="session")
def water():
    """TIP3P water in a box of 1.9 nm: a function that makes the system, and positions (651, 3) in nm at rest."""
    field = app.ForceField("tip3p.xml")
    modeller = app.Modeller(app.Topology(), [])
    modeller.addSolvent(field, boxSize=mm.Vec3(1.9, 1.9, 1.9))

    def make(method=app.PME, **options):
        return field.createSystem(modeller.topology, nonbondedMethod=method, nonbondedCutoff=0.9 * NM, **options)

    where = context(make(), modeller.positions, "CPU")
    mm.LocalEnergyMinimizer.minimize(where, maxIterations=50)
    return make, where.getState(positions=True).getPositions(asNumpy=True).value_in_unit(NM)


@pytest.fixture(scope="session")
def exact(water):
    """Energy and forces of the charges in the box of water."""
    make, positions = water
    return sums(without_lennard_jones(exact_copy(make())), positions)


def chains(rng, molecules=24, side=2.0):
    """Chains of five charged atoms with bonds, excluded pairs and scaled 1-4 pairs, in a periodic box."""
    system, nonbonded, bonds, positions = mm.System(), mm.NonbondedForce(), [], []
    system.setDefaultPeriodicBoxVectors([side, 0, 0], [0, side, 0], [0, 0, side])
    corners = np.stack(np.meshgrid(*[np.arange(3)] * 3), axis=-1).reshape(-1, 3)[:molecules] * side / 3
    for corner in corners:
        for k, charge in enumerate([0.3, -0.5, 0.4, -0.6, 0.4]):
            system.addParticle(12.0)
            nonbonded.addParticle(charge, 0.2, 0.3)
            positions.append(corner + [0.1 * k, 0.07 * (k % 2), 0.05 * (k // 2)] + rng.normal(scale=0.01, size=3))
            if k > 0:
                bonds.append((len(positions) - 2, len(positions) - 1))
    nonbonded.createExceptionsFromBonds(bonds, 0.8333, 0.5)
    nonbonded.setNonbondedMethod(nonbonded.PME)
    nonbonded.setCutoffDistance(0.9)
    system.addForce(nonbonded)
    return system, np.array(positions)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("platform", ["Reference", "CPU"])
def test_forces_and_energy_of_water_match_an_exact_sum(water, exact, tolerance, platform):
    make, positions = water
    system = make()
    replace_pme(system, tolerance, force_group=1)
    energy, forces = energy_and_forces(context(system, positions, platform), {1})
    assert_close(forces, exact[1], tolerance)
    assert abs(energy - exact[0]) <= 0.1 * tolerance * abs(exact[0])


def test_excluded_and_scaled_pairs_keep_their_own_charges(rng):
    system, positions = chains(rng)
    without_lennard_jones(system)
    expected = sums(exact_copy(system), positions)
    nonbonded = nonbonded_of(system)
    products = [nonbonded.getExceptionParameters(i)[2]._value for i in range(nonbonded.getNumExceptions())]
    assert 0.0 in products and any(product != 0 for product in products)
    replace_pme(system, 1e-5)
    energy, forces = sums(system, positions)
    assert_close(forces, expected[1], 1e-5)
    assert abs(energy - expected[0]) <= 1e-5 * abs(expected[0])


def test_lennard_jones_stays_as_it_was(water):
    make, positions = water
    system = make(switchDistance=0.7 * NM)
    alone = copy.deepcopy(system)
    for i in range(alone.getNumParticles()):
        _, sigma, epsilon = nonbonded_of(alone).getParticleParameters(i)
        nonbonded_of(alone).setParticleParameters(i, 0.0, sigma, epsilon)
    replace_pme(system, force_group=5)
    assert nonbonded_of(system).getNonbondedMethod() == mm.NonbondedForce.CutoffPeriodic
    assert nonbonded_of(system).getUseSwitchingFunction() and nonbonded_of(system).getUseDispersionCorrection()
    (energy, forces), expected = sums(system, positions, groups={0}), sums(alone, positions)
    assert energy == pytest.approx(expected[0], rel=1e-9)
    np.testing.assert_allclose(forces, expected[1], rtol=0, atol=1e-9 * np.abs(expected[1]).max())


def test_lennard_jones_mesh_stays(water, exact):
    make, positions = water
    system = make(app.LJPME)
    nonbonded_of(system).setPMEParameters(6.5, 128, 128, 128)
    expected = sums(system, positions)
    replace_pme(system)
    assert nonbonded_of(system).getNonbondedMethod() == mm.NonbondedForce.LJPME
    energy, forces = sums(system, positions)
    assert np.linalg.norm(forces - expected[1]) <= 1e-4 * np.linalg.norm(exact[1])
    assert abs(energy - expected[0]) <= 1e-4 * abs(exact[0])


def test_new_force_has_its_group(water, exact):
    make, positions = water
    system = make()
    nonbonded_of(system).setForceGroup(3)
    assert replace_pme(copy.deepcopy(system)).getForceGroup() == 3
    force = replace_pme(system, force_group=7)
    assert force.getForceGroup() == 7
    where = context(system, positions)
    assert energy_and_forces(where, {7})[0] == pytest.approx(exact[0], rel=1e-4)
    parts = [energy_and_forces(where, {group})[0] for group in (0, 3, 7)]
    assert sum(parts) == pytest.approx(energy_and_forces(where)[0], rel=1e-9)


def test_multiple_time_steps_conserve_energy(water):
    make, positions = water
    system = make(rigidWater=False)
    for force in system.getForces():
        force.setForceGroup(1 if isinstance(force, mm.NonbondedForce) else 0)
    replace_pme(system)
    where = context(system, positions, "CPU", mm.MTSIntegrator(0.001, [(1, 1), (0, 4)]))
    mm.LocalEnergyMinimizer.minimize(where, maxIterations=30)
    where.setVelocitiesToTemperature(300, 1)

    def total():
        state = where.getState(energy=True)
        return (state.getPotentialEnergy() + state.getKineticEnergy()).value_in_unit(KJ)

    where.getIntegrator().step(5)
    before, kinetic = total(), where.getState(energy=True).getKineticEnergy().value_in_unit(KJ)
    where.getIntegrator().step(20)
    assert abs(total() - before) < 0.01 * kinetic


def scaled(positions, factor):
    """Molecules of water moved as a barostat moves them: their centers are scaled."""
    centers = positions.reshape(-1, 3, 3).mean(axis=1)
    return positions + np.repeat((factor - 1) * centers, 3, axis=0)


def test_derivative_by_volume_matches_pme(water):
    make, positions = water
    system = make()
    reference = context(exact_copy(system), positions)
    replace_pme(system)
    ours = context(system, positions)
    slopes = []
    for where in (ours, reference):
        energies = []
        for factor in (1 - 1e-3, 1 + 1e-3):
            side = 1.9 * factor
            where.setPeriodicBoxVectors([side, 0, 0], [0, side, 0], [0, 0, side])
            where.setPositions(scaled(positions, factor))
            energies.append(where.getState(energy=True).getPotentialEnergy().value_in_unit(KJ))
        slopes.append((energies[1] - energies[0]) / (1.9**3 * ((1 + 1e-3) ** 3 - (1 - 1e-3) ** 3)))
    # In kJ/mol/nm**3: 0.3 are 5 bar.
    assert slopes[0] == pytest.approx(slopes[1], rel=0, abs=0.3)


@pytest.mark.parametrize(
    "barostat, arguments",
    [
        ("MonteCarloBarostat", (-2000, 300, 1)),
        ("MonteCarloAnisotropicBarostat", ((-2000, -2000, -2000), 300, True, True, True, 1)),
        ("MonteCarloMembraneBarostat", (-2000, 0, 300, 0, 0, 1)),
    ],
)
def test_energy_is_right_after_a_barostat_changed_the_box(water, barostat, arguments):
    make, positions = water
    system = make()
    plain = exact_copy(without_lennard_jones(make()))
    replace_pme(system, force_group=1)
    # At negative pressure the box grows: its sides must not come below two cutoffs.
    system.getForce(system.addForce(getattr(mm, barostat)(*arguments))).setRandomNumberSeed(1)
    integrator = mm.LangevinMiddleIntegrator(300, 1, 0.002)
    integrator.setRandomNumberSeed(1)
    where = context(system, positions, "CPU", integrator)
    where.getIntegrator().step(60)
    state = where.getState(positions=True, energy=True, forces=True, groups={1})
    box = state.getPeriodicBoxVectors()
    assert any(box[axis][axis] != 1.9 * NM for axis in range(3))
    reference = context(plain, state.getPositions())
    reference.setPeriodicBoxVectors(*box)
    energy, forces = energy_and_forces(reference)
    assert abs(state.getPotentialEnergy().value_in_unit(KJ) - energy) <= 1e-4 * abs(energy)
    assert_close(state.getForces(asNumpy=True).value_in_unit(KJ / NM), forces, 1e-4)


def test_charges_follow_global_parameters(rng):
    system, positions = chains(rng)
    nonbonded = nonbonded_of(without_lennard_jones(system))
    nonbonded.addGlobalParameter("shift", 0.0)
    nonbonded.addParticleParameterOffset("shift", 1, 0.7, 0.0, 0.0)
    nonbonded.addParticleParameterOffset("shift", 8, -0.7, 0.0, 0.0)
    products = [nonbonded.getExceptionParameters(i)[2]._value for i in range(nonbonded.getNumExceptions())]
    nonbonded.addExceptionParameterOffset("shift", np.flatnonzero(products)[0], 0.2, 0.0, 0.0)
    reference = context(exact_copy(system), positions)
    replace_pme(system, 1e-5)
    ours = context(system, positions)
    energies = []
    for value in (0.0, 0.5, 1.0):
        ours.setParameter("shift", value)
        reference.setParameter("shift", value)
        (energy, forces), expected = energy_and_forces(ours), energy_and_forces(reference)
        assert_close(forces, expected[1], 1e-5)
        assert abs(energy - expected[0]) <= 1e-5 * abs(expected[0])
        energies.append(energy)
    assert len(set(energies)) == 3


def test_charged_boxes_have_the_background_of_pme(rng):
    system, positions = chains(rng)
    nonbonded = nonbonded_of(without_lennard_jones(system))
    for i in range(0, 60, 5):
        nonbonded.setParticleParameters(i, 0.8, 0.2, 0.3)
    expected = sums(exact_copy(system), positions)
    replace_pme(system, 1e-5)
    energy, forces = sums(system, positions)
    assert_close(forces, expected[1], 1e-5)
    assert abs(energy - expected[0]) <= 1e-5 * abs(expected[0])


def test_systems_without_charges_keep_their_energy(rng):
    system, positions = chains(rng)
    for i in range(system.getNumParticles()):
        nonbonded_of(system).setParticleParameters(i, 0.0, 0.2, 0.3)
    expected = sums(system, positions)
    replace_pme(system)
    assert sums(system, positions)[0] == pytest.approx(expected[0], rel=1e-9)


def test_copies_and_serialized_systems_have_the_same_bits(water):
    make, positions = water
    system = make()
    replace_pme(system)
    energy, forces = sums(system, positions)
    for other in (copy.deepcopy(system), mm.XmlSerializer.deserialize(mm.XmlSerializer.serialize(system))):
        again = sums(other, positions)
        assert again[0] == energy
        np.testing.assert_array_equal(again[1], forces)


def test_forces_keep_the_tolerance_without_freeze(water, exact):
    make, positions = water
    system = make()
    replace_pme(system, freeze=False, force_group=1)
    assert_close(sums(system, positions, groups={1})[1], exact[1], 1e-4)


def test_examples_of_the_page_run():
    names = run_examples("OpenMM")
    assert names["simulation"].currentStep == 10
    assert names["force"].getForceGroup() == 0 and isinstance(names["integrator"], mm.MTSIntegrator)
