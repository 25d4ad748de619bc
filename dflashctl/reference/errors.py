"""The errors that a user of the engine can cause, each with the exit code or HTTP status it ends in."""

from __future__ import annotations


class StartError(Exception):
    """The server cannot start as asked; the process exits with code 1."""


class BadRequestError(Exception):
    """A request is refused with HTTP 400.

    ``kind`` is the ``type`` field of SGLang's error object: "BadRequestError" for a value that is out of
    range, "Bad Request" for a body of the wrong shape, "BadRequest" for options that exclude each other.
    """

    def __init__(self, message: str, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
