"""Server-sent events: from body bytes cut anywhere to the payloads of `data:` fields."""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"
_FIELD = b"data: "


class Events:
    """Collects bytes and gives whole events; LF, CR LF and CR line ends, comments and other fields included."""

    __slots__ = ("_carry", "comments")

    def __init__(self) -> None:
        self._carry = b""
        self.comments = 0  # keep-alives

    @property
    def between(self) -> bool:
        """Whether the next byte begins an event."""
        return not self._carry

    def feed(self, body: bytes) -> list[bytes]:
        """The payloads that became whole, in order; UTF-8 is never cut, since an event is whole."""
        if self._carry:
            body, self._carry = self._carry + body, b""
        if body.startswith(_FIELD) and body.endswith(b"\n\n") and b"\r" not in body:
            payloads = body[len(_FIELD) : -2].split(b"\n\ndata: ")
            if body.count(b"\n") == 2 * len(payloads):  # the common case: whole events of one line each
                return payloads
        if b"\r" in body:
            body = self._plain_line_ends(body)
        parts = body.split(b"\n\n")
        last = parts.pop()
        if last:
            self._carry = last + self._carry
        return [payload for part in parts if (payload := self._payload(part)) is not None]

    def flush(self) -> list[bytes]:
        """The payload of a last event without its blank line, at the end of the body."""
        rest, self._carry = self._carry.replace(b"\r", b"\n").strip(b"\n"), b""
        payload = self._payload(rest) if rest else None
        return [] if payload is None else [payload]

    def _plain_line_ends(self, body: bytes) -> bytes:
        """LF for CR LF and CR; a CR at the very end waits for its possible LF. JSON never holds either raw."""
        held = b"\r" if body.endswith(b"\r") else b""
        plain = body[: len(body) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._carry = held
        return plain

    def _payload(self, event: bytes) -> bytes | None:
        if event.startswith(b"data: ") and b"\n" not in event:
            return event[6:]
        return self._from_lines(event)

    def _from_lines(self, event: bytes) -> bytes | None:
        """The data lines of an event of several lines, joined; None for comments and other fields alone."""
        data: list[bytes] = []
        for line in event.removeprefix(_BOM).split(b"\n"):
            name, _, value = line.partition(b":")
            if name == b"data":
                data.append(value.removeprefix(b" "))
            elif line.startswith(b":"):
                self.comments += 1
        return b"\n".join(data) if data else None
