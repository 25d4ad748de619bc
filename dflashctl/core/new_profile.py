"""What `profile new` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.engine import Translation


@dataclass(frozen=True, kw_only=True)
class NewProfile:
    """`text` is the file; `unpinned` are repositories whose commit could not be found, which the file still needs.

    `path` is where it was written, None when it is only shown.
    """

    name: str
    text: str
    translations: tuple[Translation, ...] = ()
    unpinned: tuple[str, ...] = ()
    path: str | None = None
