"""Engines: each is a module that satisfies core.engine.Engine; a new one is added here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.engines import reference, sglang

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.engine import Engine

ENGINES: Mapping[str, Engine] = {sglang.NAME: sglang, reference.NAME: reference}
