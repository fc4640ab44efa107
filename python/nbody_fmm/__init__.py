"""Fast sums of pairwise interactions on NumPy arrays.

Gravity, Coulomb, screened, vortex and Gauss interactions of N sources at M targets, directly, by treecode or by fast
multipole method, on cores or on an NVIDIA GPU. You give the relative error that you accept; method, order, opening
angle and leaf size follow from it. :class:`Simulation` moves particles by these sums.

>>> import numpy as np
>>> import nbody_fmm
>>> r = nbody_fmm.evaluate([[0, 0, 0], [2, 0, 0]], [1, -1])
>>> r.potential
array([-0.5,  0.5])
>>> r.field[0]
array([0.25, 0.  , 0.  ])
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, Optional

import numpy as np

from . import _arrays, _device, _library
from ._library import DeviceError, ToleranceError, __version__
from .simulation import Simulation

__all__ = ["DeviceError", "Result", "Simulation", "Solver", "ToleranceError", "__version__", "evaluate"]

# A fork copies the calling thread alone: it waits until no other thread sums.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_library.before_fork,
        after_in_parent=_library.after_fork_in_parent,
        after_in_child=_library.after_fork_in_child,
    )


@dataclass(frozen=True, eq=False)
class Result:
    """A sum, in the order of the targets.

    Attributes
    ----------
    potential : numpy.ndarray or None
        The sum, float64 of shape (M,), in units of strength / length for ``laplace`` and ``yukawa`` and of strength for
        ``log`` and ``gauss``. None for ``harmonic`` and ``vortex``.
    field : numpy.ndarray
        Minus the gradient of the potential, float64 of shape (M, d) with d the number of axes; the velocity of
        vortices, (M, 3); the sum itself of ``harmonic``, complex128 of shape (M,).
    hessian : numpy.ndarray or None
        With ``hessian=True``: second derivatives of the potential, float64 of shape (M, 6), xx, yy, zz, xy, xz, yz. Minus
        the gradient of the field. The tidal tensor of masses is G times this.
    error : numpy.ndarray or None
        With ``errors=True``: the estimated size of the error of the field, float64 of shape (M,), in the unit of the field.
        Most errors are within a factor of 4 of it.
    choice : dict
        ``method``, ``precision``, ``order``, ``theta`` (opening angle) and ``leaf_size`` of the sum.
    times : dict
        Seconds of wall time by stage, ``sum`` of the whole sum and, with ``check``, ``errors`` of the direct sums.
    device : str
        ``"cpu"`` or ``"cuda:N"``.
    coincident_pairs : int
        Pairs at distance zero that contributed nothing. A source's own pair does not count.
    errors : dict or None
        With ``check``: relative errors of the field at the sampled targets (``rms``, ``median``, ``p99``, ``max``,
        ``l2``), that of the ``potential`` in a box, ``sample`` (targets compared), and ``floored`` (targets whose field
        nearly vanishes). ``rms_interval`` and ``l2_interval`` hold the norm over all targets with a probability of about
        95 %; both ends are the norm itself where all targets were compared. In space on the cores targets are drawn by
        their estimated errors and weighted, elsewhere evenly.
    """

    potential: Optional[np.ndarray]
    field: np.ndarray
    hessian: Optional[np.ndarray]
    error: Optional[np.ndarray]
    choice: Dict[str, Any]
    times: Dict[str, float]
    device: str
    coincident_pairs: int
    errors: Optional[Dict[str, Any]]


class Solver:
    """Sums with fixed options, which also keep a GPU open between calls.

    The keywords are those of :func:`evaluate`. Solvers can be pickled: only their options travel. Threads may share a
    solver; their sums then run one after another.

    Examples
    --------
    >>> solver = nbody_fmm.Solver(kernel="gauss:0.5", tolerance=1e-6)
    >>> r = solver([0.0, 1.0], [1.0, 1.0], targets=[0.0])
    >>> np.allclose(r.potential, 1 + np.exp(-2))
    True
    """

    def __init__(
        self,
        *,
        kernel: str = "laplace",
        softening: Optional[str] = None,
        box: Any = None,
        surroundings: Any = "tinfoil",
        exclusions: Any = None,
        tolerance: float = 1e-4,
        method: str = "auto",
        precision: str = "auto",
        order: Optional[int] = None,
        theta: Optional[float] = None,
        leaf_size: Optional[int] = None,
        device: str = "auto",
        threads: Optional[int] = None,
        check: int = 0,
        hessian: bool = False,
        errors: bool = False,
    ) -> None:
        exclusions = _arrays.exclusions(exclusions)
        options = {
            "kernel": kernel,
            "softening": softening,
            "box": _arrays.sides(box),
            "surroundings": str(surroundings),
            "tolerance": tolerance,
            "method": method,
            "precision": precision,
            "order": order,
            "theta": theta,
            "leaf_size": leaf_size,
            "device": device,
            "threads": threads,
            "check": check,
            "hessian": hessian,
            "errors": errors,
        }
        self._sum = _library.Sum(options)
        self._exclusions = exclusions
        self._options = options
        self._choice: Optional[Dict[str, Any]] = None
        # Addresses of our streams, by GPU.
        self._streams: Dict[int, int] = {}

    def __call__(self, sources: Any, strengths: Any, targets: Any = None) -> Result:
        """Sums; arguments, result and errors are those of :func:`evaluate`."""
        kernel = self._sum.kernel
        if _device.is_on_gpu(sources) or _device.is_on_gpu(strengths) or _device.is_on_gpu(targets):
            return self._on_gpu(sources, strengths, targets)
        x = _arrays.positions("sources", sources, _arrays.WIDTHS.get(kernel, (3,)))
        columns = _arrays.strengths(strengths, kernel, x.shape[0])
        at = None if targets is None else _arrays.positions("targets", targets, (x.shape[1],))
        result = Result(**self._sum.evaluate(x, columns, at, self._exclusions))
        if kernel == "harmonic":
            object.__setattr__(result, "field", result.field.view(np.complex128).reshape(-1))
        self._choice = result.choice
        return result

    def _on_gpu(self, sources: Any, strengths: Any, targets: Any) -> Result:
        if self._exclusions is not None:
            raise ValueError("exclusions: with arrays on a GPU there are none")
        result = Result(**_device.evaluate(self._sum, self._streams, sources, strengths, targets))
        self._choice = result.choice
        return result

    def freeze(self) -> None:
        """Keeps method, precision, order, opening angle and leaf size of the last sum for all later ones.

        Sums then depend smoothly on positions that move little, as the steps of a run need it. The tolerance is not
        measured any more: it holds while the points stay like those of that sum. A pickled copy is frozen as well.

        Raises
        ------
        RuntimeError
            Before the first sum.
        ValueError
            With kernel ``gauss``, which has none of these options.
        """
        if self._choice is None:
            raise RuntimeError("freeze: there is no sum yet whose choice could be kept")
        kept = ("method", "precision") if self._choice["order"] is None else tuple(self._choice)
        frozen = {**self._options, **{name: self._choice[name] for name in kept}}
        self._sum = _library.Sum(frozen)
        self._streams = {}
        self._options = frozen

    def __getstate__(self) -> Dict[str, Any]:
        return {**self._options, "exclusions": self._exclusions}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._options.items() if value is not None)
        more = "" if self._exclusions is None else f", exclusions of {len(self._exclusions)} pairs"
        return f"nbody_fmm.Solver({given}{more})"


def evaluate(
    sources: Any,
    strengths: Any,
    targets: Any = None,
    *,
    kernel: str = "laplace",
    softening: Optional[str] = None,
    box: Any = None,
    surroundings: Any = "tinfoil",
    exclusions: Any = None,
    tolerance: float = 1e-4,
    method: str = "auto",
    precision: str = "auto",
    order: Optional[int] = None,
    theta: Optional[float] = None,
    leaf_size: Optional[int] = None,
    device: str = "auto",
    threads: Optional[int] = None,
    check: int = 0,
    hessian: bool = False,
    errors: bool = False,
) -> Result:
    """Sums the interactions of sources at targets.

    Arrays may have any order, any strides, any real dtype and may be read-only. C-contiguous float64 positions are read
    in place; other threads must not write to them meanwhile. The same arguments give the same bits on any number of
    threads.

    Parameters
    ----------
    sources : array_like
        Positions, real, shape (N, 3), in any unit of length. Shape (N, 2) for ``log`` and ``harmonic``; (N,), (N, 1),
        (N, 2) or (N, 3) for ``gauss``.
    strengths : array_like
        Charges or masses, real, shape (N,). Shape (N, 3) for ``vortex``: vorticity times the volume of a particle.
        Complex (or real) of shape (N,) for ``harmonic``.
    targets : array_like, optional
        Positions where the field is wanted, shape (M, d). Default: at the sources, none of which acts on itself (but
        ``gauss`` includes own pairs).
    kernel : str
        With r the distance of target and source:

        - ``"laplace"``: sum of q / r in space. No G, no Coulomb constant, no 1 / (4 pi).
        - ``"yukawa:KAPPA"``: sum of q exp(-KAPPA r) / r in space.
        - ``"log"``: sum of q log(r) in the plane.
        - ``"harmonic"``: sum of q / (z_j - z) in the plane with z = x + i y; one complex number for each target.
        - ``"vortex"``: velocity, -1 / (4 pi) times the sum of (x - x_j) cross w_j / r**3.
        - ``"gauss:SIGMA"``: sum of q exp(-r**2 / (2 SIGMA**2)) in one, two or three dimensions.
    softening : str, optional
        Replaces the kernel at short distances: ``"plummer:E"``, ``"spline:E"`` or ``"p1:E"`` for ``laplace``,
        ``"p1:E"`` for ``vortex``, ``"algebraic:E"`` or ``"gaussian:E"`` for blobs in the plane. E is a length.
    box : float or (3,) array_like, optional
        Sides of a periodic box, a single one for a cube. Only ``laplace``.
    surroundings : str or float
        What all images of a box are embedded in: ``"tinfoil"``, ``"vacuum"`` or a dielectric constant of 1 or more.
    exclusions : array_like, optional
        Pairs of sources that do not interact, integers of shape (P, 2), rows counted from 0. Only ``laplace`` and
        ``yukawa`` without targets.
    tolerance : float
        Relative error of the field, rms and L2 over the targets (L2 alone for ``log`` and ``harmonic``); 1e-14 to 0.1.
        With ``gauss`` the largest error of a potential, in units of the sum of absolute strengths. With ``exclusions``
        relative to the field with these pairs.
    method : {"auto", "direct", "treecode", "fmm", "mesh"}
        How to sum. ``"auto"`` chooses by cost. ``"mesh"`` sums periodic boxes.
    precision : {"auto", "f32", "mixed", "f64"}
        Arithmetic of the sum. Results are float64.
    order, theta, leaf_size : optional
        Order of the expansions, opening angle and largest number of particles in a leaf. They follow from the tolerance
        if not given.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
    threads : int, optional
        Worker threads, 1 to 1024. Default: all cores.
    check : int
        Compares the field at this number of targets, at most, with the direct sum in float64; see ``Result.errors``.
    hessian : bool
        Sums second derivatives of the potential, too. The tolerance bounds their error as that of the field, in the
        Frobenius norm. Only ``laplace`` and ``yukawa``; in a periodic box on the cores.
    errors : bool
        Estimates the error of each target; see ``Result.error``. All kernels but ``gauss``; on a GPU
        ``laplace`` and ``yukawa`` without second derivatives, and from arrays on the host.

    Returns
    -------
    Result

    Raises
    ------
    TypeError
        For arrays of complex numbers, objects or strings, and options of a wrong type.
    ValueError
        For wrong shapes, values that are not finite (with their row), options out of range or that do not go together,
        and results beyond the range of numbers.
    ToleranceError
        If the method and precision that are asked for do not reach the tolerance.
    DeviceError
        If the device is not available, is too small or fails.
    MemoryError
        If NumPy cannot convert an array.
    RuntimeError
        For an internal error, or if no threads can be started.

    Examples
    --------
    >>> x = np.random.default_rng(1).random((1000, 3))
    >>> r = nbody_fmm.evaluate(x, np.ones(1000), softening="plummer:0.01", tolerance=1e-6, check=100)
    >>> r.errors["rms"] < 1e-6
    True

    Rock salt: the potential at an ion, times the distance of neighbors, is Madelung's constant.

    >>> ions = np.indices((2, 2, 2)).reshape(3, -1).T
    >>> charges = (-1.0) ** ions.sum(axis=1)
    >>> r = nbody_fmm.evaluate(ions, charges, box=2, tolerance=1e-8)
    >>> np.allclose(charges * r.potential, -1.74756459463, rtol=1e-8)
    True
    """
    solver = Solver(
        kernel=kernel,
        softening=softening,
        box=box,
        surroundings=surroundings,
        exclusions=exclusions,
        tolerance=tolerance,
        method=method,
        precision=precision,
        order=order,
        theta=theta,
        leaf_size=leaf_size,
        device=device,
        threads=threads,
        check=check,
        hessian=hessian,
        errors=errors,
    )
    return solver(sources, strengths, targets)
