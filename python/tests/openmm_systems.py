"""What the tests of OpenMM share: contexts, energies and forces."""

import openmm as mm
from openmm import unit

NM, KJ = unit.nanometer, unit.kilojoule_per_mole


def nonbonded_of(system):
    return next(force for force in system.getForces() if isinstance(force, mm.NonbondedForce))


def context(system, positions, platform="Reference", integrator=None):
    made = mm.Context(system, integrator or mm.VerletIntegrator(0.001), mm.Platform.getPlatformByName(platform))
    made.setPositions(positions)
    return made


def energy_and_forces(where, groups=-1):
    state = where.getState(energy=True, forces=True, groups=groups)
    return state.getPotentialEnergy().value_in_unit(KJ), state.getForces(asNumpy=True).value_in_unit(KJ / NM)


def sums(system, positions, **options):
    return energy_and_forces(context(system, positions), **options)
