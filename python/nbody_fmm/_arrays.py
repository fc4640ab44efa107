"""Arguments of any kind as contiguous arrays of the machine's own numbers."""

from __future__ import annotations

from typing import Any, List, Optional

import numpy as np

_FLOAT = np.dtype(np.float64)

#: Columns that positions may have, by kernel.
WIDTHS = {"log": (2,), "harmonic": (2,), "gauss": (1, 2, 3)}


def numbers(name: str, value: Any, expected: str, kinds: str = "iuf") -> np.ndarray:
    """Returns ``value`` as an array whose dtype is of one of ``kinds``."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name}: a masked array; expected {expected} without a mask")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: not an array ({error}); expected {expected}") from None
    if array.dtype.kind not in kinds:
        raise TypeError(f"{name}: dtype {array.dtype}, shape {array.shape}; expected {expected}")
    return array


def contiguous(array: np.ndarray, dtype: np.dtype = _FLOAT) -> np.ndarray:
    """Returns ``array`` itself if it is aligned, in C order and of ``dtype``, otherwise a copy that is."""
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, dtype, ["C", "A"])


def positions(name: str, value: Any, widths: tuple) -> np.ndarray:
    """Returns positions of shape (n, d) with d one of ``widths``."""
    shape = " or ".join(f"(n, {d})" for d in widths)
    expected = f"real numbers of shape {shape}"
    array = numbers(name, value, expected)
    if array.ndim == 1 and array.size == 0:
        array = array.reshape(0, widths[0])
    elif array.ndim == 1 and 1 in widths:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.shape[1] not in widths:
        raise ValueError(f"{name}: shape {array.shape}; expected {expected}")
    return contiguous(array)


def strengths(value: Any, kernel: str, n: int) -> List[np.ndarray]:
    """Returns the columns of strengths of ``n`` sources: one, three of vortices, or real and imaginary parts."""
    shape = (n, 3) if kernel == "vortex" else (n,)
    plane = kernel == "harmonic"
    expected = f"{'complex or real' if plane else 'real'} numbers of shape {shape}, a row for each source"
    array = numbers("strengths", value, expected, "iufc" if plane else "iuf")
    if array.size == 0 and n == 0:
        array = array.reshape(shape)
    if array.shape != shape:
        raise ValueError(f"strengths: shape {array.shape}; expected {expected}")
    if kernel == "vortex":
        return [contiguous(array[:, k]) for k in range(3)]
    if array.dtype.kind == "c":
        return [contiguous(array.real), contiguous(array.imag)]
    return [contiguous(array)]


def exclusions(value: Any) -> Optional[np.ndarray]:
    """Returns pairs of row numbers of shape (p, 2), or None without any."""
    if value is None:
        return None
    expected = "whole numbers of shape (p, 2), rows of the sources"
    empty = value.size == 0 if isinstance(value, np.ndarray) else isinstance(value, (list, tuple)) and not value
    array = numbers("exclusions", value, expected, "iuf" if empty else "iu")
    if array.size == 0:
        return None
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"exclusions: shape {array.shape}; expected {expected}")
    if array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"exclusions: {array.max()} is no row of the sources")
    return contiguous(array, np.dtype(np.int64)).copy()


def sides(value: Any) -> Optional[tuple]:
    """Returns the three sides of a box: one number is the side of a cube."""
    if value is None:
        return None
    expected = "the side of a cube, or three sides"
    array = numbers("box", value, expected)
    if array.shape not in ((), (3,)):
        raise ValueError(f"box: shape {array.shape}; expected {expected}")
    return tuple(float(side) for side in np.broadcast_to(array, 3))
