"""Made-up accept lengths are refused wherever a benchmark can know of them, before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflashctl.commands.bench import bench
from dflashctl.commands.down import down
from dflashctl.commands.up import up
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.errors import CheckFailed, ExitCode
from dflashctl.core.options import PlanRequest
from dflashctl.env import Env
from tests.supervise.harness import free_port

ROOT = str(Path(__file__).parents[2])  # the detached supervisor is to be of this checkout, too
VARIABLE = "SGLANG_SIMULATE_ACC_LEN"


def env_in(folder, **environ):
    return Env(cwd=folder, environ={"HOME": str(folder), "PYTHONPATH": ROOT, **environ})


def profile_with(folder, name, lines):
    shipped = env_in(folder).profiles.find("tiny-cpu").path.read_text()
    (folder / f"{name}.yaml").write_text(shipped.replace("name: tiny-cpu", f"name: {name}") + lines)
    return f"./{name}.yaml"


def refuses(env, options, words):
    with pytest.raises(CheckFailed, match=words) as caught:
        bench(env, options)
    assert caught.value.exit_code is ExitCode.CHECK_FAILED
    assert VARIABLE in caught.value.hint
    assert not (env.cwd / "x.json").exists()


@pytest.mark.parametrize("sweep", [(), ("block_size=8,16",)])
def test_a_profile_that_sets_it_is_not_started(tmp_path, sweep):
    name = profile_with(tmp_path, "made-up", f"environment: {{{VARIABLE}: '3'}}\n")
    options = BenchOptions(profile=name, sweep=sweep, output="x.json")
    refuses(env_in(tmp_path), options, f"plan of 'made-up' sets {VARIABLE}=3")


def test_one_server_of_a_sweep_that_sets_it_is_enough(tmp_path):
    options = BenchOptions(profile="tiny-cpu", sweep=(f"environment.{VARIABLE}=0,3",), output="x.json")
    refuses(env_in(tmp_path), options, f"sets {VARIABLE}=3")


@pytest.mark.parametrize(
    ("sets", "environ"),
    [((f"environment.{VARIABLE}=3",), {}), ((), {VARIABLE: "3"})],
    ids=["by its plan", "by the shell of its start"],
)
def test_an_instance_that_was_started_with_it(tmp_path, sets, environ):
    """The benchmark runs in another shell, which does not have it."""
    request = PlanRequest(profile="tiny-cpu", name="fake", sets=(*sets, f"server.port={free_port()}"))
    assert up(env_in(tmp_path, **environ), request, detach=True).exit_code is ExitCode.OK
    try:
        for options in (BenchOptions(name="fake"), BenchOptions(name="fake", sweep=("concurrency=1,2",))):
            refuses(env_in(tmp_path), options, f"'fake' was started with {VARIABLE}=3")
    finally:
        down(env_in(tmp_path), "fake")


@pytest.mark.parametrize(("value", "refused"), [("3", True), ("0", False), ("-1", False)])
def test_the_shell_of_the_benchmark(tmp_path, value, refused):
    """What it simulates nothing by is no reason; the next obstacle is then that nothing answers."""
    options = BenchOptions(url="http://127.0.0.1:1", output="x.json")
    with pytest.raises(
        Exception, match="made up" if refused else "no server answers|cannot be reached|no answer"
    ):
        bench(env_in(tmp_path, **{VARIABLE: value}), options)
