"""The prompts of one workload, cut to what is measured and what warms up, and the requests made of them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.bench import CHAT, GENERATE, BenchRequest
from dflashctl.commands.bench_settings import warm_ups
from dflashctl.core.errors import CheckFailed, UsageProblem
from dflashctl.core.progress import Progress
from dflashctl.core.replies import mapping, parse_chat, parse_json, text
from dflashctl.core.workload import BenchPrompt, WorkloadOptions, as_openai, prompts_hash, text_of, user
from dflashctl.proofs.client import answered
from dflashctl.workloads import workload
from dflashctl.workloads.prompts_file import read_prompts
from dflashctl.workloads.random_words import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.bench_options import BenchOptions
    from dflashctl.core.bench_setting import Setting
    from dflashctl.core.workload import Message, Record, Workload
    from dflashctl.env import Env
    from dflashctl.ports.chat_template import ChatTemplate
    from dflashctl.proofs.client import Client

# Published sets are cut to this many prompts unless --num-prompts says otherwise (0 takes all).
DEFAULT_COUNT = 128
_WARM_UP_TOKENS = 64
_SHORT, _LONG, _LONGEST = 400, 4400, 40_000  # characters of the samples whose tokens are counted
_SAMPLED = 8
_SAMPLE = "Sample"


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """`warm_up` prompts are none of the measured ones: spare ones of the set, then made-up ones of similar length.

    `cold`: they begin with words made for this run, so that another run must not send them again. `hash` leaves
    those words out, so that it is the same for every run of the same workload.
    """

    name: str
    prompts: tuple[BenchPrompt, ...]
    warm_up: tuple[BenchPrompt, ...]
    max_tokens: int
    hash: str
    characters_per_token: float | None = None
    cold: bool = False


def gather(
    env: Env, options: BenchOptions, name: str, client: Client, in_flight: int, max_tokens: int | None
) -> Gathered:
    """The prompts of workload `name`, or of the file that was given under that name.

    Those for the warm-up are enough for `in_flight` requests at once, and never more than are measured.
    """
    if options.prompts is not None:
        return _from_file(env, options, name, in_flight, max_tokens)
    chosen = workload(name)
    records = _records(env, chosen, offline=options.offline)
    count = _count(options, chosen)
    limit = max_tokens or chosen.MAX_TOKENS
    asked = WorkloadOptions(
        count=None
        if count is None
        else count + warm_ups(options, in_flight, count, made_to_length=chosen.NEEDS_TOKEN_SIZE),
        seed=options.seed,
        input_tokens=options.input_tokens,
        prefix_tokens=options.prefix_tokens,
        groups=options.groups,
        context_tokens=client.facts.max_model_len,
        output_tokens=limit,
        nonce=secrets.token_hex(8),
    )
    size = _characters_per_token(client, chosen, records, asked) if chosen.NEEDS_TOKEN_SIZE else None
    asked = asked if size is None else replace(asked, characters_per_token=size)
    gathered = _split(options, name, chosen.prompts(records, asked), count, in_flight, limit, size)
    if not chosen.NEEDS_TOKEN_SIZE:
        return gathered
    lasting = chosen.prompts(records, replace(asked, nonce=""))[: len(gathered.prompts)]
    return replace(gathered, hash=prompts_hash(lasting), cold=lasting != gathered.prompts)


def _split(
    options: BenchOptions,
    name: str,
    prompts: tuple[BenchPrompt, ...],
    count: int | None,
    in_flight: int,
    limit: int,
    characters_per_token: float | None = None,
) -> Gathered:
    measured = prompts[:count]
    if not measured:
        raise UsageProblem(f"workload {name!r} has no prompt that fits this server")
    made_to_length = characters_per_token is not None
    warm_up = warm_ups(options, in_flight, len(measured), made_to_length=made_to_length)
    spare = prompts[len(measured) :][:warm_up]
    return Gathered(
        name=name,
        prompts=measured,
        warm_up=(*spare, *_made_up(measured, warm_up - len(spare))),
        max_tokens=limit,
        hash=prompts_hash(measured),
        characters_per_token=characters_per_token,
    )


def _made_up(like: tuple[BenchPrompt, ...], count: int) -> tuple[BenchPrompt, ...]:
    """Prompts that no cache has seen and nobody measures, as long as those that are measured."""
    nonce = secrets.token_hex(8)
    return tuple(
        BenchPrompt(
            id=f"made-up/{index}",
            messages=user(sentences(f"{nonce}/{index}", len(opening(like[index % len(like)])))),
        )
        for index in range(count)
    )


def opening(prompt: BenchPrompt) -> str:
    """All that a prompt says at first."""
    return "\n".join(text_of(message) for message in prompt.messages)


def probe_prompt() -> tuple[tuple[str, str], ...]:
    """A conversation to find out with what a server counts; it is none of any set, so that it warms no cache."""
    return user(sentences(secrets.token_hex(8), _SHORT))


def _from_file(
    env: Env, options: BenchOptions, name: str, in_flight: int, max_tokens: int | None
) -> Gathered:
    path = Path(options.prompts or "")
    try:
        source = (env.cwd / path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"the prompts file {str(path)!r} cannot be read: {error}") from error
    prompts = read_prompts(source, str(path))
    if options.api == GENERATE:
        for prompt in prompts:
            _plain(prompt.id, prompt.messages)
    return _split(options, name, prompts, options.count or None, in_flight, max_tokens or 1024)


def _records(env: Env, chosen: Workload, *, offline: bool) -> tuple[Record, ...]:
    if chosen.SOURCE is None:
        return ()
    env.notify(Progress(step="dataset", text=f"reading {chosen.SOURCE.label}"))
    return env.datasets.records(chosen.SOURCE, offline=offline)


def _count(options: BenchOptions, chosen: Workload) -> int | None:
    if options.count is not None:
        return options.count or chosen.DEFAULT_COUNT
    return chosen.DEFAULT_COUNT or DEFAULT_COUNT


def _characters_per_token(
    client: Client, chosen: Workload, records: tuple[Record, ...], asked: WorkloadOptions
) -> float:
    """How many characters of this workload's own kind of text make a token, as the server counts them."""
    long = _sample_size(client.facts.max_model_len)
    sample = _sample(chosen, records, asked, long)
    few, many = (_prompt_tokens(client, sample[:size]) for size in (_SHORT, long))
    if many <= few:
        raise CheckFailed(
            f"{chosen.NAME}: the server counts {few} and {many} tokens for a short and a long prompt"
        )
    return (long - _SHORT) / (many - few)


def _sample_size(context: int | None) -> int:
    """Characters to count: many, as kinds of text vary, and few enough for a context at a token for each."""
    return min(_LONGEST, max(_LONG, (context or 0) // 2))


def _sample(chosen: Workload, records: tuple[Record, ...], asked: WorkloadOptions, size: int) -> str:
    """A piece of each of some prompts, behind words that are in none of them, so that no cache gains from it.

    Each from further on in its prompt: texts begin with other words than they go on with. The same in every run,
    so that lengths and the hash of the prompts are too.
    """
    alone = replace(asked, count=_SAMPLED, input_tokens=None, prefix_tokens=None, context_tokens=None)
    texts = [opening(prompt) for prompt in chosen.prompts(records, replace(alone, nonce=_SAMPLE))]
    piece = size // _SAMPLED
    starts = [max(0, len(text) - piece) * index // _SAMPLED for index, text in enumerate(texts)]
    own = "\n".join(text[start : start + piece] for text, start in zip(texts, starts, strict=True))
    return f"{_SAMPLE}. {own} {sentences(_SAMPLE, size)}"[:size]


def _prompt_tokens(client: Client, content: str) -> int:
    reply = parse_chat(answered(client.chat_reply(content, max_tokens=1), "the sample prompt"))
    if reply.prompt_tokens is None:
        raise CheckFailed("the server gives no usage, so lengths cannot be measured")
    return reply.prompt_tokens


def requests_of(
    prompts: Sequence[tuple[str, Sequence[Message], int]],
    setting: Setting,
    client: Client,
    template: ChatTemplate | None,
) -> tuple[BenchRequest, ...]:
    """Requests for (id, conversation, output limit), with everything that the setting says and nothing more."""
    switch = (
        {}
        if setting.thinking is None
        else {"thinking": setting.thinking, "enable_thinking": setting.thinking}
    )
    made = []
    for index, (name, conversation, limit) in enumerate(prompts):
        sampling = _sampling(setting, index)
        if template is not None:
            params = {"max_new_tokens": limit, **sampling}
            body: dict[str, object] = {
                "text": template.render(_plain(name, conversation), switch),
                "sampling_params": params,
            }
        else:
            messages = [as_openai(message) for message in conversation]
            body = {"model": client.facts.model, "messages": messages, "max_tokens": limit, **sampling}
            if switch:
                body["chat_template_kwargs"] = switch
        if setting.speculation is False and client.facts.per_request_speculation:
            body["speculation"] = False
        made.append(BenchRequest(id=name, body=body, api=CHAT if template is None else GENERATE))
    return tuple(made)


def _plain(name: str, conversation: Sequence[Message]) -> list[tuple[str, str]]:
    """(role, text) of each message; UsageProblem for one with more, of which each server makes another prompt."""
    plain = [message for message in conversation if not isinstance(message, Mapping)]
    if len(plain) < len(conversation):
        raise UsageProblem(
            f"prompt {name!r} has messages with more than a role and a text, which --api generate cannot send",
            hint="--api chat",
        )
    return plain


def _sampling(setting: Setting, index: int) -> dict[str, object]:
    """Greedy requests carry no seed; a sampled one has its own, so that a run can be repeated."""
    fields: dict[str, object] = {}
    if setting.temperature is not None:
        fields["temperature"] = setting.temperature
    if setting.top_p is not None and setting.temperature != 0:
        fields["top_p"] = setting.top_p
    if setting.temperature != 0 and setting.api == CHAT:
        fields["seed"] = setting.seed + index
    if setting.ignore_eos:
        fields["ignore_eos"] = True
    return fields


def warm_up_requests(
    gathered: Gathered, setting: Setting, client: Client, template: ChatTemplate | None
) -> tuple[BenchRequest, ...]:
    """Short answers to the warm-up prompts, as the published harness does it."""
    limit = min(_WARM_UP_TOKENS, gathered.max_tokens)
    asked = [(f"warm-up/{p.id}", p.messages, limit) for p in gathered.warm_up[: setting.warm_up]]
    return requests_of(asked, setting, client, template)


def template_of(env: Env, options: BenchOptions, client: Client) -> ChatTemplate | None:
    """The chat template to apply here for `--api generate`, None when the server applies it."""
    if options.api == CHAT:
        return None
    if options.api != GENERATE:
        raise UsageProblem(f"there is no interface {options.api!r}", hint="--api chat or --api generate")
    return env.chat_templates.load(tokenizer_folder(env, options, client))


def tokenizer_folder(env: Env, options: BenchOptions, client: Client) -> Path:
    """--tokenizer, or the folder that the server on this host names in /model_info."""
    if options.tokenizer is not None:
        return env.cwd / options.tokenizer
    reply = client.get("/model_info")
    info = mapping(parse_json(reply.body, "/model_info")) if reply.status == 200 else {}  # noqa: PLR2004
    named = text(info.get("tokenizer_path")) or text(info.get("model_path"))
    folder = env.cwd / named if named else None
    if folder is None or not os.path.isdir(folder):
        raise UsageProblem(
            "the model's chat template is not on this host", hint="--tokenizer FOLDER, or --api chat"
        )
    return folder


def limited(prompt: BenchPrompt, gathered: Gathered) -> BenchPrompt:
    """The prompt with its output limit filled in."""
    return replace(prompt, max_tokens=prompt.max_tokens or gathered.max_tokens)
