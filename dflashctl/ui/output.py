"""What becomes of output that cannot be written: an answer that is lost is an error, lost talk is not."""

from __future__ import annotations

from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator


class OutputLost(Exception):
    """Standard output took no more; `error` says why."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def writing() -> Iterator[None]:
    """An answer is being written: what fails here is the output, not the command."""
    try:
        yield
    except OSError as error:
        raise OutputLost(error) from error


class _Talk:
    """Standard error for what may be missed: a server is not given up because its terminal was closed."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def talk(stream: IO[str]) -> IO[str]:
    """`stream`, deaf to what cannot be written."""
    return cast("IO[str]", _Talk(stream))
