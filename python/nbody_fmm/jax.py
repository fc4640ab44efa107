"""Sums that JAX differentiates, in positions and strengths.

>>> import jax
>>> import nbody_fmm.jax
>>> jax.config.update("jax_enable_x64", True)
>>> x = jax.numpy.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
>>> q = jax.numpy.array([1.0, -1.0])
>>> jax.grad(nbody_fmm.jax.energy)(x, q)[0]
Array([-0.25, -0.  , -0.  ], dtype=float64)

The sums are callbacks on the host, within ``jit`` or without. Results and gradients have the dtypes of the arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from . import Solver
from ._gradients import check, gradients, solver_of

__all__ = ["energy", "potential"]


def potential(
    sources: Any, strengths: Any, targets: Any = None, *, solver: Optional[Solver] = None, **options: Any
) -> jax.Array:
    """Potentials at the targets, differentiable once, in reverse mode, in all three arrays.

    Costs one sum; the gradient one more, its adjoint, at the same tolerance.

    Parameters
    ----------
    sources : array_like
        Positions, real, shape (N, 3).
    strengths : array_like
        Shape (N,).
    targets : array_like, optional
        Positions, shape (M, 3). Default: at the sources, none of which acts on itself.
    solver : nbody_fmm.Solver, optional
        Sums with its options, and keeps its GPU open and its choice frozen between calls.
    **options
        Without a solver: the keywords of :func:`nbody_fmm.evaluate`. Kernels ``laplace`` and ``yukawa:KAPPA``; boxes in
        tin foil.

    Returns
    -------
    jax.Array
        Shape (M,), of the widest dtype of the arguments.

    Raises
    ------
    TypeError, ValueError
        For wrong dtypes, shapes and options, as :func:`nbody_fmm.evaluate`; for kernels and surroundings without
        gradients; for NumPy arrays of float64 without ``jax_enable_x64``.
    jax.errors.JaxRuntimeError
        When a result is read: what the sum refuses (values that are not finite, tolerances that are not reached, the
        device). Its text ends with the error of the sum.
    """
    solver = solver_of(solver, options)
    return _potential(solver, *_arrays(solver, sources, strengths, targets))


def energy(sources: Any, strengths: Any, *, solver: Optional[Solver] = None, **options: Any) -> jax.Array:
    """Half the sum of strength times potential: the energy of all pairs, an array of shape ().

    In a periodic box the images of each source count. Costs one sum, and the gradient none. Arguments and errors are
    those of :func:`potential`.
    """
    solver = solver_of(solver, options)
    sources, strengths, _ = _arrays(solver, sources, strengths, None)
    return _energy(solver, sources, strengths)


def _arrays(solver: Solver, sources: Any, strengths: Any, targets: Any) -> Tuple[Any, ...]:
    """The arguments as arrays of one floating dtype."""
    given = {"sources": sources, "strengths": strengths}
    if targets is not None:
        given["targets"] = targets
    for name, value in given.items():
        if getattr(value, "dtype", None) == np.float64 and not jax.config.jax_enable_x64:
            raise TypeError(
                f"{name}: float64, which JAX would round to float32; call "
                'jax.config.update("jax_enable_x64", True) first, or give float32'
            )
    arrays = {name: jnp.asarray(value) for name, value in given.items()}
    kinds = (jnp.floating, jnp.integer)
    check(solver, {name: (x, any(jnp.issubdtype(x.dtype, k) for k in kinds)) for name, x in arrays.items()})
    dtype = jnp.result_type(*arrays.values())
    dtype = dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.result_type(float)
    return tuple(arrays[name].astype(dtype) if name in arrays else None for name in ("sources", "strengths", "targets"))


@dataclass(frozen=True)
class _OnHost:
    """The sum of a solver as a callback. Two of one solver are equal, so that JAX compiles one."""

    solver: Solver

    def __call__(self, sources: Any, strengths: Any, targets: Any) -> Tuple[np.ndarray, np.ndarray]:
        dtype = sources.dtype
        arrays = [None if x is None else np.asarray(x, dtype=np.float64) for x in (sources, strengths, targets)]
        r = self.solver(*arrays)
        return r.potential.astype(dtype), r.field.astype(dtype)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _sum(solver: Solver, sources: Any, strengths: Any, targets: Any) -> Tuple[jax.Array, jax.Array]:
    """Potential (M,) and field (M, 3)."""
    m = (sources if targets is None else targets).shape[0]
    shapes = [jax.ShapeDtypeStruct(shape, sources.dtype) for shape in ((m,), (m, 3))]
    return jax.pure_callback(_OnHost(solver), tuple(shapes), sources, strengths, targets, vmap_method="sequential")


@_sum.defjvp
def _no_second_derivative(solver: Solver, primals: Any, tangents: Any) -> Any:
    raise NotImplementedError("sums have first derivatives only: a gradient cannot be differentiated again")


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _potential(solver: Solver, sources: Any, strengths: Any, targets: Any) -> jax.Array:
    return _sum(solver, sources, strengths, targets)[0]


def _potential_forward(solver: Solver, sources: Any, strengths: Any, targets: Any) -> Tuple[jax.Array, Any]:
    values, field = _sum(solver, sources, strengths, targets)
    return values, (sources, strengths, targets, field)


def _potential_backward(solver: Solver, kept: Any, weights: jax.Array) -> Tuple[Any, ...]:
    sources, strengths, targets, field = kept
    return gradients(partial(_sum, solver), sources, strengths, targets, weights, field)


_potential.defvjp(_potential_forward, _potential_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _energy(solver: Solver, sources: Any, strengths: Any) -> jax.Array:
    return 0.5 * strengths @ _sum(solver, sources, strengths, None)[0]


def _energy_forward(solver: Solver, sources: Any, strengths: Any) -> Tuple[jax.Array, Any]:
    values, field = _sum(solver, sources, strengths, None)
    return 0.5 * strengths @ values, (strengths, values, field)


def _energy_backward(solver: Solver, kept: Any, weight: jax.Array) -> Tuple[Any, ...]:
    strengths, values, field = kept
    return -weight * strengths[:, None] * field, weight * values


_energy.defvjp(_energy_forward, _energy_backward)
