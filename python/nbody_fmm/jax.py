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

import pickle
from functools import lru_cache, partial
from typing import Any, Dict, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.buffer_callback import buffer_callback

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
    solver = _solver(solver, options)
    return _potential(solver, *_arrays(solver, sources, strengths, targets))


def energy(sources: Any, strengths: Any, *, solver: Optional[Solver] = None, **options: Any) -> jax.Array:
    """Half the sum of strength times potential: the energy of all pairs, an array of shape ().

    In a periodic box the images of each source count. Costs one sum, and the gradient none. Arguments and errors are
    those of :func:`potential`.
    """
    solver = _solver(solver, options)
    sources, strengths, _ = _arrays(solver, sources, strengths, None)
    return _energy(solver, sources, strengths)


@lru_cache(maxsize=64)
def _kept(state: bytes) -> Solver:
    """The solver of these options. JAX compiles for each solver, so calls with the same options share one."""
    return pickle.loads(state)


def _solver(solver: Optional[Solver], options: Dict[str, Any]) -> Solver:
    checked = solver_of(solver, options)
    return checked if solver is not None else _kept(pickle.dumps(checked))


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
    # Whole numbers count as float64, or as float32 where JAX has no other.
    dtypes = [x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else jnp.result_type(float) for x in arrays.values()]
    dtype = jnp.result_type(*dtypes)
    return tuple(arrays[name].astype(dtype) if name in arrays else None for name in ("sources", "strengths", "targets"))


def _on_host(solver: Solver, *arrays: Any) -> Tuple[np.ndarray, np.ndarray]:
    r = solver(*[None if x is None else np.asarray(x).astype(np.float64, copy=False) for x in arrays])
    return r.potential, r.field


def _rounded(values: np.ndarray, dtype: Any) -> np.ndarray:
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype)
    if not np.isfinite(rounded).all():
        raise ValueError(f"results are beyond the range of {dtype}; give float64 arrays")
    return rounded


# Compiled once for each solver and shape.
@partial(jax.custom_jvp, nondiff_argnums=(0,))
@partial(jax.jit, static_argnums=0)
def _sum(solver: Solver, sources: Any, strengths: Any, targets: Any) -> Tuple[jax.Array, jax.Array]:
    """Potential (M,) and field (M, 3)."""
    dtype = sources.dtype
    m = (sources if targets is None else targets).shape[0]
    results = (jax.ShapeDtypeStruct((m,), dtype), jax.ShapeDtypeStruct((m, 3), dtype))

    def in_place(_: Any, out: Any, *arrays: Any) -> None:
        for to, values in zip(out, _on_host(solver, *arrays)):
            np.asarray(to)[...] = _rounded(values, dtype)

    def returned(*arrays: Any) -> Any:
        return tuple(_rounded(values, dtype) for values in _on_host(solver, *arrays))

    # On cores the arguments of a pure_callback are copied by the threads that callbacks run on: where all of them wait
    # for such a copy, it hangs. Without a GPU's memory there is nothing to copy.
    return jax.lax.platform_dependent(
        sources,
        strengths,
        targets,
        cpu=buffer_callback(in_place, results, vmap_method="sequential"),
        default=partial(jax.pure_callback, returned, results, vmap_method="sequential"),
    )


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
