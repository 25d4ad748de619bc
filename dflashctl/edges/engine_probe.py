"""InstalledEngines: which SGLang an interpreter or an image has, asked in child processes, changed builds cached."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.errors import EngineError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.engine import EngineBuild, FoundEngine
    from dflashctl.ports.engines import BuildKnowledge

_IDENTIFY_S = 30.0
_INTROSPECT_S = 180.0
_IMAGE_S = 300.0


class InstalledEngines:
    """`environ` is what the children see; the answers of changed builds lie in the user's cache folder."""

    def __init__(self, *, environ: Mapping[str, str], knowledge: BuildKnowledge) -> None:
        self._environ = dict(environ)
        self._knowledge = knowledge

    def find(self, *, python: str) -> EngineBuild | None:
        """The SGLang of interpreter `python`; None when it has none; EngineError when it cannot be run."""
        answer = self._ask(python, self._knowledge.IDENTIFY, timeout_s=_IDENTIFY_S)
        try:
            found = self._knowledge.found(answer, python)
        except ValueError as error:
            raise EngineError(
                f"{python!r} did not say which engine it has", detail=answer[-500:], hint="--python PATH"
            ) from error
        if found is None:
            return None
        return found.build if found.build.known else self._asked_for_options(found, python)

    def find_in_image(self, *, image: str) -> EngineBuild | None:
        """The engine inside a Docker image, by its digest; None when it has none; Unavailable without Docker."""
        digest = self._docker("image", "inspect", "--format", "{{.Id}}", image).strip()
        key = "image-" + digest.rpartition(":")[2][:32]
        answer = self._kept(f"{key}-id") or self._in_image(image, self._knowledge.IDENTIFY, f"{key}-id")
        found = self._knowledge.found(answer, None)
        if found is None:
            return None
        if found.build.known:
            return found.build
        dump = self._kept(key) or self._in_image(image, self._knowledge.INTROSPECT, key)
        return self._knowledge.with_options(found.build, dump)

    def _asked_for_options(self, found: FoundEngine, python: str) -> EngineBuild:
        """A changed build with its own options; without them when it cannot be asked."""
        kept = self._kept(found.cache_key)
        if kept is not None:
            return self._knowledge.with_options(found.build, kept)
        try:
            dump = self._ask(python, self._knowledge.INTROSPECT, timeout_s=_INTROSPECT_S)
            dump = self._knowledge.with_sources(dump, Path(found.root) if found.root else None)
        except (EngineError, ValueError, IndexError):
            return found.build
        self._keep(found.cache_key, dump)
        return self._knowledge.with_options(found.build, dump)

    def _ask(self, python: str, script: Path, *, timeout_s: float) -> str:
        """Standard output of one of the stand-alone scripts under that interpreter."""
        hint = "name the interpreter that has SGLang: --python PATH"
        try:
            run = subprocess.run(
                [python, str(script)],
                env=self._environ,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, ValueError) as error:
            raise EngineError(f"interpreter {python!r} cannot be run: {error}", hint=hint) from error
        except subprocess.TimeoutExpired as error:
            raise EngineError(
                f"interpreter {python!r} did not answer within {timeout_s:.0f} s", hint=hint
            ) from error
        if run.returncode != 0:
            raise EngineError(
                f"interpreter {python!r} failed on {script.name} (exit {run.returncode})",
                detail=run.stderr[-1000:],
                hint=hint,
            )
        return run.stdout

    def _in_image(self, image: str, script: Path, key: str) -> str:
        text = script.read_text(encoding="utf-8")
        answer = self._docker(
            "run", "--rm", "-i", "--network=none", "--entrypoint", "python3", image, "-", stdin=text
        )
        self._keep(key, answer)
        return answer

    def _docker(self, *arguments: str, stdin: str | None = None) -> str:
        try:
            run = subprocess.run(
                ["docker", *arguments],
                env=self._environ,
                input=stdin or "",
                capture_output=True,
                text=True,
                timeout=_IMAGE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"docker cannot be run: {error}", hint="start the Docker engine") from error
        if run.returncode != 0:
            raise Unavailable(
                f"docker {arguments[0]} failed: {run.stderr.strip()[-300:]}", hint="docker pull the image"
            )
        return run.stdout

    def _folder(self) -> Path:
        home = self._environ.get("XDG_CACHE_HOME") or os.path.join(
            self._environ.get("HOME") or os.path.expanduser("~"), ".cache"
        )
        return Path(home) / "dflashctl" / "engines"

    def _kept(self, key: str) -> str | None:
        try:
            return (self._folder() / f"{key}.json").read_text(encoding="utf-8")
        except OSError:
            return None

    def _keep(self, key: str, answer: str) -> None:
        """Best effort: without a cache the next plan asks again."""
        path = self._folder() / f"{key}.json"
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary.write_text(answer, encoding="utf-8")
            temporary.replace(path)
        except OSError:
            return
