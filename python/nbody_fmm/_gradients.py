"""What the gradients in JAX and PyTorch share.

The interaction G(y, x) of a target and a source is symmetric. With potential_j = sum of q_i G(y_j, x_i) and
L = w . potential, the strengths have the gradient of a sum with the roles exchanged,

    dL/dq_i = sum of w_j G(x_i, y_j),

which is the potential of strengths w at the targets, wanted at the sources: the adjoint sum. Its field gives the
gradient in the positions of the sources, and the field of the first sum that of the targets. A periodic box in tin foil
keeps this for strengths of any total: the uniform background is a part of G.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from . import Solver, _library

#: Kernels that have a field and no potential.
_NO_POTENTIAL = ("harmonic", "vortex")


def solver_of(solver: Optional[Solver], options: Dict[str, Any]) -> Solver:
    """The solver that is given, or a new one with ``options``.

    Raises
    ------
    TypeError
        For a solver of another type, and for a solver together with options.
    ValueError
        For a kernel or a boundary without gradients.
    """
    if solver is None:
        solver = Solver(**options)
    elif not isinstance(solver, Solver):
        raise TypeError(f"solver: {type(solver).__name__}; expected nbody_fmm.Solver")
    elif options:
        raise TypeError(f"solver: it has options of its own; given next to it: {', '.join(options)}")
    kernel, surroundings = solver._sum.kernel, solver._options["surroundings"]
    if not solver._sum.radial:
        why = "it has no potential" if kernel in _NO_POTENTIAL else "only sums in space have gradients"
        raise ValueError(f"kernel: no gradients of {kernel}, {why}; allowed: {', '.join(_library.RADIAL)}")
    if surroundings != "tinfoil":
        raise ValueError(
            f"surroundings: no gradients in {surroundings}, where strengths must add up to zero, and the weights of an "
            "adjoint sum do not; allowed: tinfoil"
        )
    return solver


def check(solver: Solver, given: Dict[str, Tuple[Any, bool]]) -> None:
    """Checks arrays by name, as (array, whether its dtype is real).

    Raises
    ------
    TypeError
        For a dtype that is not real.
    ValueError
        For a wrong shape, and for targets next to exclusions.
    """
    n = given["sources"][0].shape[0] if len(given["sources"][0].shape) else 0
    for name, (array, real) in given.items():
        shape = tuple(array.shape)
        expected = (n,) if name == "strengths" else (shape[0] if shape else 0, 3)
        if shape != expected:
            rows = f"({n},), a row for each source" if name == "strengths" else "(n, 3)"
            raise ValueError(f"{name}: shape {shape}; expected real numbers of shape {rows}")
        if not real:
            raise TypeError(f"{name}: dtype {array.dtype}, shape {shape}; expected real numbers")
    if "targets" in given and solver._exclusions is not None:
        raise ValueError("exclusions: not available with targets")


def gradients(
    adjoint_sum: Callable[..., Tuple[Any, Any]], sources: Any, strengths: Any, targets: Any, weights: Any, field: Any
) -> Tuple[Any, Any, Any]:
    """Gradients of weights . potential in sources (N, 3), strengths (N,) and targets (M, 3), which may be None.

    ``adjoint_sum(sources, strengths, targets)`` returns potential and field; ``field`` (M, 3) is that of the first sum.
    """
    if targets is None:
        potential, back = adjoint_sum(sources, weights, None)
        return -(weights[:, None] * field + strengths[:, None] * back), potential, None
    potential, back = adjoint_sum(targets, weights, sources)
    return -strengths[:, None] * back, potential, -weights[:, None] * field
