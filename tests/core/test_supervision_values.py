from dataclasses import dataclass, replace

import pytest

from dflashctl.core.child_env import child_environment
from dflashctl.core.decode import DecodeError, decode
from dflashctl.core.engine import Argument, Translation
from dflashctl.core.errors import StateError, UsageProblem
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.instance import Identity, InstanceRecord, LastExit, Phase, Served, check_name
from dflashctl.core.metrics_text import live_figures
from dflashctl.core.outer import outer_supervisor, restart_budget
from dflashctl.core.plan_file import dump_plan, load_plan
from dflashctl.core.report import to_json
from dflashctl.core.start_phase import StartPhase
from dflashctl.core.verdict import EndFacts, exit_status_of, judge
from tests.supervise.harness import Harness


def test_a_plan_survives_its_file(tmp_path):
    plan = replace(
        Harness(tmp_path).plan(),
        env=(("A", "b"),),
        gpus=("GPU-1",),
        translations=(Translation(from_="--a", to="", reason="gone"),),
        arguments=(Argument(flag="--tp-size", values=("8",), origin="parallel.tensor"),),
        findings=(Finding(id="x", severity=Severity.WARNING, summary="s"),),
    )
    assert load_plan(dump_plan(plan)) == plan


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"profile": 3}', "not json"])
def test_a_broken_plan_file_is_a_state_error(text):
    with pytest.raises(StateError):
        load_plan(text)


def test_a_record_survives_its_json():
    me = Identity(boot_id="b", pid_namespace=1, pid=2, start_ticks=3, session=4)
    record = InstanceRecord(
        name="x",
        phase=Phase.LOADING,
        phase_since_s=1,
        supervisor=me,
        sessions=(me,),
        step=StartPhase.CAPTURE,
        facts=(("a", "b"),),
        last_exit=LastExit(signal=9, evidence=("l",)),
    )
    assert decode(InstanceRecord, to_json(record)) == record


@dataclass(frozen=True, kw_only=True)
class Pair:
    left: int
    right: tuple[str, int] = ("a", 1)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"left": "x"}, "$.left"),
        ({"left": True}, "$.left"),
        ({"left": 1, "right": ["a"]}, "$.right"),
        ({"left": 1, "right": ["a", "b"]}, "$.right[1]"),
        ({}, "left missing"),
        ([], "not an object"),
    ],
)
def test_what_does_not_fit_is_named_by_its_place(value, place):
    with pytest.raises(DecodeError) as caught:
        decode(Pair, value)
    assert place in str(caught.value)


@pytest.mark.parametrize("name", ["tiny-cpu", "a", "kimi-k2.5-b200", "x" * 63])
def test_names_that_are_allowed(name):
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "..", "a..b", "../a", "a/b", "A", "-a", ".a", "x" * 64, "a b", "a\n", "é"]
)
def test_names_that_are_not(name):
    with pytest.raises(UsageProblem):
        check_name(name)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:1"),
        ("0.0.0.0", "http://127.0.0.1:1"),
        ("::", "http://[::1]:1"),
        ("fe80::1", "http://[fe80::1]:1"),
    ],
)
def test_where_a_server_is_reached(host, url):
    served = Served(
        profile="p",
        engine="e",
        engine_version="1",
        runtime="process",
        host=host,
        port=1,
        served_model_name="m",
        fingerprint="f",
    )
    assert served.url == url


def test_the_server_sees_only_what_it_may():
    ours = {
        "PATH": "/bin",
        "HF_TOKEN": "t",
        "DFLASHCTL_API_KEY": "k",
        "AWS_SECRET": "s",
        "CUDA_HOME": "/c",
        "https_proxy": "http://p",
        "no_proxy": "x",
    }
    env = child_environment(ours, (("A", "1"), ("HF_TOKEN", "t2")), temporary="/t", host="127.0.0.1")
    assert env == {
        "PATH": "/bin",
        "CUDA_HOME": "/c",
        "https_proxy": "http://p",
        "no_proxy": "x,127.0.0.1,localhost,::1",
        "NO_PROXY": "x,127.0.0.1,localhost,::1",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": "/t",
        "A": "1",
    }


@pytest.mark.parametrize(
    ("environ", "pid", "who"),
    [
        ({}, 1, "container"),
        ({"NOTIFY_SOCKET": "/run/x"}, 9, "systemd"),
        ({"SYSTEMD_EXEC_PID": "9"}, 9, "systemd"),
        ({"SYSTEMD_EXEC_PID": "8", "INVOCATION_ID": "x"}, 9, None),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, 9, "kubernetes"),
        ({"SLURM_JOB_ID": "1"}, 9, "slurm"),
        ({}, 9, None),
    ],
)
def test_who_restarts_us(environ, pid, who):
    assert outer_supervisor(environ, pid) == who
    assert restart_budget(environ, pid, 3) == (0 if who else 3)
    assert restart_budget({**environ, "DFLASHCTL_RESTARTS": "7"}, pid, 3) == 7


def test_live_figures_add_replicas_and_skip_the_other_ranks():
    text = (
        '# HELP sglang:num_running_reqs x\nsglang:num_running_reqs{dp_rank="0",tp_rank="0"} 3.0\n'
        'sglang:num_running_reqs{dp_rank="0",tp_rank="1"} 3.0\nsglang:num_running_reqs{dp_rank="1",tp_rank="0"} 2.0\n'
        'sglang:num_queue_reqs{tp_rank="0"} 1.0\nsglang:gen_throughput{tp_rank="0"} 100.5\n'
        'sglang:spec_accept_length{tp_rank="0"} 5.225\nsglang:token_usage{tp_rank="0"} 0.25\n'
        'sglang:generation_tokens_total{model_name="a b,c"} 2.16e+02\n'
    )
    figures = live_figures(text)
    assert (figures.running, figures.queued, figures.output_tokens_per_s) == (5, 1, 100.5)
    assert (figures.accept_length, figures.kv_use, figures.tokens_total) == (5.225, 0.25, 216)
    assert live_figures("nothing here").running is None
    assert live_figures("nothing here").activity is None


def facts(**changes):
    return EndFacts(
        **(
            {
                "returncode": -9,
                "oom_kills": 0,
                "step": StartPhase.CAPTURE,
                "was_ready": False,
                "lines": ("a", "b"),
            }
            | changes
        )
    )


@pytest.mark.parametrize(
    ("changes", "kind", "permanent"),
    [
        ({}, "killed", False),
        ({"oom_kills": 2}, "oom", False),
        ({"oom_kills": None}, "killed", False),
        ({"returncode": 1}, "exited", False),
        ({"returncode": 1, "step": StartPhase.RESOLVE}, "exited", True),
        ({"returncode": 1, "step": StartPhase.RESOLVE, "was_ready": True}, "exited", False),
        ({"returncode": 2}, "exited", True),
        ({"returncode": 0}, "exited", False),
        ({"returncode": None}, "lost", False),
    ],
)
def test_an_end_without_words_in_the_log(changes, kind, permanent):
    verdict = judge(facts(**changes), None)
    assert (verdict.last_exit.kind, verdict.permanent) == (kind, permanent)
    assert verdict.last_exit.evidence == ("a", "b")


def test_what_a_shell_would_show():
    assert exit_status_of(LastExit(signal=9)) == 137
    assert exit_status_of(LastExit(status=3)) == 3
    assert exit_status_of(None) is None


@pytest.mark.parametrize(
    ("ours", "planned", "host", "spared"),
    [
        ({"https_proxy": "p"}, {}, "127.0.0.1", "127.0.0.1,localhost,::1"),
        (
            {"http_proxy": "p", "no_proxy": "127.0.0.1"},
            {},
            "10.0.0.5",
            "127.0.0.1,127.0.0.1,localhost,::1,10.0.0.5",
        ),
        ({"ALL_PROXY": "p", "NO_PROXY": "x"}, {}, "0.0.0.0", "x,127.0.0.1,localhost,::1,0.0.0.0"),
        ({"http_proxy": "p"}, {"no_proxy": "own"}, "node7", "own,127.0.0.1,localhost,::1,node7"),
        ({}, {"http_proxy": "p"}, "10.0.0.5", "127.0.0.1,localhost,::1,10.0.0.5"),
        ({}, {}, "10.0.0.5", None),
    ],
)
def test_the_server_reaches_itself_past_any_proxy(ours, planned, host, spared):
    env = child_environment(ours, tuple(planned.items()), temporary="/t", host=host)
    assert env.get("no_proxy") == env.get("NO_PROXY") == spared
