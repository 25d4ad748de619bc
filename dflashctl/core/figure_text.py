"""Figures as people read them: four digits, never an exponent."""

_WHOLE = 999.95
_TINY = 0.0001


def figure_text(value: float) -> str:
    """Whole from 1000 on, else four significant digits: 13927, 557.2, 12.33, 0.2332."""
    if abs(value) >= _WHOLE:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) >= _TINY or not value else f"{value:.6f}"
