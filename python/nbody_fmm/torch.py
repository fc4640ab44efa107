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
    return _Potential.apply(solver, sources, strengths, targets)[0]


def energy(
    sources: torch.Tensor, strengths: torch.Tensor, *, solver: Optional[Solver] = None, **options: Any
) -> torch.Tensor:
    """Half the sum of strength times potential: the energy of all pairs, a tensor of shape ().

    In a periodic box the images of each source count. Costs one sum, and the gradient none. Arguments and errors are
    those of :func:`potential`.
    """
    solver = solver_of(solver, options)
    _check(solver, sources, strengths, None)
    return _Energy.apply(solver, sources, strengths)[0]


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


def _rounded(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    rounded = values.to(dtype)
    if dtype != values.dtype and not torch.isfinite(rounded).all():
        raise ValueError(f"results are beyond the range of {dtype}; give float64 tensors")
    return rounded


def _dtype(*arrays: Optional[torch.Tensor]) -> torch.dtype:
    """The widest of floating dtypes; float64 where all are whole numbers."""
    dtypes = [x.dtype for x in arrays if x is not None and x.is_floating_point()]
    widest = dtypes[0] if dtypes else torch.float64
    for dtype in dtypes:
        widest = torch.promote_types(widest, dtype)
    return widest


class _Potential(torch.autograd.Function):
    """Potentials and field, of which only the former have gradients."""

    @staticmethod
    def forward(solver: Solver, sources: Any, strengths: Any, targets: Any) -> Tuple[torch.Tensor, torch.Tensor]:
        values, field = _sum(solver, sources, strengths, targets)
        return _rounded(values, _dtype(sources, strengths, targets)), field

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[torch.Tensor, torch.Tensor]) -> None:
        ctx.solver, *arrays = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*arrays, output[1])

    @staticmethod
    def backward(ctx: Any, weights: torch.Tensor, _: Any) -> Tuple[Any, ...]:
        targets_alone = not any(ctx.needs_input_grad[1:3])
        return (None, *_Gradients.apply(ctx.solver, targets_alone, weights, *ctx.saved_tensors))


class _Energy(torch.autograd.Function):
    """Energy, potentials and field, of which only the first has gradients."""

    @staticmethod
    def forward(solver: Solver, sources: Any, strengths: Any) -> Tuple[torch.Tensor, ...]:
        values, field = _sum(solver, sources, strengths, None)
        energy = 0.5 * (strengths.detach().to(torch.float64) @ values)
        return _rounded(energy, _dtype(sources, strengths)), values, field

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[torch.Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs[1:], *output[1:])

    @staticmethod
    def backward(ctx: Any, weight: torch.Tensor, *_: Any) -> Tuple[Any, ...]:
        return (None, *_EnergyGradients.apply(weight, *ctx.saved_tensors))


class _Once(torch.autograd.Function):
    """A gradient, which cannot be differentiated again."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        # once_differentiable would leave out second derivatives without a word where the weights have no gradient.
        raise RuntimeError("sums have first derivatives only: a gradient cannot be differentiated again")


class _Gradients(_Once):
    @staticmethod
    def forward(
        solver: Solver, targets_alone: bool, weights: Any, sources: Any, strengths: Any, targets: Any, field: Any
    ) -> Tuple[Any, ...]:
        # In float64: autograd converts gradients to the dtypes of the arguments.
        w = weights.to(torch.float64)
        if targets_alone:
            return None, None, -w[:, None] * field
        return gradients(lambda *arrays: _sum(solver, *arrays), sources, strengths, targets, w, field)


class _EnergyGradients(_Once):
    @staticmethod
    def forward(weight: Any, sources: Any, strengths: Any, values: Any, field: Any) -> Tuple[Any, ...]:
        w = weight.to(torch.float64)
        return -w * strengths[:, None] * field, w * values
