"""NVML: one session with NVIDIA's management library, every question guarded, nothing ever changed."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dflashctl.core.absence import NvmlRefusal

if TYPE_CHECKING:
    from collections.abc import Iterator


class NvmlRefused(Exception):
    """NVML could not be opened; `refusal` says how."""

    def __init__(self, refusal: NvmlRefusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


class Asker:
    """Asks NVML and turns every refusal into None; `unknown` lists the facts that were refused."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self.unknown: list[str] = []

    def ask(self, fact: str, function: str, *args: Any) -> Any:
        """The answer of that NVML function, or None with `fact` noted as unknown."""
        value = self.quietly(function, *args)
        if value is None:
            self.note(fact)
        return value

    def note(self, fact: str) -> None:
        """Remember, once, that this fact is unknown."""
        if fact not in self.unknown:
            self.unknown.append(fact)

    def quietly(self, function: str, *args: Any) -> Any:
        """As `ask`, for a question whose refusal is an answer in itself."""
        call = getattr(self.lib, function, None)
        if call is None:
            return None
        try:
            return call(*args)
        except self.lib.NVMLError:
            return None


@contextmanager
def nvml_session(lib: Any = None) -> Iterator[Any]:
    """The initialised pynvml module; NvmlRefused when it cannot be had, or fails as a whole within the block.

    `lib` replaces pynvml.
    """
    module = lib if lib is not None else _import()
    try:
        module.nvmlInit()
    except module.NVMLError as error:
        raise NvmlRefused(_refusal(module, error)) from error
    try:
        yield module
    except module.NVMLError as error:
        raise NvmlRefused(_refusal(module, error)) from error
    finally:
        with suppress(module.NVMLError):
            module.nvmlShutdown()


def _import() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise NvmlRefused(NvmlRefusal.NO_BINDING) from error
    return pynvml


def _refusal(lib: Any, error: Any) -> NvmlRefusal:
    known = {
        lib.NVML_ERROR_LIBRARY_NOT_FOUND: NvmlRefusal.LIBRARY_NOT_FOUND,
        lib.NVML_ERROR_DRIVER_NOT_LOADED: NvmlRefusal.DRIVER_NOT_LOADED,
        lib.NVML_ERROR_LIB_RM_VERSION_MISMATCH: NvmlRefusal.VERSION_MISMATCH,
        lib.NVML_ERROR_NO_PERMISSION: NvmlRefusal.NO_PERMISSION,
    }
    return known.get(error.value, NvmlRefusal.UNKNOWN)
