"""HubDataSets: data set files through huggingface_hub at a pinned commit, read without the `datasets` package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.errors import Permanent, Unavailable
from dflashctl.core.json_text import json_loads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.workload import DataSource, Record

_OFFLINE_WORDS = {"1", "on", "yes", "true"}


class HubDataSets:
    """Endpoint, cache folder and offline mode are those of huggingface_hub's own environment variables."""

    def __init__(self, *, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def records(self, source: DataSource, *, offline: bool = False) -> tuple[Record, ...]:
        path = self._file(source, offline=offline or self._is_offline())
        found = _read(path, source)
        if len(found) != source.rows:
            raise Permanent(
                f"{source.label} has {len(found)} records, not {source.rows}: it is not the pinned file",
                hint=f"remove it from the hub cache and try again: {path}",
            )
        return found

    def _is_offline(self) -> bool:
        return self._environ.get("HF_HUB_OFFLINE", "").lower() in _OFFLINE_WORDS

    def _file(self, source: DataSource, *, offline: bool) -> Path:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
        from huggingface_hub.utils.tqdm import disable_progress_bars

        disable_progress_bars()
        try:
            return Path(
                hf_hub_download(
                    source.repo,
                    source.path,
                    repo_type="dataset",
                    revision=source.revision,
                    cache_dir=self._cache(),
                    endpoint=self._environ.get("HF_ENDPOINT") or None,
                    local_files_only=offline,
                )
            )
        except LocalEntryNotFoundError as error:
            reason = "and we are offline" if offline else "and the hub does not answer"
            raise Unavailable(
                f"{source.label} is not in the hub cache {reason}",
                hint=f"hf download {source.repo} {source.path} --repo-type dataset --revision {source.revision}",
            ) from error
        except HfHubHTTPError as error:
            status = error.response.status_code
            raise Unavailable(f"the hub refuses {source.label}: {status}", detail=str(error)) from error
        except OSError as error:
            raise Unavailable(f"{source.label} cannot be fetched: {error}") from error

    def _cache(self) -> str | None:
        home = self._environ.get("HF_HOME")
        return self._environ.get("HF_HUB_CACHE") or (str(Path(home) / "hub") if home else None)


def _read(path: Path, source: DataSource) -> tuple[Record, ...]:
    """JSON lines, a JSON list, or Parquet, by the file's ending."""
    if source.path.endswith(".parquet"):
        return _read_parquet(path)
    text = path.read_text(encoding="utf-8-sig")
    try:
        if source.path.endswith(".jsonl"):
            return tuple(json_loads(line) for line in text.split("\n") if line.strip())
        return tuple(json_loads(text))
    except ValueError as error:
        raise Permanent(
            f"{source.label} is not JSON: {error}", hint=f"remove {path} and try again"
        ) from error


def _read_parquet(path: Path) -> tuple[Record, ...]:
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import read_table
    except ImportError as error:
        raise Permanent(
            "this data set is a Parquet file, and pyarrow is not installed",
            hint="pip install 'dflashctl[datasets]'",
        ) from error
    try:
        return tuple(read_table(path).to_pylist())
    except ArrowInvalid as error:
        raise Permanent(
            f"{path} is not a Parquet file: {error}", hint=f"remove {path} and try again"
        ) from error
