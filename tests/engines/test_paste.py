"""Pasted text: what it starts, without running any of it."""

from __future__ import annotations

import pytest

from dflashctl.core.errors import UsageProblem
from dflashctl.engines.sglang.paste import read_pasted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("python -m sglang.launch_server --model-path m", "--model-path m"),
        ("sglang serve m --port 1", "--model-path m --port 1"),
        ("sglang serve --model-type llm --model-path m", "--model-path m"),
        ("/opt/venv/bin/sglang serve m", "--model-path m"),
        ("uv run --no-sync sglang serve m", "--model-path m"),
        ("nohup python3 -m sglang.launch_server --model m > log 2>&1 &", "--model m"),
        ("A=1 env B=2 python3 -m sglang.launch_server --model m | tee log", "--model m"),
        ("cd x && python3 -m sglang.launch_server --model m; echo done", "--model m"),
        ("M=a/b\npython3 -m sglang.launch_server --model $M --port ${PORT:-1}", "--model a/b --port 1"),
        ("bash -c 'sglang serve m --port 2'", "--model-path m --port 2"),
        ("python3 -m sglang.launch_server \\\n  --model m \\\n  # --port 3 \\\n  --tp 4", "--model m --tp 4"),
        ("python3 -m sglang.launch_server --model m  # the model", "--model m"),
        ("python3 -m sglang.launch_server --model \u201cm\u201d \u2014port 1", "--model m --port 1"),
        ("```bash\n$ python3 -m sglang.launch_server --model m\n```", "--model m"),
        ('X=(--tp 2)\nX+=(--port 1)\nsglang serve m "${X[@]}"', "--model-path m --tp 2 --port 1"),
        ("ARGS='--tp 2 --port 1'\nsglang serve m $ARGS", "--model-path m --tp 2 --port 1"),
        ("docker run --gpus all -p 1:1 --shm-size 32g lmsysorg/sglang:v1 python3 -m sglang.launch_server --model m", "--model m"),
        ("docker run -it --rm -v a:b img sglang serve m", "--model-path m"),
        ("docker run --entrypoint python3 img -m sglang.launch_server --model m", "--model m"),
        ('docker run img bash -c "sglang serve m"', "--model-path m"),
    ],
)  # fmt: skip
def test_the_engine_s_words_are_found(text, words):
    assert " ".join(read_pasted(text).words) == words


def test_the_environment_is_gathered_from_everywhere():
    pasted = read_pasted("export A=1\nB=2 env C=3 python -m sglang.launch_server --model m")
    assert dict(pasted.environment) == {"A": "1", "B": "2", "C": "3"}
    pasted = read_pasted("docker run -e A=1 --env B=2 --env=C=3 -e HF_TOKEN img:1 sglang serve m")
    assert dict(pasted.environment) == {"A": "1", "B": "2", "C": "3"}
    assert pasted.image == "img:1"


COMPOSE = """
services:
  proxy:
    image: nginx
    command: nginx
  llm:
    image: ${IMAGE:-lmsysorg/sglang:v0.5.22}
    environment:
      - SGLANG_ENABLE_OVERLAP_PLAN_STREAM=1
      - HF_TOKEN
    command: %s
"""


@pytest.mark.parametrize(
    "command",
    [
        "python3 -m sglang.launch_server --model m --tp 2",
        '["sglang", "serve", "m", "--tp", "2"]',
        ">\n      python3 -m sglang.launch_server\n      --model m\n      --tp ${TP:-2}\n",
    ],
)
def test_a_compose_file_is_read(command):
    pasted = read_pasted(COMPOSE % command)
    assert pasted.words[-2:] == ("--tp", "2")
    assert pasted.image == "lmsysorg/sglang:v0.5.22"
    assert dict(pasted.environment) == {"SGLANG_ENABLE_OVERLAP_PLAN_STREAM": "1"}


def test_a_service_alone_and_a_shell_in_it_are_read():
    text = 'image: img\nentrypoint: ["/bin/bash", "-c"]\ncommand: ["exec python3 -m sglang.launch_server --model m"]\n'
    assert read_pasted(text).words == ("--model", "m")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no SGLang command"),
        ("ls -la", "no SGLang command"),
        ("vllm serve m", "vLLM"),
        ("python -m sgl_jax.launch_server --model m", "SGLang-JAX"),
        ("python3 -m sglang.launch_server --model $MODEL", "'MODEL' has no value"),
        ("python3 -m sglang.launch_server --model m --port $(free_port)", "output of another command"),
        ("python3 -m sglang.launch_server --model 'm", "cannot be read"),
    ],
)
def test_what_cannot_be_known_is_refused(text, said):
    with pytest.raises(UsageProblem, match=said):
        read_pasted(text)


def test_nothing_is_run(tmp_path):
    mark = tmp_path / "ran"
    with pytest.raises(UsageProblem):
        read_pasted(f"python3 -m sglang.launch_server --model $(touch {mark})")
    with pytest.raises(UsageProblem):
        read_pasted(f"`touch {mark}`; sglang serve `touch {mark}`")
    assert not mark.exists()
