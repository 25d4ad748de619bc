"""Plan file: the whole plan as JSON, so that a detached supervisor does exactly what was planned."""

from __future__ import annotations

import dataclasses
import json

from dflashctl.core.decode import DecodeError, decode
from dflashctl.core.errors import StateError
from dflashctl.core.json_text import json_loads
from dflashctl.core.plan import Plan
from dflashctl.core.report import Json, to_json


def dump_plan(plan: Plan) -> str:
    """Every field of the plan; load_plan gives an equal plan back."""
    return json.dumps(
        {field.name: _plain(getattr(plan, field.name)) for field in dataclasses.fields(plan)}, indent=1
    )


def load_plan(text: str) -> Plan:
    """The plan of dump_plan's text; StateError when it is not one."""
    try:
        return decode(Plan, json_loads(text), at="plan")
    except (ValueError, DecodeError) as error:
        raise StateError(f"the plan file cannot be read: {error}", hint="dflashctl up") from error


def _plain(value: object) -> Json:
    """Field by field, as a `to_json` method may shorten or rename."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return to_json(value)
