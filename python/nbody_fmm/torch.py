"""Sums that PyTorch differentiates, in positions and strengths.

>>> import torch
>>> import nbody_fmm.torch
>>> x = torch.tensor([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]], requires_grad=True)
>>> q = torch.tensor([1.0, -1.0])
>>> nbody_fmm.torch.energy(x, q).backward()
>>> x.grad[0]
tensor([-0.2500, -0.0000, -0.0000])

Tensors stay where they are: those on a GPU are summed there. The sums themselves are in the precision that
:func:`nbody_fmm.evaluate` documents; results and gradients have the dtypes of the arguments.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from . import Solver
from ._gradients import check, gradients, solver_of

__all__ = ["energy", "potential"]


def potential(
    sources: torch.Tensor,
    strengths: torch.Tensor,
    targets: Optional[torch.Tensor] = None,
    *,
    solver: Optional[Solver] = None,
    **options: Any,
) -> torch.Tensor:
    """Potentials at the targets, differentiable once in all three tensors.

    Costs one sum; the gradient one more, its adjoint, at the same tolerance. The gradient in the positions of targets
    alone costs none.

    Parameters
    ----------
    sources : torch.Tensor
        Positions, real, shape (N, 3).
    strengths : torch.Tensor
        Shape (N,).
    targets : torch.Tensor, optional
        Positions, shape (M, 3). Default: at the sources, none of which acts on itself.
    solver : nbody_fmm.Solver, optional
        Sums with its options, and keeps its GPU open and its choice frozen between calls.
    **options
        Without a solver: the keywords of :func:`nbody_fmm.evaluate`. Kernels ``laplace`` and ``yukawa:KAPPA``; boxes in
        tin foil.

    Returns
    -------
    torch.Tensor
        Shape (M,), of the widest dtype of the arguments, on their device.

    Raises
    ------
    TypeError, ValueError
        As :func:`nbody_fmm.evaluate`, and for kernels and surroundings without gradients.
    nbody_fmm.ToleranceError, nbody_fmm.DeviceError
        As :func:`nbody_fmm.evaluate`, from the backward pass too.
    RuntimeError
        When a gradient is differentiated again.
    """
    solver = solver_of(solver, options)
    _check(solver, sources, strengths, targets)
    return _Potential.apply(solver, sources, strengths, targets)


def energy(
    sources: torch.Tensor, strengths: torch.Tensor, *, solver: Optional[Solver] = None, **options: Any
) -> torch.Tensor:
    """Half the sum of strength times potential: the energy of all pairs, a tensor of shape ().

    In a periodic box the images of each source count. Costs one sum, and the gradient none. Arguments and errors are
    those of :func:`potential`.
    """
    solver = solver_of(solver, options)
    _check(solver, sources, strengths, None)
    return _Energy.apply(solver, sources, strengths)


def _check(solver: Solver, sources: Any, strengths: Any, targets: Any) -> None:
    given = {"sources": sources, "strengths": strengths}
    if targets is not None:
        given["targets"] = targets
    for name, value in given.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name}: {type(value).__name__}; expected torch.Tensor")
    real = {name: not value.dtype.is_complex and value.dtype != torch.bool for name, value in given.items()}
    check(solver, {name: (value, real[name]) for name, value in given.items()})


def _sum(solver: Solver, *arrays: Optional[torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
    """Potential and field in float64, on the device of the arrays."""
    r = solver(*[None if x is None else x.detach().to(torch.float64) for x in arrays])
    return torch.as_tensor(r.potential), torch.as_tensor(r.field)


def _dtype(*arrays: Optional[torch.Tensor]) -> torch.dtype:
    """The widest of floating dtypes; float64 where all are whole numbers."""
    dtypes = [x.dtype for x in arrays if x is not None and x.is_floating_point()]
    widest = dtypes[0] if dtypes else torch.float64
    for dtype in dtypes:
        widest = torch.promote_types(widest, dtype)
    return widest


class _Potential(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, solver: Solver, sources: Any, strengths: Any, targets: Any) -> torch.Tensor:
        values, field = _sum(solver, sources, strengths, targets)
        ctx.solver = solver
        ctx.save_for_backward(sources, strengths, targets, field)
        return values.to(_dtype(sources, strengths, targets))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, weights: torch.Tensor) -> Tuple[Any, ...]:
        sources, strengths, targets, field = ctx.saved_tensors
        weights = weights.to(torch.float64)
        if not any(ctx.needs_input_grad[1:3]):
            return None, None, None, (-weights[:, None] * field).to(targets.dtype)
        of = gradients(lambda *arrays: _sum(ctx.solver, *arrays), sources, strengths, targets, weights, field)
        arrays = (sources, strengths, targets)
        return (None, *[None if g is None else g.to(x.dtype) for g, x in zip(of, arrays)])


class _Energy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, solver: Solver, sources: Any, strengths: Any) -> torch.Tensor:
        values, field = _sum(solver, sources, strengths, None)
        ctx.save_for_backward(sources, strengths, values, field)
        return (0.5 * (strengths.to(torch.float64) @ values)).to(_dtype(sources, strengths))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, weight: torch.Tensor) -> Tuple[Any, ...]:
        sources, strengths, values, field = ctx.saved_tensors
        weight = weight.to(torch.float64)
        return None, (-weight * strengths[:, None] * field).to(sources.dtype), (weight * values).to(strengths.dtype)
