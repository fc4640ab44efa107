"""The compiled module: sums of contiguous arrays. Use the package `nbody_fmm`."""

from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import numpy.typing as npt

__version__: str

class ToleranceError(ArithmeticError): ...
class DeviceError(RuntimeError): ...

class Sum:
    def __new__(cls, options: Dict[str, Any]) -> Sum: ...
    @property
    def kernel(self) -> str: ...
    def evaluate(
        self,
        sources: npt.NDArray[np.float64],
        strengths: List[npt.NDArray[np.float64]],
        targets: Optional[npt.NDArray[np.float64]],
        exclusions: Optional[npt.NDArray[np.int64]],
    ) -> Dict[str, Any]: ...
    def stream(self, ordinal: int) -> int: ...
    def evaluate_on_gpu(
        self,
        ordinal: int,
        sources: Tuple[int, int],
        strengths: List[int],
        targets: Optional[Tuple[int, int]],
        potential: int,
        field: int,
    ) -> Dict[str, Any]: ...

def before_fork() -> None: ...
def after_fork_in_parent() -> None: ...
def after_fork_in_child() -> None: ...
def panic() -> None: ...
