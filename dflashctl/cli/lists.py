"""Lists of numbers as options give them: 1,8,32, in one piece or in several."""

from __future__ import annotations

from dflashctl.core.errors import UsageProblem


def whole_numbers(option: str, texts: tuple[str, ...]) -> tuple[int, ...]:
    """Whole numbers above 0; UsageProblem names the option and the word."""
    return tuple(int(number) for number in _each(option, texts, whole=True))


def numbers(option: str, texts: tuple[str, ...]) -> tuple[float, ...]:
    """Numbers above 0."""
    return tuple(_each(option, texts, whole=False))


def _each(option: str, texts: tuple[str, ...], *, whole: bool) -> list[float]:
    return [_number(option, text, word, whole=whole) for text in texts for word in text.split(",")]


def _number(option: str, text: str, word: str, *, whole: bool) -> float:
    try:
        number = int(word) if whole else float(word)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):  # NaN is no number either
        raise UsageProblem(f"{option} {text!r}: {word!r} is not a number above 0", hint=f"{option} 1,8,32")
    return float(number)
