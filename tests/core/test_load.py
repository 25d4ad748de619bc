from __future__ import annotations

import pytest

from dflashctl.core.errors import ProfileError
from dflashctl.env import Env

HEAD = """\
summary: a test
engine: {name: reference}
target: {path: builtin:tiny/target}
draft: {path: builtin:tiny/draft}
"""


def load(tmp_path, text, *, overrides=(), name="mine.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return Env(cwd=tmp_path).profiles.load(str(path), overrides).profile


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "memory: {static_fracton: 0.5}",
            "mine.yaml:5: memory.static_fracton: unknown field; did you mean 'static_fraction'?",
        ),
        (
            "memory: {static_fraction: high}",
            "mine.yaml:5: memory.static_fraction: must be a number, is text ('high')",
        ),
        ("memory: {static_fraction: 88}", "memory.static_fraction: is a share between 0 and 1, not 88.0"),
        ("memory: 3", "mine.yaml:5: memory: must be a mapping of fields, is a whole number"),
        ("server: {port: true}", "server.port: must be a whole number, is true/false (True)"),
        ("server:\n  port: 0", "mine.yaml:6: server.port: must be 1 to 65535, is 0"),
        ("speculative: {algorithm: DFLSH}", "'DFLSH' is not allowed; did you mean 'DFLASH'?"),
        ("speculative: {block_size: 16, draft_window_size: 8}", "8 is smaller than the block size 16"),
        ("extra_args: --foo", "extra_args: must be a list, is text"),
        ("environment: {A: 1.5}", "environment.A: must be text, is a number; put it in quotes"),
        ("environment: {HF_TOKEN: x}", "environment.HF_TOKEN: looks like a secret"),
        ("environment: {'A B': x}", "is no name for an environment variable"),
        ("parallel: {tensor: 0}", "parallel.tensor: must be above 0, is 0"),
        ("server: {port: 1}\nserver: {port: 2}", "mine.yaml:6: the key 'server' stands twice"),
        ("a: &x 1\nb: *x", "mine.yaml:5: anchors, aliases and tags are not allowed"),
        ("a: !!python/object:os.system x", "anchors, aliases and tags are not allowed"),
        ("a: [1", "not valid YAML"),
        ("3: x", "mine.yaml:5: the key 3 is not text"),
        ("server: {host: 2026-01-01}", ""),
    ],
)
def test_a_problem_names_the_file_the_line_and_the_field(tmp_path, text, expected):
    if not expected:
        assert load(tmp_path, HEAD + text).server.host == "2026-01-01"
        return
    with pytest.raises(ProfileError) as caught:
        load(tmp_path, HEAD + text)
    assert expected in caught.value.message


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "target: {path: builtin:tiny/target}",
            "target: {repo: a/b, revision: main}",
            "must be a commit of 40 hexadecimal digits, is 'main'",
        ),
        (
            "target: {path: builtin:tiny/target}",
            "target: {repo: a/b/c, revision: " + "a" * 40 + "}",
            "'a/b/c' is not of the form owner/name",
        ),
        ("target: {path: builtin:tiny/target}", "target: {}", "needs either repo (with revision) or path"),
        ("draft: {path: builtin:tiny/draft}", "", "draft: is missing: DFLASH needs a draft model"),
        ("summary: a test", "", "mine.yaml:2: summary: is missing"),
    ],
)
def test_rules_over_the_models(tmp_path, old, new, expected):
    with pytest.raises(ProfileError, match="mine") as caught:
        load(tmp_path, HEAD.replace(old, new))
    assert expected in caught.value.message


def test_every_problem_is_told_at_once(tmp_path):
    text = "summary: x\nengine: {name: sglan}\ntarget: {repo: a/b}\nmemory: {page_size: x, foo: 1}\nserver: {port: 70000}\n"
    with pytest.raises(ProfileError) as caught:
        load(tmp_path, text)
    assert caught.value.message.startswith("profile 'mine' has 6 problems:")


def test_overrides_change_values_and_are_remembered_as_origins(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD)
    loaded = Env(cwd=tmp_path).profiles.load(
        str(path),
        [
            ("memory.static_fraction", "0.5", "--set memory.static_fraction=0.5"),
            ("server.port", "1234", "--port"),
        ],
    )
    assert loaded.profile.memory.static_fraction == 0.5
    assert loaded.profile.server.port == 1234
    assert loaded.origins["server.port"] == "--port"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (
            "memory.static_fracton",
            "0.5",
            "--set: memory.static_fracton: unknown field; did you mean 'static_fraction'?",
        ),
        ("server.port", "many", "--set: server.port: must be a whole number, is text ('many')"),
        ("server", "5", "--set: server: must be a mapping of fields"),
    ],
)
def test_an_override_that_does_not_fit_names_the_option(tmp_path, path, value, expected):
    with pytest.raises(ProfileError) as caught:
        load(tmp_path, HEAD, overrides=[(path, value, "--set")])
    assert expected in caught.value.message


def test_a_huge_file_is_refused_before_it_is_parsed(tmp_path):
    with pytest.raises(ProfileError, match="larger than 1 MiB"):
        load(tmp_path, HEAD + "#" * (1 << 20))


def test_deep_nesting_is_refused(tmp_path):
    with pytest.raises(ProfileError, match="nested more than 20 deep"):
        load(tmp_path, HEAD + "extra_args: " + "[" * 30 + "]" * 30)
