"""Simulations of scenarios, step by step."""

from __future__ import annotations

import math
import operator
import os
import warnings
from typing import Any, Callable, Dict, Mapping, Optional, Union

import numpy as np

from . import _arrays, _library, _scenario


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {value!r} is not a whole number") from None


class Simulation:
    """The particles of a scenario, in steps that you make.

    A scenario says which particles there are, which forces act on them, and how long a step is; docs/scenario.md lists
    its keys. The same steps have the bits of ``nbody run``, in any portions. No files are written: ``[output]`` and
    ``[verify]`` are checked, and nothing else is done with them. Scenarios with a ``[grid]`` are refused.

    Parameters
    ----------
    scenario : str, os.PathLike or dict
        The name of a TOML file, or a dict with the keys of one. Tables that it names lie in the folder of the file, or
        in the present folder. Snapshots in HDF5 files are refused: ``nbody convert`` makes tables of them.
    threads : int, optional
        Worker threads, 1 to 1024. Default: all cores.

    Raises
    ------
    ValueError
        For mistakes of the scenario, with the line, what is wrong and what is allowed.
    FileNotFoundError
        If the file, or a table that it names, does not exist.
    OSError
        If a file cannot be read.
    TypeError
        For values of a dict that TOML has no type for.
    DeviceError
        If the device is not available or fails.
    MemoryError
        If the particles do not fit into memory.

    Examples
    --------
    >>> pair = {"particles": [{"model": "kepler", "eccentricity": 0.5}], "time": {"dt": 0.001, "end": 1}}
    >>> sim = nbody_fmm.Simulation(pair)
    >>> sim.step(500)
    >>> sim.time, sim.positions.shape
    (0.5, (2, 3))
    >>> sim.run()
    >>> abs(sim.diagnostics()["energy_error"]) < 1e-4
    True
    """

    __slots__ = ("__weakref__", "_simulation")

    def __init__(self, scenario: Union[str, os.PathLike, Mapping[str, Any]], *, threads: Optional[int] = None) -> None:
        if isinstance(scenario, Mapping):
            self._start(None, _scenario.toml(scenario), threads)
            return
        file = os.fspath(scenario) if isinstance(scenario, (str, os.PathLike)) else None
        if not isinstance(file, str):
            raise TypeError(f"scenario: {type(scenario).__name__}; expected the name of a TOML file or a dict")
        if isinstance(scenario, str) and "\n" in file:
            raise ValueError("scenario: a text, not the name of a file; Simulation.from_toml takes texts")
        self._start(file, None, threads)

    @classmethod
    def from_toml(cls, text: str, *, threads: Optional[int] = None) -> "Simulation":
        """Makes the simulation of a scenario in TOML; parameters and errors are those of the class."""
        if not isinstance(text, str):
            raise TypeError(f"text: {type(text).__name__}; expected TOML as a str")
        simulation = cls.__new__(cls)
        simulation._start(None, text, threads)
        return simulation

    def _start(self, file: Optional[str], text: Optional[str], threads: Optional[int]) -> None:
        if threads is not None and not 1 <= _whole("threads", threads) <= 1024:
            raise ValueError(f"threads: {threads} is outside 1 to 1024")
        self._simulation = _library.Simulation(file, text, threads)
        for warning in self._simulation.warnings:
            warnings.warn(warning, stacklevel=3)

    def step(self, count: int = 1) -> None:
        """Makes ``count`` steps.

        Ctrl-C ends them with KeyboardInterrupt after the step that is being made; the particles are then those of that
        step. Other threads may look at the particles at any time, between steps.

        Raises
        ------
        ValueError
            If positions or velocities are no longer finite. The particles are then somewhere within a step, and no more
            steps can be made.
        ToleranceError, DeviceError, RuntimeError
            As for :func:`evaluate`.
        """
        count = _whole("count", count)
        if not 0 <= count < 2**63:
            raise ValueError(f"count: {count}; allowed: 0 to 2**63 - 1")
        self._simulation.step(count)

    def run(
        self,
        until: Union[None, float, str] = None,
        *,
        callback: Optional[Callable[["Simulation"], Any]] = None,
        every: int = 1,
    ) -> None:
        """Makes all steps to a time.

        Parameters
        ----------
        until : float or str, optional
            The time, in the unit of the scenario, or with a unit as in ``"5 Myr"``. A whole number of steps from the
            start; it may lie beyond the end of the scenario. Default: the end of the scenario.
        callback : callable, optional
            Is called with the simulation when the number of steps is a multiple of ``every``.
        every : int
            Steps from one call to the next.

        Raises
        ------
        ValueError
            For a time that is over or between two steps.

        Exceptions of ``callback`` end the run after a whole step. Other errors are those of :meth:`step`.
        """
        every = _whole("every", every)
        if every < 1:
            raise ValueError(f"every: {every}; allowed: 1 or more")
        if isinstance(until, (bool, np.bool_)):
            raise TypeError(f"until: {until!r} is neither a number nor a text such as \"5 Myr\"")
        if isinstance(until, float) and math.isnan(until):
            raise ValueError(f"until = {until} is not a time")
        end = self.steps + self._simulation.steps_until(until)
        while self.steps < end:
            left = end - self.steps
            self.step(left if callback is None else min(left, every - self.steps % every))
            if callback is not None and self.steps % every == 0:
                callback(self)

    def diagnostics(self) -> Dict[str, Any]:
        """Energies, momenta and more, by the names of the columns of diagnostics.csv.

        ``energy_error`` (of vortices ``hamiltonian_error``) is relative to the start, or to when positions or
        velocities were set last. After an interrupted :meth:`step` and after setting positions or velocities this sums
        the forces once more.

        Returns
        -------
        dict
            ``step`` (int), ``time`` and the sums (float), in units of the scenario.
        """
        return self._simulation.diagnostics()

    @property
    def positions(self) -> np.ndarray:
        """Positions, a copy, float64 of shape (N, 3), in the order of the ids; z = 0 in the plane.

        In a periodic box they are those in the box, as in snapshots. They can be set to real numbers of that shape.
        """
        return self._simulation.positions()

    @positions.setter
    def positions(self, value: Any) -> None:
        self._simulation.set_positions(_arrays.positions("positions", value, (3,)))

    @property
    def velocities(self) -> np.ndarray:
        """Velocities, a copy, float64 of shape (N, 3). They can be set, but not those of vortices."""
        return self._simulation.velocities()

    @velocities.setter
    def velocities(self, value: Any) -> None:
        self._simulation.set_velocities(_arrays.positions("velocities", value, (3,)))

    @property
    def masses(self) -> np.ndarray:
        """Masses, a copy, float64 of shape (N,); of vortices the absolute values of their circulations."""
        return self._simulation.masses()

    @property
    def charges(self) -> Optional[np.ndarray]:
        """Charges, or circulations of vortices: a copy, float64 of shape (N,). None under gravity."""
        return self._simulation.charges()

    @property
    def time(self) -> float:
        """The present time, in the unit of the scenario."""
        return self._simulation.progress()[1]

    @property
    def steps(self) -> int:
        """Number of steps made."""
        return self._simulation.progress()[0]

    @property
    def dt(self) -> float:
        """Length of a step; with ``time.dt = "auto"`` the one that was chosen."""
        return self._simulation.progress()[2]

    @property
    def scenario(self) -> str:
        """The scenario with every default, as TOML text."""
        return self._simulation.resolved()

    def __len__(self) -> int:
        return self._simulation.progress()[3]

    def __repr__(self) -> str:
        steps, time, dt, particles = self._simulation.progress()
        return f"<nbody_fmm.Simulation of {particles} particles: step {steps}, time {time}, dt {dt}>"
