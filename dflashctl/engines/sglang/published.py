"""What a release makes of a published launch command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError

if TYPE_CHECKING:
    from dflashctl.core.engine import Translation


def published(command: str, release: str, /) -> tuple[Translation, ...]:
    """Its options and variables that the release spells otherwise or does not have; nothing where it cannot be read."""
    from dflashctl.engines.sglang.from_command import drafted
    from dflashctl.engines.sglang.paste import read_pasted

    try:
        return drafted(read_pasted(command), release).translations
    except DflashError:
        return ()
