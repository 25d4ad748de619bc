"""profile new --from-command: the file, its commits, and what is refused."""

from __future__ import annotations

from pathlib import Path

from dflashctl.commands.profile_new import profile_new
from dflashctl.core.errors import ExitCode, Unavailable
from dflashctl.core.model_files import Listing
from dflashctl.core.report import Outcome, envelope
from dflashctl.edges.profile_store import FileProfileStore
from dflashctl.env import Env

COMMAND = (
    "SGLANG_ENABLE_SPEC_V2=1 sglang serve {target} --speculative-algorithm DFLASH --cuda-graph-max-bs 8 "
    "--speculative-draft-model-path {draft} --trust-remote-code --tp 8 --mem-fraction-static 0.9"
)
KNOWN = COMMAND.format(target="moonshotai/Kimi-K3", draft="modal-labs/Kimi-K3-DFlash")
OTHER = COMMAND.format(target="org/target", draft="org/draft")


class Hub:
    def __init__(self, commits):
        self.commits, self.asked = commits, []

    def listing(self, repo, revision, rules, notify):
        self.asked.append(repo)
        if repo not in self.commits:
            raise Unavailable("no network")
        return Listing(repo=repo, commit=self.commits[repo], files=())


def env(tmp_path, commits=()):
    return Env(environ={"HOME": str(tmp_path)}, cwd=tmp_path, hub=Hub(dict(commits)))


def loaded(tmp_path, report):
    file = tmp_path / f"{report.data.name}.yaml"
    file.write_text(report.data.text)
    return FileProfileStore(cwd=tmp_path, environ={"HOME": str(tmp_path)}).load(str(file)).profile


def test_commits_that_a_shipped_profile_pins_need_no_hub(tmp_path):
    here = env(tmp_path)
    report = profile_new(here, name="mine", text=KNOWN)
    profile = loaded(tmp_path, report)
    assert report.outcome is Outcome.OK
    assert here.hub.asked == []
    assert profile.target.revision == "2496450e92e425c886db095102a52a6682ca3970"
    assert profile.target.trust_remote_code
    assert (profile.parallel.tensor, profile.requirements.gpus) == (8, 8)
    assert profile.extra_args == ("--cuda-graph-max-bs-decode", "8")
    assert dict(profile.environment) == {}


def test_other_commits_come_from_the_hub(tmp_path):
    report = profile_new(
        env(tmp_path, {"org/target": "a" * 40, "org/draft": "b" * 40}), name="mine", text=OTHER
    )
    profile = loaded(tmp_path, report)
    assert (profile.target.revision, profile.draft.revision) == ("a" * 40, "b" * 40)


def test_without_the_hub_the_missing_commits_are_named(tmp_path):
    for report in (
        profile_new(env(tmp_path), name="mine", text=OTHER),
        profile_new(env(tmp_path, {"org/target": "a" * 40}), name="mine", text=OTHER, offline=True),
    ):
        assert report.outcome is Outcome.PARTIAL
        assert report.data.unpinned == ("org/target", "org/draft")
        assert report.data.text.count("TO DO") == 2


def test_the_file_says_what_was_changed(tmp_path):
    text = profile_new(env(tmp_path), name="mine", text=KNOWN).data.text
    assert "# --cuda-graph-max-bs 8 -> --cuda-graph-max-bs-decode 8" in text
    assert "# SGLANG_ENABLE_SPEC_V2=1 -> left out" in text


def test_a_refused_command_is_permanent_and_gives_no_file(tmp_path):
    report = profile_new(env(tmp_path), name="mine", text=KNOWN + " --no-such-option 1")
    assert report.exit_code == ExitCode.PERMANENT
    assert report.data is None
    assert envelope(report)["errors"][0]["message"].endswith("'--no-such-option'")


def test_local_models_stay_paths(tmp_path):
    text = COMMAND.format(target="/data/my target", draft="./draft").replace(
        "/data/my target", "'/data/my target'"
    )
    profile = loaded(tmp_path, profile_new(env(tmp_path), name="mine", text=text))
    assert (profile.target.path, profile.draft.path) == ("/data/my target", "./draft")
    assert profile.target.revision is None


def test_the_readme_s_folder_is_untouched(tmp_path):
    profile_new(env(tmp_path), name="mine", text=KNOWN)
    assert [p for p in Path(tmp_path).iterdir() if p.suffix == ".yaml"] == []
