"""Word problems with worked answers, made up from a random generator: what the tiny pair was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

NAMES = (
    "Ana", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hugo", "Ivy", "Jon", "Kim", "Leo", "Mia",
    "Noah", "Oda", "Pia", "Quin", "Rosa", "Sam", "Tia", "Uma", "Vic", "Wen", "Xia", "Yan", "Zoe",
)  # fmt: skip
THINGS = (
    "apples", "pens", "books", "coins", "shells", "cards", "stamps", "marbles", "eggs", "cakes",
    "tickets", "stickers", "beads", "keys", "leaves",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The quantities of a problem: three amounts and a small count."""

    a: int
    b: int
    c: int
    k: int

    @property
    def kept(self) -> int:
        """How many can be given away after buying a and b."""
        return min(self.c, self.a + self.b)

    @property
    def taken(self) -> int:
        """How many can be taken from k shelves of a."""
        return min(self.b, self.k * self.a)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of problem. The texts may use {n} and {m} (people), {t} (things), the numbers, and {z}."""

    question: str
    steps: str
    answer: Callable[[Numbers], int]


KINDS = (
    Kind(
        question="{n} has {a} {t}. {m} gives {n} {b} more {t}. How many {t} does {n} have now?",
        steps="{n} starts with {a} {t}. After {m} gives {b} more, {n} has {a} + {b} = {z} {t}.",
        answer=lambda x: x.a + x.b,
    ),
    Kind(
        question="{n} has {sum} {t} and loses {b} of them. How many {t} are left?",
        steps="{n} starts with {sum} {t}. After losing {b}, {n} has {sum} - {b} = {z} {t} left.",
        answer=lambda x: x.a,
    ),
    Kind(
        question="{n} fills {k} boxes with {a} {t} each. How many {t} are there in total?",
        steps="There are {k} boxes with {a} {t} each. The total is {k} * {a} = {z} {t}.",
        answer=lambda x: x.k * x.a,
    ),
    Kind(
        question="{n} shares {product} {t} equally among {k} friends. How many {t} does each friend get?",
        steps="There are {product} {t} and {k} friends. Each friend gets {product} / {k} = {z} {t}.",
        answer=lambda x: x.a,
    ),
    Kind(
        question="{n} buys {a} {t} and {b} more {t}, then gives {kept} {t} to {m}. How many {t} does {n} keep?",
        steps="{n} buys {a} + {b} = {sum} {t} in total. After giving {kept} to {m}, "
        "{n} keeps {sum} - {kept} = {z} {t}.",
        answer=lambda x: x.a + x.b - x.kept,
    ),
    Kind(
        question="Each of {k} shelves holds {a} {t}. {n} takes away {taken} {t}. How many {t} remain?",
        steps="The shelves hold {k} * {a} = {product} {t} in total. After {n} takes {taken}, "
        "there remain {product} - {taken} = {z} {t}.",
        answer=lambda x: x.k * x.a - x.taken,
    ),
)


def problem(random: Random) -> tuple[str, str]:
    """Return the next question and its worked answer, which ends with ``#### <number>``."""
    first, second = random.sample(NAMES, 2)
    things = random.choice(THINGS)
    a, b, c = (random.randint(2, 20) for _ in range(3))
    numbers = Numbers(a=a, b=b, c=c, k=random.randint(2, 9))
    kind = KINDS[random.randrange(len(KINDS))]
    result = kind.answer(numbers)
    words = {
        "n": first, "m": second, "t": things, "a": a, "b": b, "k": numbers.k, "z": result,
        "sum": a + b, "product": numbers.k * a, "kept": numbers.kept, "taken": numbers.taken,
    }  # fmt: skip
    steps = kind.steps.format(**words)
    answer = f"Let us solve this step by step.\n{steps}\nThe answer is {result}.\n#### {result}"
    return kind.question.format(**words), answer
