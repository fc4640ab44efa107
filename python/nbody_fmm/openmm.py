"""Coulomb forces for OpenMM in place of its particle mesh Ewald sums (PME).

>>> import nbody_fmm.openmm
>>> force = nbody_fmm.openmm.replace_pme(system, tolerance=1e-4)    # doctest: +SKIP

Needs an OpenMM that has ``PythonForce``; tested with 8.6.1.
"""

from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple

import numpy as np
import openmm as mm
from openmm import unit

from ._coulomb import Coulomb, check_box

__all__ = ["COULOMB_CONSTANT", "Electrostatics", "replace_pme"]

#: Coulomb's constant in kJ/mol nm / e**2, as OpenMM has it.
COULOMB_CONSTANT = 138.93545764438198

EWALD_METHODS = (mm.NonbondedForce.PME, mm.NonbondedForce.Ewald, mm.NonbondedForce.LJPME)


class Electrostatics:
    """The computation of the force that :func:`replace_pme` adds. It can be pickled, as OpenMM's serializer needs it.

    Parameters
    ----------
    charges : (N,) array
        Charges in units of the elementary charge.
    exclusions : (P, 2) array of int
        Rows of atoms that do not interact here.
    offsets : list of (str, int, float)
        Name of a global parameter, row of an atom, and the change of its charge for each unit of the parameter.
    **options
        Options of the sums: ``tolerance``, ``freeze``, ``device``, ``threads``.
    """

    def __init__(
        self,
        charges: np.ndarray,
        exclusions: np.ndarray,
        offsets: List[Tuple[str, int, float]],
        **options: Any,
    ) -> None:
        self._charges = charges
        self._offsets = offsets
        self._coulomb = Coulomb(COULOMB_CONSTANT, exclusions=exclusions, **options)

    def __call__(self, state: mm.State) -> Tuple[float, np.ndarray]:
        """Energy in kJ/mol and forces (N, 3) in kJ/mol/nm of an OpenMM state.

        Raises
        ------
        ValueError
            For a triclinic or too long box, and atoms that were added after the replacement. OpenMM turns it into an
            ``OpenMMException`` with the same text.
        """
        x = state.getPositions(asNumpy=True).value_in_unit(unit.nanometer)
        if len(x) != len(self._charges):
            raise ValueError(
                f"the system has {len(x)} particles but had {len(self._charges)} when replace_pme was called: "
                "call it after the last particle was added"
            )
        charges = self._charges
        if self._offsets:
            parameters, charges = state.getParameters(), charges.copy()
            for name, row, change in self._offsets:
                charges[row] += change * parameters[name]
        try:
            return self._coulomb(x, charges, _sides(state.getPeriodicBoxVectors()))
        except KeyboardInterrupt:
            # OpenMM makes an OpenMMException of it, with this text.
            raise RuntimeError("interrupted by Ctrl-C") from None


def replace_pme(
    system: mm.System,
    tolerance: float = 1e-4,
    *,
    force_group: Optional[int] = None,
    freeze: bool = True,
    device: str = "auto",
    threads: Optional[int] = None,
) -> mm.PythonForce:
    """Replaces the PME or Ewald electrostatics of a system by sums of nbody_fmm.

    Changes the system: its ``NonbondedForce`` loses its charges and keeps the Lennard-Jones interactions, with the same
    cutoff, switching function and dispersion correction, and the exceptions (1-4 pairs) with their own charge products.
    Call it before you make a ``Context``. Boxes may change during a run, as under a barostat.

    Parameters
    ----------
    system : openmm.System
        With one ``NonbondedForce`` of method ``PME``, ``Ewald`` or ``LJPME`` and a rectangular box whose longest side
        is up to 4 times its shortest one. With ``LJPME`` the mesh for Lennard-Jones stays.
    tolerance : float
        Relative error of the electrostatic forces, 1e-14 to 0.1.
    force_group : int, optional
        Force group of the new force, 0 to 31, for multiple time steps. Default: that of the ``NonbondedForce``.
    freeze : bool
        Choose method, order and opening angle in the first step and keep them for all contexts of this system, so that
        forces do not jump during a run. False chooses anew in every step.
    device : str
        Where to sum: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
    threads : int, optional
        Worker threads of sums on cores. Default: all cores.

    Returns
    -------
    openmm.PythonForce
        The new force, already part of the system.

    Raises
    ------
    TypeError
        If `system` is no ``openmm.System``.
    ValueError
        For systems that cannot be treated, with the reason, and options out of range. The system is unchanged then.
    OpenMMException
        From the first step, if there is no such device.
    """
    if not isinstance(system, mm.System):
        raise TypeError(f"system: an openmm.System is needed, not {type(system).__name__}")
    nonbonded = _nonbonded_force(system)
    _check(system, nonbonded)
    if force_group is None:
        force_group = nonbonded.getForceGroup()
    elif not (isinstance(force_group, int) and 0 <= force_group <= 31):
        raise ValueError(f"force_group: a whole number from 0 to 31 is needed, not {force_group!r}")

    particles = [nonbonded.getParticleParameters(i) for i in range(nonbonded.getNumParticles())]
    charges = np.array([charge.value_in_unit(unit.elementary_charge) for charge, _, _ in particles])
    exceptions = [nonbonded.getExceptionParameters(i)[:2] for i in range(nonbonded.getNumExceptions())]
    indices = range(nonbonded.getNumParticleParameterOffsets())
    offsets = [nonbonded.getParticleParameterOffset(i) for i in indices]
    electrostatics = Electrostatics(
        charges,
        np.array(exceptions, dtype=np.int64).reshape(-1, 2),
        [(name, row, change) for name, row, change, _, _ in offsets if change != 0],
        tolerance=tolerance,
        freeze=freeze,
        device=device,
        threads=threads,
    )

    for i, (_, sigma, epsilon) in enumerate(particles):
        nonbonded.setParticleParameters(i, 0.0, sigma, epsilon)
    for i, (name, row, _, sigma, epsilon) in enumerate(offsets):
        nonbonded.setParticleParameterOffset(i, name, row, 0.0, sigma, epsilon)
    if nonbonded.getNonbondedMethod() != mm.NonbondedForce.LJPME:
        nonbonded.setNonbondedMethod(mm.NonbondedForce.CutoffPeriodic)
    force = mm.PythonForce(electrostatics)
    force.setName("nbody_fmm electrostatics")
    force.setUsesPeriodicBoundaryConditions(True)
    force.setForceGroup(force_group)
    system.addForce(force)
    return force


def _nonbonded_force(system: mm.System) -> mm.NonbondedForce:
    found = [force for force in system.getForces() if isinstance(force, mm.NonbondedForce)]
    if len(found) != 1:
        raise ValueError(f"the system has {len(found)} NonbondedForces: exactly one is needed")
    return found[0]


def _check(system: mm.System, nonbonded: mm.NonbondedForce) -> None:
    """Refuses what the sums cannot replace."""
    if nonbonded.getNonbondedMethod() not in EWALD_METHODS:
        names = {getattr(mm.NonbondedForce, n): n for n in ("NoCutoff", "CutoffNonPeriodic", "CutoffPeriodic")}
        raise ValueError(
            f"the NonbondedForce has the method {names[nonbonded.getNonbondedMethod()]}, which has no sum over images: "
            "PME, Ewald or LJPME is needed"
        )
    if not nonbonded.getIncludeDirectSpace():
        raise ValueError("the NonbondedForce leaves out its direct space part: nothing else can replace its other part")
    if nonbonded.getNumParticles() != system.getNumParticles():
        raise ValueError(
            f"the NonbondedForce has {nonbonded.getNumParticles()} particles and the system {system.getNumParticles()}"
        )
    if any(isinstance(force, mm.MonteCarloFlexibleBarostat) for force in system.getForces()):
        raise ValueError("a MonteCarloFlexibleBarostat makes the box triclinic: the box must stay rectangular")
    check_box(_sides(system.getDefaultPeriodicBoxVectors()))


def _sides(vectors: Any) -> np.ndarray:
    """Sides (3,) in nm of a box given by its vectors."""
    rows = np.array([vector.value_in_unit(unit.nanometer) for vector in vectors])
    sides = np.diagonal(rows).copy()
    if np.count_nonzero(rows - np.diag(sides)) > 0 or not all(math.isfinite(side) for side in sides):
        raise ValueError(f"the box is triclinic, with vectors {rows.tolist()} nm: a rectangular box is needed")
    return sides
