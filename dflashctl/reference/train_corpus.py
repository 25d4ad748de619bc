"""What the tiny pair is trained on, and with which dimensions: the corpus, its tokenizer, its batches."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dflashctl.reference.problems import problem

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

VOCABULARY = 1024
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|MASK|>")
EPS = 1e-6
ROPE_THETA = 10000.0
POSITIONS = 4096
HEAD_DIM = 64
KV_HEADS = 2
DRAFT_LAYERS = 2
PROBLEM_SHARE = 0.7
ANCHORS = 16  # blocks that one training sequence is asked for
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CODE = (
    (
        "Write a Python function {f} that adds {k} to a number.",
        'def {f}(x):\n    """Add {k} to x."""\n    return x + {k}',
    ),
    (
        "Write a Python function {f} that multiplies a number by {k}.",
        'def {f}(x):\n    """Multiply x by {k}."""\n    return x * {k}',
    ),
    (
        "Write a Python function {f} that sums a list.",
        (
            'def {f}(items):\n    """Return the sum of items."""\n    total = 0\n'
            "    for item in items:\n        total += item\n    return total"
        ),
    ),
    (
        "Write a Python function {f} that finds the largest item of a list.",
        (
            'def {f}(items):\n    """Return the largest of items."""\n    best = items[0]\n'
            "    for item in items:\n        if item > best:\n            best = item\n    return best"
        ),
    ),
    (
        "Write a Python function {f} that counts from 1 to {k}.",
        'def {f}():\n    """Return the numbers from 1 to {k}."""\n    return list(range(1, {k} + 1))',
    ),
)
VERBS = ("do", "get", "run", "make", "find", "calc", "list", "item", "num", "val")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to train, on what, for how long."""

    out: Path
    device: str
    target_s: float
    draft_s: float
    block: int
    hidden: int
    layers: int
    length: int  # tokens of a training sequence
    batch: int

    @property
    def heads(self) -> int:
        """The number of query heads."""
        return max(4, self.hidden // HEAD_DIM)

    @property
    def target_layer_ids(self) -> list[int]:
        """The target's layers whose outputs the drafter sees."""
        return sorted({1, self.layers // 2, self.layers - 2})


def code(rng: random.Random) -> tuple[str, str]:
    """Return a request for a small function, and the function."""
    question, answer = rng.choice(CODE)
    words = {"f": "_".join(rng.sample(VERBS, 2)), "k": rng.randint(2, 99)}
    return question.format(**words), f"Here is the function.\n```python\n{answer.format(**words)}\n```"


def document(rng: random.Random) -> tuple[str, str]:
    """Return the next question and answer of the corpus: seven problems to three functions."""
    return problem(rng) if rng.random() < PROBLEM_SHARE else code(rng)


def chat(question: str, answer: str) -> str:
    """Return the text of one exchange, as the chat template writes it."""
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n{answer}<|im_end|>\n"


def train_tokenizer(rng: random.Random) -> Any:
    """Return a byte-level BPE tokenizer with single digits, trained on the corpus."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    bpe.decoder = decoders.ByteLevel()
    texts = (chat(*document(rng)).replace("<|im_start|>", "").replace("<|im_end|>", "") for _ in range(20000))
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 4,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=SPECIAL[2],
        pad_token=SPECIAL[0],
        additional_special_tokens=[SPECIAL[1], SPECIAL[3]],
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def batches(tokenizer: Any, rng: random.Random, rows: int, length: int, device: str) -> Iterator[Any]:
    """Yield token tensors [rows, length] cut from the endless corpus."""
    import torch

    buffer: list[int] = []
    while True:
        while len(buffer) < rows * length:
            buffer.extend(tokenizer.encode(chat(*document(rng)), add_special_tokens=False))
        yield torch.tensor(buffer[: rows * length], device=device).view(rows, length)
        del buffer[: rows * length]


def optimise(parameters: Any, seconds: float, rate: float, loss_of: Callable[[], Any], name: str) -> None:
    """Minimise ``loss_of`` with AdamW for ``seconds``, the rate warmed up over 100 steps and then cosine."""
    import torch

    parameters = list(parameters)
    adam = torch.optim.AdamW(parameters, lr=rate, betas=(0.9, 0.95), weight_decay=0.01)
    begin, step = time.monotonic(), 0
    while (share := (time.monotonic() - begin) / seconds) < 1:
        for group in adam.param_groups:
            group["lr"] = (
                rate * min(1, (step + 1) / 100) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * share)))
            )
        loss = loss_of()
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        adam.step()
        step += 1
        if step % 200 == 0:
            seconds_gone = time.monotonic() - begin
            sys.stderr.write(f"{name} step {step} loss {loss.item():.4f} {seconds_gone:.0f}s\n")
