"""The embedded reference engine: real DFlash speculative decoding on a CPU, speaking SGLang's HTTP.

Run it with ``python -m dflashctl.reference --model-path DIR --speculative-algorithm DFLASH
--speculative-draft-model-path DIR``; it needs neither a GPU nor a network. Importing this package
imports nothing heavy.
"""

from __future__ import annotations

from pathlib import Path

_TINY = Path(__file__).resolve().parent / "tiny"


def tiny_paths() -> tuple[Path, Path]:
    """Return the folders of the shipped tiny pair: (target, draft)."""
    return _TINY / "target", _TINY / "draft"
