"""Lists of numbers as options give them: 1,8,32."""

from __future__ import annotations

from dflashctl.core.errors import UsageProblem


def whole_numbers(option: str, text: str | None) -> tuple[int, ...]:
    """Whole numbers above 0; UsageProblem names the option and the word."""
    return tuple(int(number) for number in _each(option, text, whole=True))


def numbers(option: str, text: str | None) -> tuple[float, ...]:
    """Numbers above 0."""
    return tuple(_each(option, text, whole=False))


def _each(option: str, text: str | None, *, whole: bool) -> list[float]:
    found = []
    for word in (text or "").split(",") if text is not None else ():
        try:
            number = int(word) if whole else float(word)
        except ValueError:
            number = 0
        if not 0 < number < float("inf"):  # NaN is no number either
            raise UsageProblem(
                f"{option} {text!r}: {word!r} is not a number above 0", hint=f"{option} 1,8,32"
            )
        found.append(float(number))
    return found
