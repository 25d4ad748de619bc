"""The command: what it gathers, answers and refuses, in text and as JSON."""

from __future__ import annotations

import io
import itertools
import json
from dataclasses import fields, replace

import pytest

from dflashctl.commands.doctor import DoctorOptions, before_start, doctor
from dflashctl.commands.planned import planned
from dflashctl.core.deep import DeepFacts, PairCopy
from dflashctl.core.errors import UsageProblem
from dflashctl.core.findings import Severity, errors
from dflashctl.core.options import PlanRequest
from dflashctl.core.report import Outcome, envelope
from dflashctl.env import Env
from dflashctl.ui.text import show, show_live
from tests.fakes.fake_instances import FakeInstances
from tests.fakes.fake_machine import FakeMachine
from tests.support.machines import TOPOLOGIES, topology


class FakeClock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def wall(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def env_for(machine, home, **given):
    probe = FakeMachine(machine, **given)
    return Env(environ={"HOME": str(home)}, cwd=home, machine=probe, clock=FakeClock()), probe


def printed(report):
    out, err = io.StringIO(), io.StringIO()
    show(report, out=out, err=err)
    return out.getvalue(), err.getvalue()


def run(name, home, *, profile="", change=None, **options):
    env, probe = env_for(topology(name, change), home)
    return doctor(env, DoctorOptions(plan=PlanRequest(profile=profile), **options)), probe


def test_a_good_machine_in_one_glance(tmp_path):
    report, _ = run("8x-b300", tmp_path, profile="kimi-k3-b300")
    out, err = printed(report)
    lines = out.splitlines()
    assert lines[0] == "ok   this machine (8x NVIDIA B300 SXM6 AC) can carry kimi-k3-b300"
    assert "memory of each GPU (some figures are estimates)" in out
    assert "up to 48 requests at once" in out
    assert "checks passed in 0.00 s" in out
    assert "UUID" not in out
    assert err == "next: dflashctl fetch kimi-k3-b300\n"
    assert (report.outcome, int(report.exit_code)) == (Outcome.OK, 0)


def test_a_plans_own_server_is_not_an_occupied_machine(tmp_path):
    """All GPUs full and the port taken, by the very server that is asked about."""
    busy = {
        "gpus[*].memory_free_bytes": 2_000_000_000,
        "gpus[*].processes": [{"pid": 77, "name": "sglang::scheduler", "memory_bytes": 285_000_000_000}],
    }
    machine = topology("8x-b300", busy)
    name = "kimi-k3-b300"
    env, _ = env_for(machine, tmp_path, taken={30000: (77, "python3")})
    env.__dict__["instances"] = FakeInstances(name, phase="ready", port=30000, pids=[76, 77])
    report = doctor(env, DoctorOptions(plan=PlanRequest(profile=name)))
    alone, _ = run("8x-b300", tmp_path, profile=name)
    assert [f.id for f in report.findings if f not in alone.findings] == ["running"]
    assert report.data.fit == alone.data.fit
    assert report.data.machine == machine, "what is shown and saved is the machine as it is"
    assert report.next_steps == (f"dflashctl status {name}",)
    beside = doctor(env, DoctorOptions(plan=PlanRequest(profile=name, name="another")))
    assert {f.id for f in errors(beside.findings)} >= {"ports", "gpu_memory"}


def test_failures_come_first_with_their_fix(tmp_path):
    report, _ = run(
        "8x-b300",
        tmp_path,
        profile="kimi-k3-b300",
        change={"gpus[2].nvlinks_active": 16, "gpus[2].nvlinks_down": [7, 12], "host.cgroup_pids_max": 100},
    )
    out, _ = printed(report)
    marks = [line[:4] for line in out.splitlines() if line[:4] in {"FAIL", "warn", "note"}]
    assert marks == sorted(marks, key=("FAIL", "warn", "note").index)
    assert out.startswith(
        "FAIL this machine (8x NVIDIA B300 SXM6 AC) cannot carry kimi-k3-b300: 1 failure, 1 warning"
    )
    assert "FAIL GPU 2: 2 NVLink lanes are down" in out
    assert "    fix: choose other GPUs (--gpus)" in out
    assert int(report.exit_code) == 1


def test_all_facts_only_when_asked_for(tmp_path):
    report, _ = run("2x-4090-pcie", tmp_path, verbose=True)
    out, _ = printed(report)
    for words in (
        "GPU-00000000-0000-0000-0000-000000000001",
        "phb, no peer access: 0-1",
        "glibc 2.39",
        "left out",
    ):
        assert words in out
    assert "this machine does not tell: ecc, row_remap, nvlink, fabric" in out


def test_a_machine_that_does_not_tell_is_shown_with_question_marks(tmp_path):
    change = {
        "gpus[*].memory_total_bytes": None,
        "gpus[*].memory_free_bytes": None,
        "links[0].kind": "unknown",
        "unknown": ["links"],
    }
    report, _ = run("2x-h200", tmp_path, profile="tiny-gpu", change=change, verbose=True)
    out, _ = printed(report)
    assert "0 NVIDIA H200  ?       ?" in out
    assert "unknown: 0-1" in out
    assert report.data.fit.verdict.value == "unknown"
    assert report.data.unknown[-1] == "links"
    env, _ = env_for(topology("2x-h200", change), tmp_path)
    show_live(next(doctor(env, DoctorOptions(watch=True))), out=(live := io.StringIO()))
    assert "GiB" not in live.getvalue()


def test_json_has_the_verdict_the_fit_and_the_machine(tmp_path):
    report, _ = run("8x-b300", tmp_path, profile="kimi-k3-b300")
    answer = json.loads(json.dumps(envelope(report)))
    data = answer["data"]
    assert answer["command"] == "doctor"
    assert data["verdict"].endswith("can carry kimi-k3-b300")
    assert data["fit"]["verdict"] == "runs"
    assert data["fit"]["kv_tokens"] > 0
    assert len(data["gpus"]) == 8
    assert data["machine"]["gpus"][0]["fabric"]["status"] == "success"
    assert {check["outcome"] for check in data["checks"]} <= {"passed", "found", "left_out", "crashed"}


def test_the_interpreter_that_would_start_the_engine_is_asked(tmp_path):
    request = PlanRequest(profile="kimi-k3-b300", python="/opt/x/python", engine_version="0.5.23")
    env, probe = env_for(topology("8x-b300"), tmp_path)
    doctor(env, DoctorOptions(plan=request))
    env.environ = {**env.environ, "DFLASHCTL_ENGINE_PYTHON": "/opt/y/python"}
    doctor(env, DoctorOptions())
    assert probe.surveyed == ["/opt/x/python", "/opt/y/python"]


def test_a_missing_engine_and_missing_gpus_are_two_failures_not_three(tmp_path):
    report, _ = run("laptop", tmp_path, profile="qwen3-8b-h100")
    assert sorted(f.id for f in errors(report.findings)) == ["engine_present", "gpu_driver"]


def test_shared_options_change_the_judgement(tmp_path):
    env, _ = env_for(topology("8x-h200"), tmp_path)
    request = PlanRequest(profile="qwen3-8b-h100", gpus="5", sets=("memory.static_fraction=0.9",))
    report = doctor(env, DoctorOptions(plan=request))
    assert report.data.gpus == ("GPU-00000000-0000-0000-0000-000000000005",)
    assert report.data.fit.static_fraction == 0.9


def test_a_saved_machine_is_judged_without_touching_this_one(tmp_path):
    env, probe = env_for(topology("laptop"), tmp_path)
    path = str(TOPOLOGIES / "8x-b300.yaml")
    report = doctor(env, DoctorOptions(plan=PlanRequest(profile="kimi-k3-b300", machine=path)))
    assert (report.data.source, probe.surveyed) == (path, [])
    assert report.data.verdict.startswith("the saved machine (8x NVIDIA B300")
    assert report.next_steps == ()


def test_saving_gives_a_file_that_gets_the_same_verdict(tmp_path):
    report, _ = run("8x-b300-lanes-down", tmp_path, profile="kimi-k3-b300", save_machine="m.yaml")
    env, _ = env_for(topology("laptop"), tmp_path)
    again = doctor(env, DoctorOptions(plan=PlanRequest(profile="kimi-k3-b300", machine="m.yaml")))
    assert report.data.saved == "m.yaml"
    assert [f.summary for f in again.findings] == [f.summary for f in report.findings]
    assert "saved to m.yaml, without serial numbers" in printed(report)[0]


def test_deep_tries_the_plans_gpus_and_reports(tmp_path):
    attempts = DeepFacts(
        cuda_error=0,
        cuda_devices=2,
        cuda_start_s=0.7,
        copies=(PairCopy(a=0, b=1, right=True, gb_per_s=310.0),),
        all_reduce_tried=True,
        all_reduce_right=None,
        all_reduce_s=120.0,
        skipped=("compilation: no nvcc",),
    )
    env, probe = env_for(topology("2x-h200"), tmp_path, attempts=attempts)
    report = doctor(env, DoctorOptions(plan=PlanRequest(profile="tiny-gpu"), deep=True))
    (tried,) = probe.tried
    assert tried.gpus == ("GPU-00000000-0000-0000-0000-000000000000",)
    assert list(tried.weights.glob("*.safetensors"))
    assert [f.id for f in errors(report.findings)] == ["deep_links"]
    out, _ = printed(report)
    assert "CUDA starts  0.7 s for 2 GPUs" in out
    assert "1 pairs right, 310 to 310 GB/s" in out
    assert "compilation: no nvcc" in out


@pytest.mark.parametrize("option", ["deep", "watch"])
def test_a_saved_machine_cannot_be_tried(option, tmp_path):
    env, _ = env_for(topology("laptop"), tmp_path)
    request = PlanRequest(profile="", machine=str(TOPOLOGIES / "8x-b300.yaml"))
    with pytest.raises(UsageProblem, match=f"--{option}"):
        doctor(env, DoctorOptions(plan=request, **{option: True}))


@pytest.mark.parametrize(
    ("profile", "gpus", "no_gpus", "weights", "no_weights"),
    [
        ("tiny-gpu", 1, "no GPU", True, "no weights on disk yet"),
        ("tiny-cpu", 0, "the profile needs no GPU", True, "no weights on disk yet"),
        ("", 2, "no GPU", False, "no profile names the weights"),
    ],
)
def test_deep_tries_what_the_profile_needs(profile, gpus, no_gpus, weights, no_weights, tmp_path):
    env, probe = env_for(topology("2x-h200"), tmp_path)
    doctor(env, DoctorOptions(plan=PlanRequest(profile=profile), deep=True))
    (tried,) = probe.tried
    assert (len(tried.gpus), tried.no_gpus) == (gpus, no_gpus)
    assert (tried.weights is not None, tried.no_weights) == (weights, no_weights)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"watch": True, "save_machine": "m.yaml"}, "--save-machine means nothing"),
        ({"watch": True, "deep": True}, "--deep means nothing"),
        ({"watch": True, "plan": PlanRequest(profile="tiny-gpu")}, "a profile means nothing"),
        ({"watch": True, "plan": PlanRequest(profile="", python="/x")}, "--python means nothing"),
        ({"watch": True, "plan": PlanRequest(profile="", port=1)}, "--port is about a profile's plan"),
        *(
            ({"plan": PlanRequest(profile="", **{name: value})}, f"{option} is about a profile's plan")
            for name, value, option in (
                ("sets", ("a.b=1",), "--set"),
                ("block_size", 8, "--block-size"),
                ("window_size", 8, "--window-size"),
                ("host", "::", "--host"),
                ("port", 1, "--port"),
                ("engine_version", "0.5.23", "--engine-version"),
                ("name", "x", "--name"),
                ("runtime", "docker", "--runtime"),
                ("image", "x", "--image"),
                ("offline", True, "--offline"),
                ("raw_args", ("--tp", "2"), "what follows --"),
            )
        ),
        (
            {"plan": PlanRequest(profile="", python="/x", machine=str(TOPOLOGIES / "8x-b300.yaml"))},
            "--python names an interpreter of this machine",
        ),
        ({"plan": PlanRequest(profile="", gpus="0,99")}, "there is no GPU '99'"),
        ({"plan": PlanRequest(profile="", gpus="0,0")}, "names a GPU twice"),
        ({"plan": PlanRequest(profile="", gpus=" , ")}, "--gpus names no GPU"),
        ({"watch": True, "plan": PlanRequest(profile="", gpus="99")}, "there is no GPU '99'"),
    ],
)
def test_an_option_that_would_only_seem_to_be_obeyed_is_refused(options, words, tmp_path):
    env, _ = env_for(topology("8x-b300"), tmp_path)
    with pytest.raises(UsageProblem) as caught:
        doctor(env, DoctorOptions(**options))
    assert words in caught.value.message
    assert caught.value.hint
    assert (int(caught.value.exit_code), list(tmp_path.iterdir())) == (2, [])


def test_every_plan_option_is_obeyed_or_refused_without_a_profile(tmp_path):
    """A new option has to be decided on."""
    obeyed = {"gpus", "machine", "python"}
    no_effect_by_their_help = {"dry_run", "skip_doctor", "skip_fetch"}
    env, _ = env_for(topology("8x-b300"), tmp_path)
    for option in fields(PlanRequest):
        if option.name == "profile" or option.name in obeyed | no_effect_by_their_help:
            continue
        value = True if option.default is False else ("x",) if option.default == () else "other"
        with pytest.raises(UsageProblem, match="no profile is named"):
            doctor(env, DoctorOptions(plan=PlanRequest(profile="", **{option.name: value})))


def test_named_gpus_are_judged_without_a_profile(tmp_path):
    change = {"gpus[3].compute_mode": "prohibited"}
    said = {}
    for gpus in (None, "0", "3", "0,3"):
        env, probe = env_for(topology("8x-b300", change), tmp_path)
        request = PlanRequest(profile="", gpus=gpus)
        report = doctor(env, DoctorOptions(plan=request, deep=True))
        said[gpus] = [f.id for f in errors(report.findings) if f.id == "compute_mode"]
        assert len(probe.tried[0].gpus) == (8 if gpus is None else len(gpus.split(",")))
        assert report.data.verdict.startswith("this machine" if gpus is None else "GPU")
    assert said == {None: ["compute_mode"], "0": [], "3": ["compute_mode"], "0,3": ["compute_mode"]}


def test_named_gpus_are_watched(tmp_path):
    env, _ = env_for(topology("8x-b300"), tmp_path)
    watch = doctor(env, DoctorOptions(watch=True, plan=PlanRequest(profile="", gpus="5,2")))
    assert [[gpu.index for gpu in look.data.gpus] for look in itertools.islice(watch, 2)] == [[2, 5], [2, 5]]


NOT_TRIED = {"deep_cuda", "deep_torch", "deep_links", "deep_disk", "deep_jit"}


@pytest.mark.parametrize(
    ("tried", "known"),
    [
        (DeepFacts(skipped=("all",)), set()),
        (DeepFacts(cuda_error=0), {"deep_cuda"}),
        (DeepFacts(cuda_error_text="no end within 120 s"), {"deep_cuda"}),
        (DeepFacts(torch_devices=8), {"deep_torch"}),
        (DeepFacts(torch_error="killed by SIGSEGV"), {"deep_torch"}),
        (DeepFacts(copies=(PairCopy(a=0, b=1, right=True, gb_per_s=1.0),)), {"deep_links"}),
        (DeepFacts(all_reduce_tried=True, all_reduce_right=True), {"deep_links"}),
        (DeepFacts(disk_read_gb_per_s=1.0), {"deep_disk"}),
        (DeepFacts(disk_error="no end within 60 s"), {"deep_disk"}),
        (DeepFacts(jit_compile_s=1.0), {"deep_jit"}),
        (DeepFacts(jit_error="no"), {"deep_jit"}),
    ],
)
def test_what_was_not_tried_has_not_passed(tried, known, tmp_path):
    env, _ = env_for(topology("8x-b300"), tmp_path, attempts=tried)
    report = doctor(env, DoctorOptions(plan=PlanRequest(profile="kimi-k3-b300"), deep=True))
    judged = {r.id for r in report.data.checks if r.id in NOT_TRIED and r.outcome.value != "left_out"}
    assert judged == known


def test_watch_looks_once_a_second(tmp_path):
    machine = topology(
        "2x-h200-busy", {"gpus[0].throttle_reasons": ["sw_power_cap"], "gpus[1].power_w": "absent"}
    )
    env, _ = env_for(machine, tmp_path)
    first, second = itertools.islice(doctor(env, DoctorOptions(watch=True)), 2)
    assert (first.data.at_s, second.data.at_s) == (0.0, 1.0)
    out = io.StringIO()
    show_live(first, out=out)
    rows = out.getvalue().splitlines()
    assert "1.6/140 GiB" in rows[1]
    assert "1980/1980 MHz" in rows[1]
    assert rows[1].rstrip().endswith("sw_power_cap")
    assert "?/700 W" in rows[2]


def test_watch_goes_on_past_a_lost_gpu_and_names_it(tmp_path):
    env, probe = env_for(topology("2x-h200-busy"), tmp_path)
    looks = doctor(env, DoctorOptions(watch=True))
    before = next(looks)
    kept = probe.machine.gpus[:1]
    probe.machine = replace(probe.machine, gpus=kept, gpus_unreadable=("GPU 1: GPU is lost",))
    after = next(looks)
    assert (len(before.data.gpus), before.data.unreadable) == (2, ())
    assert (after.data.gpus, after.data.unreadable) == (kept, ("GPU 1: GPU is lost",))
    out = io.StringIO()
    show_live(after, out=out)
    assert "warn GPU 1: GPU is lost" in out.getvalue()
    probe.machine = replace(probe.machine, gpus=())
    last = next(looks)
    assert (last.data.problem, int(last.exit_code)) == ("GPU 1: GPU is lost", 1)


def test_watch_without_gpus_ends_with_the_reason(tmp_path):
    env, _ = env_for(topology("laptop"), tmp_path)
    (only,) = doctor(env, DoctorOptions(watch=True))
    assert only.data.problem.startswith("no NVIDIA GPU")
    assert (only.exit_code, only.outcome.value) == (1, "failed")
    assert "FAIL no NVIDIA GPU" in printed(only)[0]


def findings_before_start(name, home, profile, change=None, **given):
    env, _ = env_for(topology(name, change), home, **given)
    request = PlanRequest(profile=profile)
    return before_start(env, planned(env, PlanRequest(profile=profile, dry_run=True)), request)


def test_a_start_is_stopped_by_failures_only(tmp_path):
    sick = findings_before_start("8x-b300", tmp_path, "kimi-k3-b300", {"gpus[3].xids": [145]})
    assert [f.id for f in errors(sick)] == ["xid"]
    taken = findings_before_start("8x-b300", tmp_path, "tiny-gpu", taken={30000: (7, "nginx")})
    assert [f.id for f in errors(taken)] == ["ports"]
    well = findings_before_start("8x-b300", tmp_path, "kimi-k3-b300")
    assert {f.severity for f in well} <= {Severity.NOTE}


def test_a_start_on_the_cpu_is_not_stopped_by_gpus(tmp_path):
    assert errors(findings_before_start("no-driver", tmp_path, "tiny-cpu")) == ()


def test_an_interpreter_that_cannot_be_run_is_a_failure_with_a_verdict(tmp_path):
    """The plan is made all the same, so that everything else is judged in the same run."""
    software = {
        "python": "/nowhere/python3",
        "problem": "'/nowhere/python3' cannot be run: No such file or directory",
    }
    env, _ = env_for(topology("8x-b300", {"software": software}), tmp_path)
    report = doctor(env, DoctorOptions(plan=PlanRequest(profile="kimi-k3-b300", python="/nowhere/python3")))
    assert [f.id for f in errors(report.findings)] == ["engine_present"]
    assert report.data.fit.verdict.value == "runs"
