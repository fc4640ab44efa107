"""Arrays on a GPU, of CuPy, PyTorch or JAX: read where they are, and results of the same kind.

The order of work is that of DLPack: the library of an array makes our stream wait for the stream on which the caller
works now, before our stream reads. Results are complete when a sum returns.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from . import _library

# DLPack's numbers for memory of a GPU: its own, and managed.
_ON_GPU = (2, 13)


def is_on_gpu(value: Any) -> bool:
    """Whether ``value`` is an array in the memory of a GPU."""
    return hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] in _ON_GPU


def _order_all(arrays: List[Any], stream: int) -> None:
    """Makes our stream wait for the work that makes ``arrays``. The capsules are not wanted."""
    for array in arrays:
        array.__dlpack__(stream=stream)


def _order_last(arrays: List[Any], stream: int) -> None:
    """The same where all arrays are made on the current stream of the caller."""
    _order_all(arrays[-1:], stream)


class _Torch:
    order = staticmethod(_order_last)

    def __init__(self, like: Any) -> None:
        import torch

        self.module, self.device = torch, like.device

    def real(self, x: Any) -> bool:
        return not x.dtype.is_complex and x.dtype != self.module.bool

    def convert(self, x: Any) -> Any:
        if x.dtype == self.module.float64 and not x.requires_grad and x.is_contiguous():
            return x
        return x.detach().to(self.module.float64).contiguous()

    def address(self, x: Any) -> int:
        return x.data_ptr()

    def empty(self, shape: Tuple[int, ...]) -> Any:
        return self.module.empty(shape, dtype=self.module.float64, device=self.device)


class _CuPy:
    order = staticmethod(_order_last)

    def __init__(self, like: Any) -> None:
        import cupy

        self.module, self.device = cupy, like.device

    def real(self, x: Any) -> bool:
        return x.dtype.kind in "iuf"

    def convert(self, x: Any) -> Any:
        with self.device:
            return self.module.ascontiguousarray(x, dtype="float64")

    def address(self, x: Any) -> int:
        return x.data.ptr

    def empty(self, shape: Tuple[int, ...]) -> Any:
        with self.device:
            return self.module.empty(shape, dtype="float64")


class _Jax:
    order = staticmethod(_order_all)

    def __init__(self, like: Any) -> None:
        import jax

        if not jax.config.jax_enable_x64:
            raise TypeError('arrays of JAX: sums need float64; call jax.config.update("jax_enable_x64", True) first')
        self.module, self.device = jax.numpy, like.device

    def real(self, x: Any) -> bool:
        return x.dtype.kind in "iuf"

    def convert(self, x: Any) -> Any:
        return self.module.asarray(x, dtype="float64")

    def address(self, x: Any) -> int:
        return x.unsafe_buffer_pointer()

    def empty(self, shape: Tuple[int, ...]) -> Any:
        # A new buffer that nobody else has seen: its immutability begins when the sum returns it.
        return self.module.zeros(shape, dtype="float64", device=self.device).block_until_ready()


_LIBRARIES = {"torch": _Torch, "cupy": _CuPy, "jaxlib": _Jax, "jax": _Jax}


def evaluate(
    sum_: _library.Sum, streams: Dict[int, int], sources: Any, strengths: Any, targets: Any
) -> Dict[str, Any]:
    """The sum of arrays that are all on one GPU, as the attributes of a result.

    ``streams`` keeps the address of our stream by the number of the GPU.
    """
    kernel = sum_.kernel
    if not sum_.in_space:
        raise ValueError(f"kernel: with arrays on a GPU allowed: {', '.join(_library.IN_SPACE)}")
    given = {"sources": sources, "strengths": strengths, "targets": targets}
    arrays = {name: value for name, value in given.items() if value is not None}
    off = [name for name, value in arrays.items() if not is_on_gpu(value)]
    if off:
        raise TypeError(f"{off[0]}: not on a GPU, where {next(n for n in arrays if n not in off)} is")
    ordinals = {value.__dlpack_device__()[1] for value in arrays.values()}
    if len(ordinals) > 1:
        raise ValueError(f"sources, strengths and targets are on several GPUs: {sorted(ordinals)}")
    name = type(sources).__module__.partition(".")[0]
    if any(type(value).__module__.partition(".")[0] != name for value in arrays.values()):
        raise TypeError("sources, strengths and targets are arrays of different libraries")
    if name not in _LIBRARIES:
        raise TypeError(f"sources: arrays of {name} on a GPU; expected those of cupy, torch or jax")
    library = _LIBRARIES[name](sources)
    n = sources.shape[0] if len(sources.shape) == 2 else 0
    shapes = {"sources": (n, 3), "strengths": (n, 3) if kernel == "vortex" else (n,)}
    for argument, value in arrays.items():
        shape = shapes.get(argument, (value.shape[0] if len(value.shape) == 2 else 0, 3))
        if tuple(value.shape) != shape or not library.real(value):
            rows = "(n, 3)" if argument != "strengths" else str(shape)
            found = f"shape {tuple(value.shape)}, dtype {value.dtype}"
            raise ValueError(f"{argument}: {found}; expected real numbers of shape {rows}")
    x = library.convert(sources)
    columns = [library.convert(strengths[:, k]) for k in range(3)] if kernel == "vortex" else [library.convert(strengths)]
    at = None if targets is None else library.convert(targets)
    m = (x if at is None else at).shape[0]
    field = library.empty((m, 3))
    potential = None if kernel == "vortex" else library.empty((m,))
    hessian = library.empty((m, 6)) if sum_.hessian else None
    ordinal = ordinals.pop()
    stream = streams.get(ordinal)
    if stream is None:
        stream = streams[ordinal] = sum_.stream(ordinal)
    used = (x, *columns, at, field, potential, hessian)
    library.order([array for array in used if array is not None], stream)
    result = sum_.evaluate_on_gpu(
        ordinal,
        (library.address(x), n),
        [library.address(q) for q in columns],
        None if at is None else (library.address(at), m),
        0 if potential is None else library.address(potential),
        library.address(field),
        0 if hessian is None else library.address(hessian),
    )
    return {**result, "potential": potential, "field": field, "hessian": hessian, "error": None}
