"""HTTP/1.1 body framing (RFC 9112, 6 and 7): chunked, by length, or until the connection closes."""

from __future__ import annotations

_LINE_LIMIT = 4096
_KNOWN_SIZES = 65536
_LAST = b"0\r\n\r\n"


class _Sizes(dict[bytes, int]):
    """Chunk sizes by their text, remembered; -1 for a text that is no plain size."""

    def __missing__(self, text: bytes) -> int:
        try:
            size = int(text, 16) if text.isalnum() else -1
        except ValueError:
            return -1
        if len(self) < _KNOWN_SIZES and text.isalnum():
            self[text] = size
        return size


SIZES = _Sizes()


def whole_chunks(data: bytes) -> list[bytes] | None:
    """What the chunks in `data` hold if that is a row of whole ones without CR LF in them; None for anything else."""
    parts = data.split(b"\r\n")
    if len(parts) % 2 == 0 or parts.pop():
        return None
    bodies = parts[1::2]
    if list(map(len, bodies)) != list(map(SIZES.__getitem__, parts[::2])):
        return None
    return bodies if all(bodies) else None  # an empty chunk is the last one


class FramingError(ValueError):
    """Bytes that are not the announced framing; the message quotes them."""


class Chunked:
    """Takes the chunk framing off a body that arrives in any pieces; `done` after the last chunk and trailers."""

    __slots__ = ("_carry", "_trailers", "done", "left", "surplus")

    def __init__(self) -> None:
        self._carry = b""  # the start of a size line or trailer that is not whole yet
        self.left = 0  # bytes of the open chunk still to come, its CR LF included
        self._trailers = False
        self.done = False
        self.surplus = b""  # what came after the end

    @property
    def between(self) -> bool:
        """Whether the next byte begins a chunk."""
        return not (self.left or self._carry or self._trailers or self.done)

    def feed(self, data: bytes) -> bytes:
        """The body bytes in `data`; raises FramingError."""
        if data == _LAST and self.between:  # how most bodies end
            self.done = True
            return b""
        if self._carry:
            data, self._carry = self._carry + data, b""
        pieces: list[bytes] = []
        at, end = 0, len(data)
        while at < end and not self.done:
            if self.left:
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
        taken = min(self.left, len(data) - at)
        body = min(taken, self.left - 2)
        if body > 0:
            pieces.append(data[at : at + body])
        self.left -= taken
        if not self.left and data[at + taken - 1] != 10:  # noqa: PLR2004 - LF
            raise FramingError(f"chunk ends with {data[at + taken - 2 : at + taken]!r} instead of CR LF")
        return at + taken

    def _size_line(self, data: bytes, at: int) -> int:
        line = data.find(b"\r\n", at)
        if line < 0:
            return self._keep(data, at)
        size = _size(data, at, line)
        if size:
            self.left = size + 2
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

    __slots__ = ("done", "left", "surplus")
    between = False

    def __init__(self, length: int) -> None:
        self.left = length
        self.done = length == 0
        self.surplus = b""

    def feed(self, data: bytes) -> bytes:
        body = data[: self.left]
        self.left -= len(body)
        self.done = self.left == 0
        self.surplus = data[len(body) :]
        return body


class UntilClose:
    """A body that ends with the connection; `done` is set by whoever sees the end."""

    __slots__ = ("done", "surplus")
    between = False

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
