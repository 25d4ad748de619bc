"""The prompts of one workload, cut to what is measured and what warms up, and the requests made of them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.bench import CHAT, GENERATE, BenchRequest
from dflashctl.core.errors import CheckFailed, UsageProblem
from dflashctl.core.progress import Progress
from dflashctl.core.replies import mapping, parse_chat, parse_json, text
from dflashctl.core.workload import WorkloadOptions, prompts_hash
from dflashctl.proofs.client import answered
from dflashctl.workloads import workload
from dflashctl.workloads.prompts_file import read_prompts
from dflashctl.workloads.random_words import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.bench_options import BenchOptions
    from dflashctl.core.bench_setting import Setting
    from dflashctl.core.workload import BenchPrompt, Record, Workload
    from dflashctl.env import Env
    from dflashctl.ports.chat_template import ChatTemplate
    from dflashctl.proofs.client import Client

# Published sets are cut to this many prompts unless --num-prompts says otherwise (0 takes all).
DEFAULT_COUNT = 128
_WARM_UP_TOKENS = 64
_SHORT, _LONG = 400, 4400


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """`warm_up` prompts are none of the measured ones where the set is large enough.

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
    env: Env, options: BenchOptions, name: str, client: Client, warm_up: int, max_tokens: int | None
) -> Gathered:
    """The prompts of workload `name`, or of the file that was given under that name."""
    if options.prompts is not None:
        return _from_file(env, options, name, warm_up, max_tokens)
    chosen = workload(name)
    records = _records(env, chosen, offline=options.offline)
    count = _count(options, chosen)
    limit = max_tokens or chosen.MAX_TOKENS
    size = _characters_per_token(client, chosen, records) if chosen.NEEDS_TOKEN_SIZE else None
    asked = WorkloadOptions(
        count=None if count is None else count + warm_up,
        seed=options.seed,
        input_tokens=options.input_tokens,
        prefix_tokens=options.prefix_tokens,
        groups=options.groups,
        context_tokens=client.facts.max_model_len,
        output_tokens=limit,
        characters_per_token=size or 3.5,
        nonce=secrets.token_hex(8),
    )
    gathered = _split(name, chosen.prompts(records, asked), count, warm_up, limit, size)
    if not chosen.NEEDS_TOKEN_SIZE:
        return gathered
    lasting = chosen.prompts(records, replace(asked, nonce=""))[: len(gathered.prompts)]
    return replace(gathered, hash=prompts_hash(lasting), cold=lasting != gathered.prompts)


def _split(
    name: str,
    prompts: tuple[BenchPrompt, ...],
    count: int | None,
    warm_up: int,
    limit: int,
    characters_per_token: float | None = None,
) -> Gathered:
    measured = prompts[:count]
    if not measured:
        raise UsageProblem(f"workload {name!r} has no prompt that fits this server")
    spare = prompts[len(measured) :] or measured
    return Gathered(
        name=name,
        prompts=measured,
        warm_up=spare[:warm_up],
        max_tokens=limit,
        hash=prompts_hash(measured),
        characters_per_token=characters_per_token,
    )


def _from_file(env: Env, options: BenchOptions, name: str, warm_up: int, max_tokens: int | None) -> Gathered:
    path = Path(options.prompts or "")
    try:
        source = (env.cwd / path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"the prompts file {str(path)!r} cannot be read: {error}") from error
    prompts = read_prompts(source, str(path))
    return _split(name, prompts, options.count or None, warm_up, max_tokens or 1024)


def _records(env: Env, chosen: Workload, *, offline: bool) -> tuple[Record, ...]:
    if chosen.SOURCE is None:
        return ()
    env.notify(Progress(step="dataset", text=f"reading {chosen.SOURCE.label}"))
    return env.datasets.records(chosen.SOURCE, offline=offline)


def _count(options: BenchOptions, chosen: Workload) -> int | None:
    if options.count is not None:
        return options.count or chosen.DEFAULT_COUNT
    return chosen.DEFAULT_COUNT or DEFAULT_COUNT


def _characters_per_token(client: Client, chosen: Workload, records: tuple[Record, ...]) -> float:
    """How many characters of this workload's own kind of text make a token, as the server counts them."""
    names = ("context", "prompt")
    own = next(
        (str(records[0][name]) for name in names if records and isinstance(records[0].get(name), str)), ""
    )
    sample = own if len(own) >= _LONG else sentences("size", _LONG)
    short, long = (_prompt_tokens(client, sample[:size]) for size in (_SHORT, _LONG))
    if long <= short:
        raise CheckFailed(
            f"{chosen.NAME}: the server counts {short} and {long} tokens for a short and a long prompt"
        )
    return (_LONG - _SHORT) / (long - short)


def _prompt_tokens(client: Client, content: str) -> int:
    reply = parse_chat(answered(client.chat_reply(content, max_tokens=1), "the sample prompt"))
    if reply.prompt_tokens is None:
        raise CheckFailed("the server gives no usage, so lengths cannot be measured")
    return reply.prompt_tokens


def requests_of(
    prompts: Sequence[tuple[str, Sequence[tuple[str, str]], int]],
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
                "text": template.render(conversation, switch),
                "sampling_params": params,
            }
        else:
            messages = [{"role": role, "content": content} for role, content in conversation]
            body = {"model": client.facts.model, "messages": messages, "max_tokens": limit, **sampling}
            if switch:
                body["chat_template_kwargs"] = switch
        if setting.speculation is False and client.facts.per_request_speculation:
            body["speculation"] = False
        made.append(BenchRequest(id=name, body=body, api=CHAT if template is None else GENERATE))
    return tuple(made)


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
    asked = [(f"warm-up/{p.id}", p.messages, limit) for p in gathered.warm_up]
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
    if folder is None or not folder.is_dir():
        raise UsageProblem(
            "the model's chat template is not on this host", hint="--tokenizer FOLDER, or --api chat"
        )
    return folder


def limited(prompt: BenchPrompt, gathered: Gathered) -> BenchPrompt:
    """The prompt with its output limit filled in."""
    return replace(prompt, max_tokens=prompt.max_tokens or gathered.max_tokens)
