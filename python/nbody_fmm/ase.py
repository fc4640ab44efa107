"""Coulomb energy and forces of point charges as a calculator of ASE.

Rock salt: the energy for each pair of ions, in units of Coulomb's constant over the distance, is Madelung's constant.

>>> import ase.build, ase.units, nbody_fmm.ase
>>> salt = ase.build.bulk("NaCl", "rocksalt", a=5.64, cubic=True)
>>> salt.set_initial_charges([1, -1] * 4)
>>> salt.calc = nbody_fmm.ase.CoulombCalculator(tolerance=1e-8)
>>> unit = ase.units.Hartree * ase.units.Bohr / (5.64 / 2)
>>> round(-salt.get_potential_energy() / 4 / unit, 6)
1.747565
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import numpy as np
from ase.atoms import Atoms
from ase.calculators.calculator import Calculator, PropertyNotImplementedError, all_changes
from ase.units import Bohr, Hartree

from ._coulomb import Coulomb

__all__ = ["CoulombCalculator"]


class CoulombCalculator(Calculator):
    """Energy in eV and forces in eV/Angstrom of the charges ``atoms.get_initial_charges()``, in elementary charges.

    Space is open, or periodic along all three axes with a rectangular cell whose longest side is up to 4 times its
    shortest one. A periodic cell stands in a conductor ("tin foil"), as with Ewald sums; a net charge has a uniform
    background. There is no stress: only the trace of the virial is known, and the pressure is energy / (3 volume). Add
    other interactions by ``ase.calculators.mixing.SumCalculator``.

    Parameters
    ----------
    tolerance : float
        Relative error of the forces, 1e-14 to 0.1.
    exclusions : (P, 2) array_like of int, optional
        Pairs of atoms that do not interact, by index from 0; in a periodic cell their nearest images.
    freeze : bool
        Keep method, order and opening angle of the first sum while the number of atoms stays the same: forces do not
        jump between the steps of a run. False chooses anew for each structure, so that the tolerance is measured; how much larger forces are
        with excluded pairs is measured for the first structure alone.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
    threads : int, optional
        Worker threads of sums on cores. Default: all cores.

    Raises
    ------
    ValueError
        For options out of range. When it calculates: for atoms without charges, cells that are not rectangular or
        are too long, and space that is periodic along some axes only.
    DeviceError
        If there is no such device.
    """

    implemented_properties: List[str] = ["energy", "free_energy", "forces"]

    def __init__(
        self,
        tolerance: float = 1e-4,
        *,
        exclusions: Any = None,
        freeze: bool = False,
        device: str = "auto",
        threads: Optional[int] = None,
    ) -> None:
        super().__init__()
        self._coulomb = Coulomb(
            Hartree * Bohr,
            tolerance,
            exclusions=exclusions,
            freeze=freeze,
            device=device,
            threads=threads,
        )

    def calculate(
        self,
        atoms: Optional[Atoms] = None,
        properties: Sequence[str] = ("energy",),
        system_changes: Sequence[str] = tuple(all_changes),
    ) -> None:
        """Calculates energy and forces; called by ASE."""
        super().calculate(atoms, properties, system_changes)
        if not self.atoms.has("initial_charges"):
            raise ValueError("the atoms have no charges: set them by atoms.set_initial_charges")
        charges = np.asarray(self.atoms.get_initial_charges(), dtype=float)
        energy, forces = self._coulomb(self.atoms.get_positions(), charges, _sides(self.atoms))
        self.results = {"energy": energy, "free_energy": energy, "forces": forces}

    def get_stress(self, atoms: Optional[Atoms] = None) -> np.ndarray:
        """Always refused.

        Raises
        ------
        PropertyNotImplementedError
            With the reason.
        """
        raise PropertyNotImplementedError(
            "the stress of Coulomb sums is not known, only its trace: the pressure is energy / (3 volume)"
        )


def _sides(atoms: Atoms) -> Optional[np.ndarray]:
    """Sides (3,) of the periodic cell in Angstrom, None in open space."""
    if not atoms.pbc.any():
        return None
    if not atoms.pbc.all():
        raise ValueError(f"pbc is {atoms.pbc.tolist()}: space must be periodic along all three axes or open along all")
    cell = np.asarray(atoms.cell)
    sides = np.diagonal(cell).copy()
    if np.count_nonzero(cell - np.diag(sides)) > 0:
        raise ValueError(f"the cell {cell.tolist()} is not rectangular along x, y, z: a diagonal cell is needed")
    return sides
