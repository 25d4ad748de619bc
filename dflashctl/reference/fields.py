"""Read typed fields from a JSON body, refusing wrong types in the words of SGLang's validation errors."""

from __future__ import annotations

import json
import math
from typing import Any

from dflashctl.reference.errors import BadRequestError

_SHAPE = "Bad Request"


class Fields:
    """A JSON object from a client. A field that is null counts as absent."""

    def __init__(self, values: dict[str, Any], *where: str) -> None:
        self._values = values
        self._where = where or ("body",)

    def has(self, name: str) -> bool:
        """Return whether the field is there and not null."""
        return self._values.get(name) is not None

    def any(self, name: str) -> Any:
        """Return the field as it came, or None."""
        return self._values.get(name)

    def integer(self, name: str, default: int) -> int:
        """Return a whole number."""
        value = self._values.get(name)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(name, "int_type", "Input should be a valid integer")
        return value

    def number(self, name: str, default: float) -> float:
        """Return a finite number."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
            raise self.wrong(name, "float_type", "Input should be a valid number")
        return float(value)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return true or false."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "bool_type", "Input should be a valid boolean")
        return value

    def string(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.wrong(name, "string_type", "Input should be a valid string")
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        """Return a text or a list of texts, without empty ones."""
        value = self._values.get(name)
        found = [value] if isinstance(value, str) else value or []
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise self.wrong(name, "list_type", "Input should be a string or a list of strings")
        return tuple(item for item in found if item)

    def integers(self, name: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        value = self._values.get(name) or []
        if not is_integers(value):
            raise self.wrong(name, "list_type", "Input should be a list of integers")
        return tuple(value)

    def list(self, name: str) -> list[Any]:
        """Return a list that must be there."""
        value = self._values.get(name)
        if not isinstance(value, list):
            raise self.wrong(name, "list_type", "Input should be a valid list")
        return value

    def object(self, name: str) -> Fields:
        """Return a nested object; an absent one is empty."""
        value = self._values.get(name)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.wrong(name, "dict_type", "Input should be a valid dictionary")
        return Fields(value, *self._where, name)

    def wrong(self, name: str, kind: str, text: str) -> BadRequestError:
        """Return the error for a field that has the wrong type or is missing."""
        if name not in self._values:
            kind, text = "missing", "Field required"
        detail = {
            "type": kind,
            "loc": (*self._where, name),
            "msg": text,
            "input": self._values.get(name, self._values),
        }
        return BadRequestError(f"1 validation error:\n  {detail}", _SHAPE)


def is_integers(value: object) -> bool:
    """Return whether ``value`` is a list of whole numbers."""
    return isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) for item in value
    )


def parse_body(raw: bytes) -> Fields:
    """Return the JSON object of a request body."""
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"The body is not JSON: {error}", _SHAPE) from error
    if not isinstance(values, dict):
        raise BadRequestError("The body is not a JSON object.", _SHAPE)
    return Fields(values)
