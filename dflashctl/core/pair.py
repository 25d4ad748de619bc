"""The pair: whether a draft was made for a target, from their configs alone, before any weight is fetched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.model_config import ModelConfig
    from dflashctl.core.profile import Profile

_LONGER_CONTEXT = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
PAIR_CONTEXT = "pair.context"
_WRONG_DRAFT = "use the draft that was trained for this target"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The two configs with the names that people know the models by."""

    target: ModelConfig
    draft: ModelConfig
    target_name: str
    draft_name: str
    profile: Profile


def pair_findings(pair: Pair) -> tuple[Finding, ...]:
    """Every reason against this pair (errors), and what is merely unusual (notes, warnings).

    Misfits that the engine takes without a word and then answers badly with are errors here.
    """
    return tuple(
        finding
        for rule in (
            _hidden_size,
            _vocabulary,
            _layers,
            _layer_ids,
            _mask_token,
            _block_size,
            _window,
            _context,
            _code,
        )
        for finding in rule(pair)
    )


def fc_finding(pair: Pair, fc_shape: tuple[int, ...] | None) -> tuple[Finding, ...]:
    """The draft's `fc` takes the hidden states of all target layers side by side: [hidden, layers x hidden]."""
    ids = pair.draft.facts.target_layer_ids
    width = pair.draft.target_hidden_size or pair.target.facts.hidden_size
    if fc_shape is None or ids is None or width is None or fc_shape[-1] == len(ids) * width:
        return ()
    summary = f"the draft's fc takes {fc_shape[-1]} inputs, but {len(ids)} target layers of {width} give {len(ids) * width}"
    return (_error("pair.fc", summary, f"fc.weight {list(fc_shape)} in the weights of {pair.draft_name}"),)


def _hidden_size(pair: Pair) -> Iterator[Finding]:
    target = pair.target.facts.hidden_size
    stated = pair.draft.target_hidden_size
    draft = stated if stated is not None else pair.draft.facts.hidden_size
    key = "target_hidden_size" if stated is not None else "hidden_size"
    if None not in {target, draft} and target != draft:
        yield _mismatch(
            pair, "pair.hidden_size", "the hidden sizes differ", (key, draft), ("hidden_size", target)
        )


def _vocabulary(pair: Pair) -> Iterator[Finding]:
    target, draft = pair.target.facts.vocab_size, pair.draft.facts.vocab_size
    if None not in {target, draft} and target != draft:
        yield _mismatch(
            pair, "pair.vocab_size", "the vocabularies differ", ("vocab_size", draft), ("vocab_size", target)
        )
    reduced = pair.draft.draft_vocab_size
    if reduced is not None and target is not None and reduced < target:
        yield _mismatch(
            pair,
            "pair.draft_vocab_size",
            "the draft proposes from a reduced vocabulary, which DFlash serving does not map back",
            ("draft_vocab_size", reduced),
            ("vocab_size", target),
        )


def _layers(pair: Pair) -> Iterator[Finding]:
    target, wanted = pair.target.facts.num_hidden_layers, pair.draft.facts.num_target_layers
    if None not in {target, wanted} and target != wanted:
        yield _mismatch(
            pair,
            "pair.num_target_layers",
            "the draft was trained for a target of another depth",
            ("num_target_layers", wanted),
            ("num_hidden_layers", target),
        )


def _layer_ids(pair: Pair) -> Iterator[Finding]:
    ids, layers = pair.draft.facts.target_layer_ids, pair.target.facts.num_hidden_layers
    if ids is None or layers is None:
        return
    outside = [i for i in ids if not 0 <= i < layers]
    if outside:
        yield _mismatch(
            pair,
            "pair.target_layer_ids",
            f"the draft reads target layers that do not exist: {', '.join(map(str, outside))}",
            ("target_layer_ids", list(ids)),
            ("num_hidden_layers", layers),
        )
    if len(set(ids)) != len(ids):
        yield _error(
            "pair.target_layer_ids",
            "target_layer_ids names a layer twice",
            f"{list(ids)} in {pair.draft_name}",
        )


def _mask_token(pair: Pair) -> Iterator[Finding]:
    mask, vocabulary = pair.draft.facts.mask_token_id, pair.target.facts.vocab_size
    where = f"mask_token_id in config.json of {pair.draft_name}"
    if mask is None:
        yield _error("pair.mask_token_id", "the draft has no mask_token_id", where)
        return
    if mask < 0 or (vocabulary is not None and mask >= vocabulary):
        yield _mismatch(
            pair,
            "pair.mask_token_id",
            "the mask token is outside the vocabulary",
            ("mask_token_id", mask),
            ("vocab_size", vocabulary),
        )
    owners = ((pair.draft_name, pair.draft), (pair.target_name, pair.target))
    same = [(name, owner) for owner, config in owners for name, token in config.special_ids if token == mask]
    if same:
        names = " and ".join(sorted({name for name, _ in same}))
        places = "; ".join(f"{name} in config.json of {owner}" for name, owner in same)
        yield _error("pair.mask_token_id", f"the mask token {mask} is also {names}", f"{where}; {places}")


def _block_size(pair: Pair) -> Iterator[Finding]:
    trained, wanted = pair.draft.facts.block_size, pair.profile.speculative.block_size
    if trained is None or wanted is None or wanted <= trained:
        return  # a shorter block works; the engine's rules say what either means
    where = f"speculative.block_size {wanted} in the profile, block_size {trained} in config.json of {pair.draft_name}"
    yield Finding(
        id="pair.block_size",
        severity=Severity.WARNING,
        summary=f"block size {wanted} is larger than the {trained} that the draft was trained with",
        detail=where,
        fix=f"use --block-size {trained} or smaller",
    )


def _window(pair: Pair) -> Iterator[Finding]:
    speculative, trained = pair.profile.speculative, pair.draft.facts.sliding_window
    window, block = speculative.draft_window_size, speculative.block_size or pair.draft.facts.block_size
    if window is not None and block is not None and window < block:
        yield Finding(
            id="pair.draft_window_size",
            severity=Severity.ERROR,
            summary=f"the draft window of {window} tokens is smaller than the block of {block}",
            detail="speculative.draft_window_size in the profile",
            fix=f"use --window-size {block} or larger",
        )
    if window is not None and trained is not None and window > trained:
        yield Finding(
            id="pair.draft_window_size",
            severity=Severity.WARNING,
            summary=f"the draft window of {window} tokens is larger than the {trained} that the draft was trained with",
            detail=f"sliding_window in config.json of {pair.draft_name}",
            fix=f"use --window-size {trained}",
        )


def _context(pair: Pair) -> Iterator[Finding]:
    """The draft is loaded with the length of the target, which a config that derives less refuses.

    sglang 0.5.23: srt/speculative/draft_worker_common.py, srt/configs/model_config.py:1291. By then the target's
    weights are loaded.
    """
    own = pair.draft.facts.context_tokens
    asked = pair.profile.memory.context_length
    wanted = asked or pair.target.facts.context_tokens
    if own is None or wanted is None or wanted <= own:
        return
    allowed = pair.profile.environment.get(_LONGER_CONTEXT, "").lower() in {"1", "true", "yes", "y"}
    source = "memory.context_length in the profile" if asked else f"config.json of {pair.target_name}"
    yield Finding(
        id=PAIR_CONTEXT,
        severity=Severity.WARNING if allowed else Severity.ERROR,
        summary=f"a context of {wanted} tokens is longer than the draft's own {own}",
        detail=f"{source}; {own} after rope scaling in config.json of {pair.draft_name}",
        fix=f"use --set memory.context_length={own}, or --set environment.{_LONGER_CONTEXT}=1 and accept "
        "shorter accept lengths beyond it",
    )


def _code(pair: Pair) -> Iterator[Finding]:
    target_ref, draft_ref = pair.profile.target, pair.profile.draft
    trusted = target_ref.trust_remote_code or (draft_ref is not None and draft_ref.trust_remote_code)
    for name, config in ((pair.target_name, pair.target), (pair.draft_name, pair.draft)):
        if config.code and not trusted:
            yield Finding(
                id="pair.remote_code",
                severity=Severity.WARNING,
                summary=f"{name} brings its own code, and trust_remote_code is off",
                detail=f"auto_map in its config.json: {', '.join(config.code)}",
                fix="set trust_remote_code: true with a pinned commit if the engine has no class of its own for it",
            )


def _mismatch(
    pair: Pair, id_: str, summary: str, draft: tuple[str, object], target: tuple[str, object]
) -> Finding:
    detail = (
        f"{draft[0]} {draft[1]} in config.json of {pair.draft_name}, "
        f"{target[0]} {target[1]} in config.json of {pair.target_name}"
    )
    return _error(id_, summary, detail)


def _error(id_: str, summary: str, detail: str) -> Finding:
    return Finding(id=id_, severity=Severity.ERROR, summary=summary, detail=detail, fix=_WRONG_DRAFT)
