"""Doctor: edges, arithmetic and the command."""

from pathlib import Path

DATA = Path(__file__).parent / "data"
