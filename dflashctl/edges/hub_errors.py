"""Failures of the Hub as ours: what happened, to whom, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dflashctl.core.errors import DflashError, Permanent, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.weights import Access


def hub_error(event: Mapping[str, Any], repo: str, revision: str | None, access: Access) -> DflashError:
    """The error for an "error" or "failed" event about `repo`."""
    kind, detail = event["kind"], event["message"]
    at = f" at {revision}" if revision else ""
    if kind in {"gated", "forbidden", "unauthorized"}:
        return Permanent(_refused(kind, repo, access), hint=_how_to_get_in(kind, repo, access), detail=detail)
    permanent = {
        "no_repo": (f"there is no model {repo!r} at {access.endpoint}", "check target.repo and draft.repo"),
        "no_revision": (f"{repo!r} has no commit{at}", "check the revision in the profile"),
        "no_file": (f"{repo!r} lacks a file{at}", "check the revision in the profile"),
        "no_room": (f"the disk filled up while fetching {repo!r}", "free some space, then run it again"),
        "read_only": ("the cache cannot be written", "set HF_HUB_CACHE to a folder that can be written"),
        "not_a_hub": (
            f"{access.endpoint} does not answer like a Hub",
            "check HF_ENDPOINT and the proxy settings",
        ),
    }
    if kind in permanent:
        message, hint = permanent[kind]
        return Permanent(message, hint=hint, detail=detail)
    unavailable = {
        "offline": (
            f"the Hub is switched off (offline), and {repo!r} is not here",
            "run it once without --offline",
        ),
        "status": (f"{access.endpoint} answers {event['status']} for {repo!r}", "try again later"),
        "bad_answer": (
            f"{access.endpoint} gives no proper answer for {repo!r}",
            "check HF_ENDPOINT and the proxy settings",
        ),
    }
    message, hint = unavailable.get(
        kind,
        (f"{access.endpoint} cannot be reached for {repo!r}", "check the network and the proxy settings"),
    )
    return Unavailable(message, hint=hint, detail=detail)


def _refused(kind: str, repo: str, access: Access) -> str:
    if kind == "unauthorized" and not access.sends_token:
        return f"{repo!r} needs a token, or does not exist"
    if kind == "unauthorized":
        return f"the token from {access.token} is not accepted for {repo!r}, or the model does not exist"
    if kind == "forbidden":
        return (
            f"the token from {access.token} may not read {repo!r}"
            if access.sends_token
            else f"{repo!r} may not be read"
        )
    who = f"the account of the token from {access.token}" if access.sends_token else "an anonymous user"
    return f"{repo!r} is gated and {who} has no access"


def _how_to_get_in(kind: str, repo: str, access: Access) -> str:
    if access.token is not None and not access.sends_token:
        host = access.endpoint.split("://", 1)[-1].split("/", 1)[0]
        return f"the token from {access.token} was not sent to {access.endpoint}; allow it with --send-token-to {host}"
    if access.token is None:
        return f"set HF_TOKEN, or run: hf auth login (and accept the licence at {access.endpoint}/{repo})"
    if kind == "gated":
        return f"accept the licence at {access.endpoint}/{repo} with that account"
    return "check that token: hf auth whoami"
