"""Coulomb energy and forces of a step: what the clients of molecular dynamics packages share."""

from __future__ import annotations

import warnings
from typing import Any, Dict, Optional, Tuple

import numpy as np

from . import Solver, _arrays

# Sides of periodic boxes differ by up to this factor.
MOST_ELONGATED = 4.0

# The smallest tolerance that sums accept.
SMALLEST_TOLERANCE = 1e-14

# Forces that nearly vanish without excluded pairs, as in a crystal, reduce the tolerance no further.
SMALLEST_SHARE = 1e-3


class Coulomb:
    """Energy and forces of point charges, constant * sum of q_i q_j / r over all pairs that are not excluded.

    The tolerance holds for the forces without excluded pairs. Sums contain these pairs first, and are larger with them:
    in water four times. This is measured for the first structure, and sums get a smaller tolerance.

    Parameters
    ----------
    constant : float
        Coulomb's constant in units of energy * length / charge**2.
    tolerance : float
        Relative error of the forces.
    exclusions : (P, 2) array of int, or None
        Rows of atoms that do not interact.
    freeze : bool
        Keep method, order, opening angle and leaf size of the first sum, so that forces do not jump during a run.
    device, threads
        As in :func:`nbody_fmm.evaluate`.
    """

    def __init__(
        self,
        constant: float,
        tolerance: float,
        *,
        exclusions: Any = None,
        freeze: bool = True,
        device: str = "auto",
        threads: Optional[int] = None,
    ) -> None:
        self._constant = float(constant)
        self._tolerance = tolerance
        self._exclusions = _arrays.exclusions(exclusions)
        if not isinstance(freeze, (bool, np.bool_)):
            raise TypeError(f"freeze: {freeze!r}; expected True or False")
        self._freeze = freeze
        self._options: Dict[str, Any] = {"device": device, "threads": threads}
        # Options that are out of range are refused here, not in the first step.
        self._make(tolerance, None)
        # Number of atoms and whether space is periodic, the sides of the box, and the solver for them: one value, since
        # contexts in several threads may share this object.
        self._made: Optional[Tuple[Tuple[int, bool], Optional[Tuple[float, ...]], Solver]] = None

    def __call__(self, x: np.ndarray, q: np.ndarray, box: Optional[np.ndarray]) -> Tuple[float, np.ndarray]:
        """Energy and forces (N, 3) of charges `q` (N,) at `x` (N, 3) in a box with sides `box` (3,), or in open space.

        Raises
        ------
        ValueError
            For a box that is longer than 4 times its shortest side, and what :func:`nbody_fmm.evaluate` refuses.

        Warns
        -----
        RuntimeWarning
            If atoms that are not excluded lie at one place: their energy is left out.
        """
        if not q.any():
            return 0.0, np.zeros_like(x)
        result = self._solver(x, q, None if box is None else tuple(float(side) for side in box))(x, q)
        # Of shells that lie on their cores the pair is excluded.
        if result.coincident_pairs > 0 and self._exclusions is None:
            warnings.warn(
                f"{result.coincident_pairs} pairs of atoms lie at one place and do not interact", RuntimeWarning, stacklevel=2
            )
        energy = 0.5 * self._constant * float(q @ result.potential)
        return energy, self._constant * q[:, None] * result.field

    def _solver(self, x: np.ndarray, q: np.ndarray, sides: Optional[Tuple[float, ...]]) -> Solver:
        """The solver for these atoms in this box."""
        atoms = (len(x), sides is not None)
        made_for, made_sides, solver = self._made or (None, None, None)
        if solver is not None and (made_for, made_sides) == (atoms, sides):
            return solver
        if sides is not None:
            check_box(sides)
        if solver is not None and made_for == atoms:
            # A barostat has changed the box: its sides are new, the choice stays.
            solver = Solver(**{**solver.__getstate__(), "box": sides})
        else:
            solver = self._prepare(x, q, sides)
        self._made = (atoms, sides, solver)
        return solver

    def _prepare(self, x: np.ndarray, q: np.ndarray, sides: Optional[Tuple[float, ...]]) -> Solver:
        """A new solver: its tolerance is reduced by the share of excluded pairs, and its choice is kept."""
        tolerance, precision = self._tolerance, "auto"
        if self._exclusions is not None:
            with_pairs = Solver(tolerance=tolerance, box=sides, **self._options)
            everything = np.linalg.norm(q[:, None] * with_pairs(x, q).field)
            result = self._make(tolerance, sides)(x, q)
            if result.coincident_pairs > 0:
                # Shells that start on their cores: later their fields are far larger than what is left without them.
                precision = "f64"
            wanted = np.linalg.norm(q[:, None] * result.field)
            share = float(np.clip(wanted / everything, SMALLEST_SHARE, 1.0)) if everything > 0 else 1.0
            tolerance = max(tolerance * share, SMALLEST_TOLERANCE)
        solver = self._make(tolerance, sides, precision)
        if self._freeze:
            solver(x, q)
            solver.freeze()
        return solver

    def _make(self, tolerance: float, sides: Optional[Tuple[float, ...]], precision: str = "auto") -> Solver:
        options = {"tolerance": tolerance, "box": sides, "precision": precision, **self._options}
        return Solver(exclusions=self._exclusions, **options)


def check_box(sides: Any) -> None:
    """Refuses sides that differ by more than a factor of 4.

    Raises
    ------
    ValueError
        With the sides.
    """
    shortest, longest = float(np.min(sides)), float(np.max(sides))
    shown = " x ".join(f"{side:.4g}" for side in sides)
    if not shortest > 0:
        raise ValueError(f"box of {shown}: its sides must be above 0")
    if not longest <= MOST_ELONGATED * shortest:
        raise ValueError(f"box of {shown}: its longest side may be up to 4 times its shortest one")
