"""The endpoints that tell about the server: models, arguments, load and metrics."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dflashctl import __version__
from dflashctl.reference.meta_info import WEIGHT_VERSION
from dflashctl.reference.metrics import exposition

if TYPE_CHECKING:
    from dflashctl.reference.arguments import Settings
    from dflashctl.reference.engine import Engine

VERSION = f"reference-{__version__}"


class Info:
    """Builds the bodies of the information endpoints."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self._settings, self._engine = settings, engine
        self._created = int(time.time())

    def model_info(self) -> dict[str, Any]:
        """Return the body of /model_info."""
        config = self._engine.models.config
        return {
            "model_path": self._settings.model_path,
            "tokenizer_path": self._settings.tokenizer_path,
            "is_generation": True,
            "preferred_sampling_params": None,
            "weight_version": WEIGHT_VERSION,
            "has_image_understanding": False,
            "has_audio_understanding": False,
            "model_type": config.get("model_type"),
            "architectures": config.get("architectures"),
        }

    def models(self) -> dict[str, Any]:
        """Return the body of /v1/models."""
        name = self._settings.served_model_name
        model = {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "dflashctl",
            "root": name,
            "parent": None,
            "max_model_len": self._engine.models.context_length,
        }
        return {"object": "list", "data": [model]}

    def server_info(self) -> dict[str, Any]:
        """Return the body of /server_info: the resolved arguments, never a key, and the live state."""
        return {
            **self._resolved(),
            "per_request_speculation": self._engine.models.block_size is not None,
            "internal_states": [self._state()],
            "version": VERSION,
        }

    def loads(self) -> dict[str, Any]:
        """Return the body of /v1/loads."""
        figures, capacity = self._engine.statistics, self._engine.models.capacity_tokens
        load = {
            "timestamp": time.time(),
            "dp_rank": 0,
            "num_running_reqs": figures.running,
            "num_waiting_reqs": figures.queued,
            "num_used_tokens": figures.tokens_in_use,
            "max_total_num_tokens": capacity,
            "max_running_requests": self._settings.max_running_requests,
            "token_usage": figures.token_usage,
            "gen_throughput": figures.gen_throughput,
            "cache_hit_rate": 0.0,
            "utilization": figures.running / self._settings.max_running_requests,
        }
        now = datetime.now(timezone.utc).isoformat()
        return {"timestamp": now, "version": VERSION, "accelerator": "CPU", "loads": [load]}

    def metrics(self) -> str:
        """Return the page of /metrics."""
        return exposition(self._engine.statistics.families())

    def _resolved(self) -> dict[str, Any]:
        block = self._engine.models.block_size
        return {
            **self._settings.shown(),
            "speculative_dflash_block_size": block,
            "speculative_num_draft_tokens": block,
            "speculative_draft_attention_backend": None if block is None else "numpy",
            "attention_backend": "numpy",
            "device": "cpu",
            "dtype": "float32",
            "tp_size": 1,
            "api_key": None,
            "admin_api_key": None,
        }

    def _state(self) -> dict[str, Any]:
        figures, capacity = self._engine.statistics, self._engine.models.capacity_tokens
        state: dict[str, Any] = {
            **self._resolved(),
            "last_gen_throughput": figures.gen_throughput,
            "memory_usage": {"token_capacity": capacity},
            "effective_max_running_requests_per_dp": self._settings.max_running_requests,
        }
        if figures.avg_spec_accept_length is not None:
            state["avg_spec_accept_length"] = figures.avg_spec_accept_length
        return state
