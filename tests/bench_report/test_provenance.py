"""Where figures come from: the server's resolved flags without its secrets, and who else was on the GPUs."""

from __future__ import annotations

import json

import pytest

from dflashctl.commands.bench_provenance import provenance
from dflashctl.commands.live_server import LiveServer
from dflashctl.core.machine import Gpu, GpuProcess, Machine
from dflashctl.edges.clock import SystemClock
from dflashctl.edges.web import HttpWeb
from dflashctl.env import Env
from dflashctl.proofs.runner import ProofSettings, connect
from tests.fakes.fake_instances import FakeInstances
from tests.fakes.fake_machine import FakeMachine
from tests.smoke.scripted_server import serving


def provenance_of(*, name=None, pids=(), processes=(), **info):
    """Of a scripted server that says `info`, on a GPU with those processes."""
    held = tuple(GpuProcess(pid=pid, name=word) for pid, word in processes)
    gpu = Gpu(index=0, uuid="GPU-0", name="NVIDIA B300", memory_total_bytes=1, processes=held)
    env = Env(
        machine=FakeMachine(Machine(gpus=(gpu,))),
        instances=FakeInstances("mine", phase="ready", port=1, pids=pids),
    )
    with serving(**info) as server:
        client = connect(HttpWeb(), SystemClock(), server.url, ProofSettings())
        return provenance(env, LiveServer(url=server.url, name=name), client, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("bfloat16", "bfloat16"),
        (False, "False"),
        (0.85, "0.85"),
        ([1, 2, 4], "[1,2,4]"),
        ([], "[]"),
        ({"decode": {"bs": [1, 2], "backend": "full"}}, '{"decode":{"bs":[1,2],"backend":"full"}}'),
        ({"store": {"api_key": "xyzzy", "url": "u"}}, '{"store":{"url":"u"}}'),
        ([{"HF_TOKEN": "xyzzy"}, {"rank": 1}], '[{},{"rank":1}]'),
        (["Bearer xyzzyxyzzyxyzzy"], '["Bearer <redacted>"]'),
        (None, None),
    ],
)
def test_a_flag_of_any_shape_is_kept_without_secrets(value, text):
    flags = dict(provenance_of(some_flag=value).flags)
    assert flags.get("some_flag") == text
    assert "xyzzy" not in json.dumps(flags)


@pytest.mark.parametrize("name", ["api_key", "admin_api_key", "ssl_keyfile", "internal_states", "kv_events"])
@pytest.mark.parametrize("value", ["xyzzy", ["xyzzy"], {"a": "xyzzy"}])
def test_secrets_and_live_state_are_left_out_whatever_their_shape(name, value):
    assert name not in dict(provenance_of(**{name: value}).flags)


OURS, THEIRS = (5, "sglang"), (7, "python")


@pytest.mark.parametrize(
    ("name", "pids", "processes", "others"),
    [
        ("mine", (4, 5), (OURS,), ()),
        ("mine", (4, 5), (OURS, THEIRS), ("7 python",)),
        ("mine", (4, 5), (), ()),
        ("mine", (4, 5), (THEIRS,), None),  # pids of another namespace, or a server without a GPU
        ("mine", (), (OURS, THEIRS), None),  # a container
        (None, (), (OURS, THEIRS), None),  # a server that is not ours
    ],
)
def test_who_else_is_on_a_gpu_is_told_where_the_server_s_own_are_known(name, pids, processes, others):
    (gpu,) = provenance_of(name=name, pids=pids, processes=processes).gpus
    assert gpu.others == others
    assert gpu.processes == tuple(f"{pid} {word}" for pid, word in processes)
