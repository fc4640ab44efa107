"""Systems, options and boxes that cannot have our sums in place of PME are refused with the reason."""

import numpy as np
import pytest
from conftest import client

mm = client("openmm")
from openmm_systems import context, nonbonded_of, sums  # noqa: E402

from nbody_fmm.openmm import replace_pme  # noqa: E402


def two_charges(method="PME", sides=(2.0, 2.0, 2.0)):
    system, nonbonded = mm.System(), mm.NonbondedForce()
    system.setDefaultPeriodicBoxVectors(*np.diag(sides))
    for charge in (1.0, -1.0):
        system.addParticle(1.0)
        nonbonded.addParticle(charge, 0.2, 0.0)
    nonbonded.setNonbondedMethod(getattr(nonbonded, method))
    nonbonded.setCutoffDistance(0.4)
    system.addForce(nonbonded)
    return system


def triclinic():
    system = two_charges()
    system.setDefaultPeriodicBoxVectors([2, 0, 0], [0.5, 2, 0], [0, 0, 2])
    return system


def without_nonbonded():
    system = two_charges()
    system.removeForce(0)
    return system


def with_two():
    system = two_charges()
    system.addForce(mm.NonbondedForce(nonbonded_of(system)))
    return system


def with_flexible_barostat():
    system = two_charges()
    system.addForce(mm.MonteCarloFlexibleBarostat(1, 300))
    return system


def without_direct_space():
    system = two_charges()
    nonbonded_of(system).setIncludeDirectSpace(False)
    return system


def with_a_new_particle():
    system = two_charges()
    system.addParticle(1.0)
    return system


@pytest.mark.parametrize(
    "make, reason",
    [
        (lambda: two_charges("NoCutoff"), "method NoCutoff, which has no sum over images: PME, Ewald or LJPME"),
        (lambda: two_charges("CutoffNonPeriodic"), "method CutoffNonPeriodic"),
        (lambda: two_charges("CutoffPeriodic"), "method CutoffPeriodic"),
        (lambda: two_charges(sides=(1, 1, 4.01)), "box of 1 x 1 x 4.01: its longest side may be up to 4 times"),
        (triclinic, "the box is triclinic"),
        (without_nonbonded, "the system has 0 NonbondedForces: exactly one is needed"),
        (with_two, "the system has 2 NonbondedForces: exactly one is needed"),
        (with_flexible_barostat, "MonteCarloFlexibleBarostat makes the box triclinic"),
        (without_direct_space, "leaves out its direct space part"),
        (with_a_new_particle, "the NonbondedForce has 2 particles and the system 3"),
    ],
)
def test_refused_systems_stay_as_they_are(make, reason):
    system = make()
    before = mm.XmlSerializer.serialize(system)
    with pytest.raises(ValueError) as caught:
        replace_pme(system)
    assert reason in str(caught.value)
    assert mm.XmlSerializer.serialize(system) == before


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": 1.0}, "tolerance"),
        ({"threads": 0}, "threads"),
        ({"device": "abacus"}, "device"),
        ({"force_group": 32}, "force_group: a whole number from 0 to 31 is needed, not 32"),
        ({"force_group": "fast"}, "force_group: a whole number from 0 to 31 is needed, not 'fast'"),
    ],
)
def test_options_out_of_range_are_refused(options, reason):
    system = two_charges()
    before = mm.XmlSerializer.serialize(system)
    with pytest.raises(ValueError, match=reason):
        replace_pme(system, **options)
    assert mm.XmlSerializer.serialize(system) == before


def test_what_is_no_system_is_refused():
    with pytest.raises(TypeError, match="an openmm.System is needed, not str"):
        replace_pme("water")


@pytest.mark.parametrize(
    "vectors, reason",
    [
        (([2, 0, 0], [0.5, 2, 0], [0, 0, 2]), "the box is triclinic"),
        (([1, 0, 0], [0, 1, 0], [0, 0, 5]), "box of 1 x 1 x 5: its longest side may be up to 4 times its shortest"),
    ],
)
def test_boxes_of_contexts_are_refused_with_the_reason(vectors, reason):
    system = two_charges()
    replace_pme(system)
    where = context(system, np.array([[0.1, 0.2, 0.3], [0.8, 0.9, 0.4]]))
    where.getState(energy=True)
    where.setPeriodicBoxVectors(*vectors)
    with pytest.raises(mm.OpenMMException, match=reason):
        where.getState(energy=True)


def test_particles_added_later_are_refused():
    system = two_charges()
    replace_pme(system)
    system.addParticle(1.0)
    nonbonded_of(system).addParticle(0.0, 0.2, 0.0)
    with pytest.raises(mm.OpenMMException, match="the system has 3 particles but had 2 when replace_pme was called"):
        sums(system, np.eye(3))
