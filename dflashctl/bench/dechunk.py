"""HTTP/1.1 body framing (RFC 9112, 6 and 7): chunked, by length, or until the connection closes."""

from __future__ import annotations

_LINE_LIMIT = 4096


class FramingError(ValueError):
    """Bytes that are not the announced framing; the message quotes them."""


class Chunked:
    """Takes the chunk framing off a body that arrives in any pieces; `done` after the last chunk and trailers."""

    __slots__ = ("_carry", "_left", "_trailers", "done", "surplus")

    def __init__(self) -> None:
        self._carry = b""  # the start of a size line or trailer that is not whole yet
        self._left = 0  # bytes of the open chunk still to come, its CR LF included
        self._trailers = False
        self.done = False
        self.surplus = b""  # what came after the end

    def feed(self, data: bytes) -> bytes:
        """The body bytes in `data`; raises FramingError."""
        if not self._left and not self._carry and not self._trailers:
            line = data.find(b"\r\n", 0, 12)
            if line > 0:
                size = _size(data, 0, line)
                if size and line + size + 4 == len(data):  # by far the most common: one chunk, whole
                    return data[line + 2 : -2]
        return self._walk(data)

    def _walk(self, data: bytes) -> bytes:
        if self._carry:
            data, self._carry = self._carry + data, b""
        pieces: list[bytes] = []
        at, end = 0, len(data)
        while at < end and not self.done:
            if self._left:
                at = self._inside(data, at, pieces)
            elif self._trailers:
                at = self._trailer(data, at)
            else:
                at = self._size_line(data, at)
        if self.done:
            self.surplus = data[at:]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _inside(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        """Take what is here of the open chunk; its last two bytes are CR LF."""
        taken = min(self._left, len(data) - at)
        body = min(taken, self._left - 2)
        if body > 0:
            pieces.append(data[at : at + body])
        self._left -= taken
        if not self._left and data[at + taken - 1] != 10:  # noqa: PLR2004 - LF
            raise FramingError(f"chunk ends with {data[at + taken - 2 : at + taken]!r} instead of CR LF")
        return at + taken

    def _size_line(self, data: bytes, at: int) -> int:
        line = data.find(b"\r\n", at)
        if line < 0:
            return self._keep(data, at)
        size = _size(data, at, line)
        if size:
            self._left = size + 2
        else:
            self._trailers = True
        return line + 2

    def _trailer(self, data: bytes, at: int) -> int:
        line = data.find(b"\r\n", at)
        if line < 0:
            return self._keep(data, at)
        self.done = line == at
        return line + 2

    def _keep(self, data: bytes, at: int) -> int:
        self._carry = data[at:]
        if len(self._carry) > _LINE_LIMIT:
            raise FramingError(f"chunk size line of more than {_LINE_LIMIT} bytes: {self._carry[:40]!r}")
        return len(data)


class Sized:
    """A body of a known length."""

    __slots__ = ("_left", "done", "surplus")

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0
        self.surplus = b""

    def feed(self, data: bytes) -> bytes:
        body = data[: self._left]
        self._left -= len(body)
        self.done = self._left == 0
        self.surplus = data[len(body) :]
        return body


class UntilClose:
    """A body that ends with the connection; `done` is set by whoever sees the end."""

    __slots__ = ("done", "surplus")

    def __init__(self) -> None:
        self.done = False
        self.surplus = b""

    def feed(self, data: bytes) -> bytes:
        return data


def _size(data: bytes, at: int, line: int) -> int:
    """The chunk size in data[at:line], its extensions left out."""
    text = data[at:line]
    if b";" in text:
        text = text.partition(b";")[0]
    try:
        return int(text, 16)
    except ValueError:
        raise FramingError(f"not a chunk size: {text[:40]!r}") from None
