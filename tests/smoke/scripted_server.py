"""A server that speaks SGLang's HTTP from a script, with one fault at a time: what each proof must notice."""

# ruff: noqa: S311 - scripted texts, not secrets

from __future__ import annotations

import json
import random
import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from dflashctl.reference.problems import problem

MODEL = "scripted/model"
BLOCK = 8
CONTEXT = 4096
_WORDS = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
)


def _known() -> dict[str, str]:
    """Questions that proofs ask, with their solutions."""
    sources = [random.Random(seed) for seed in (20260, 20261, 16)]
    return dict(problem(source) for source in sources for _ in range(40))


_ANSWERS = _known()


def answer(prompt: str) -> str:
    """The solution of the (last) known problem in the prompt, otherwise prose that only the prompt decides."""
    for question, solution in _ANSWERS.items():
        if prompt.endswith(question):
            return solution
    source = random.Random(prompt)
    return " ".join(f"{source.choice(_WORDS)}{source.randint(1, 99)}" for _ in range(40)) + "."


def pieces(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*$|\s*\S+", text)


SCHEMA_ANSWERS = {
    "schema-ignored": ("Ana, 42", "stop"),
    "schema-blanks": ("{ " + " \n" * 200, "length"),
    "schema-endless-name": ('{"age": 7, "name": "Ana' + " la" * 90, "length"),
    "schema-cut-in-prose": ("{}Sure! Here is a person:" + " \n" * 200, "length"),
    "schema-other-member": ('{"title": "x"' + " \n" * 200, "length"),
}


class Script(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # all that a proof sends at once

    def __init__(self, fault: str | None = None, **info: object) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fault, self.info = fault, info
        self.running, self.lock = 0, threading.Lock()
        self.shown = [0, 0, 0]  # what a gauge that lags shows next
        self.seen: set[str] = set()
        self.last_text = ""
        self.requests: list[dict] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address) -> None:
        """Clients that go away are part of the script."""


@contextmanager
def serving(fault: str | None = None, **info: object):
    server = Script(fault, **info)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Script
    again = False

    def log_message(self, *args: object) -> None:
        """Quiet."""

    def send_json(self, value: object, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        fault = self.server.fault
        if fault == "gateway":
            self.send_json({"error": "Bad Gateway"}, 502)
        elif fault == "needs-key" and self.headers.get("Authorization") != "Bearer sk-secret":
            self.send_json({"error": "Unauthorized"}, 401)
        elif self.path == "/v1/models":
            name = "other/model" if fault == "wrong-model" else MODEL
            data = [] if fault == "no-model" else [{"id": name, "root": name, "max_model_len": CONTEXT}]
            self.send_json({"object": "list", "data": data})
        elif self.path == "/health":
            self.send_json({}, 503 if fault == "unhealthy" else 200)
        elif self.path == "/server_info":
            info = {
                "version": "0.5.23",
                "speculative_algorithm": None if fault == "not-speculating" else "DFLASH",
                "speculative_num_draft_tokens": 16 if fault == "other-block" else BLOCK,
                "per_request_speculation": True,
                **self.server.info,
            }
            self.send_json(info)
        elif self.path == "/v1/loads":
            self.send_json({"loads": [{"num_running_reqs": self.gauge(), "num_waiting_reqs": 0}]})
        else:
            self.send_json({}, 404)

    def gauge(self) -> int:
        running, shown = self.server.running, self.server.shown
        if self.server.fault == "gauge-lags":
            shown.append(running)
            return shown.pop(0)
        return {"gauge-stands-still": 0, "gauge-stands-high": 16}.get(self.server.fault, running)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        with self.server.lock:
            self.server.running += 1
        try:
            self.reply(body)
        except OSError:
            if self.server.fault == "leaks-slot":
                return
        with self.server.lock:
            self.server.running -= 1

    def reply(self, body: dict) -> None:
        if self.path == "/generate":
            return self.native(body["text"])
        fault, prompt = self.server.fault, body["messages"][-1]["content"]
        if fault == "chat-500":
            return self.send_json({"message": "boom"}, 500)
        if len(prompt.split()) > CONTEXT and fault != "truncates":
            if fault == "dies-on-overflow":
                return self.close_connection_now()
            return self.send_json({"message": "The input is longer than the model's context length"}, 400)
        if body.get("logprobs") and fault in {"no-logprobs", "noisy"}:
            return self.send_json(
                {"message": "DFLASH speculative decoding does not support return_logprob yet."}, 400
            )
        if body.get("response_format") and fault == "no-grammar":
            return self.send_json(
                {"message": "DFLASH does not support grammar-constrained decoding yet"}, 400
            )
        text, reasoning, finish, calls = self.generation(body, prompt)
        tokens = pieces(text)
        limit = body.get("max_tokens", 128) + (3 if fault == "overruns" else 0)
        if body.get("ignore_eos"):
            tokens = (tokens * (limit // len(tokens) + 1))[:limit]
        if len(tokens) > limit:
            tokens, finish = tokens[:limit], "length"
        if body.get("stream"):
            return self.stream(body, tokens, reasoning, finish)
        return self.send_json(self.whole(body, tokens, reasoning, finish, calls))

    def native(self, prompt: str) -> None:
        """Releases before 0.5.13 tell their counts here only."""
        text = answer(prompt)
        count = len(pieces(text))
        meta = {"completion_tokens": count, "prompt_tokens": 20, "finish_reason": {"type": "stop"}}
        if self.server.fault == "native-counts-only":
            meta["spec_verify_ct"] = max(1, count // 6)
        self.send_json({"text": text, "meta_info": meta})

    def close_connection_now(self) -> None:
        self.close_connection = True
        self.connection.close()

    def generation(self, body: dict, prompt: str) -> tuple[str, str, str, list]:
        fault, server = self.server.fault, self.server
        text = self.sampled(body, answer(prompt))
        with server.lock:
            self.again = prompt in server.seen
            server.seen.add(prompt)
        if fault in {"cache-corrupts", "repeat-corrupts"} and self.again and len(prompt) > 2000:
            text = "Something quite different."
        if fault == "swaps-answers":
            text = self.swapped(text)
        if body.get("speculation") is not False:
            text = self.speculated(text)
        text = self.spoilt(text)
        if body.get("tools"):
            return self.tool()
        if body.get("response_format"):
            text, finish = SCHEMA_ANSWERS.get(fault, ('{"name": "Ana", "age": 42}', "stop"))
            return text, "", finish, []
        return self.stopped(body, *self.thought(body, text))

    def spoilt(self, text: str) -> str:
        """What the model itself does wrong."""
        return {
            "empty": "",
            "wrong-answers": "The answer is a matter of taste.",
            "loops": text.split(maxsplit=1)[0] + " and" * 60,
            "noisy": f"{text} {random.random()}",
        }.get(self.server.fault, text)

    def speculated(self, text: str) -> str:
        """What the verify step lets through."""
        if self.server.fault in {"lossy", "no-logprobs"}:
            return text.replace("The answer", "The result").replace("alpha", "omega")
        return text.replace("The answer", "The solution") if self.server.fault == "near-tie" else text

    def sampled(self, body: dict, text: str) -> str:
        fault = self.server.fault
        if body.get("temperature", 0) == 0 or fault == "greedy-only":
            return text
        if body.get("top_p", 1) < 0.01 and fault != "top-p-ignored":
            return text
        source = random.Random(body.get("seed"))
        return " ".join(source.choice(_WORDS) for _ in range(30))

    def swapped(self, text: str) -> str:
        """What is asked again, in the batch, gets the text of the request before."""
        with self.server.lock:
            previous, self.server.last_text = self.server.last_text, text
        return previous if self.again else text

    def thought(self, body: dict, text: str) -> tuple[str, str]:
        fault, switch = self.server.fault, body.get("chat_template_kwargs")
        if not switch:
            return text, ""
        if not switch["thinking"] and fault != "thinks-when-off":
            return text, ""
        if fault == "reasoning-mixed":
            return f"Let me think. {text}", ""
        if fault == "leaks-think":
            return f"</think>{text}", "Let me think."
        return text, "Let me think."

    def stopped(self, body: dict, text: str, reasoning: str) -> tuple[str, str, str, list]:
        for stop in body.get("stop") or []:
            if stop in text and self.server.fault != "stop-ignored":
                at = text.find(stop) + (-4 if self.server.fault == "stops-early" else 0)
                return text[:at], reasoning, "stop", []
        return text, reasoning, "stop", []

    def tool(self) -> tuple[str, str, str, list]:
        fault = self.server.fault
        if fault == "tool-as-text":
            return "<tool_call>get_weather Paris", "", "stop", []
        arguments = '{"city": ' if fault == "tool-bad-json" else '{"city": "Paris"}'
        name = "get_stocks" if fault == "tool-unknown" else "get_weather"
        return (
            "",
            "",
            "tool_calls",
            [{"type": "function", "function": {"name": name, "arguments": arguments}}],
        )

    def counts(self, tokens: int, body: dict) -> dict | None:
        fault, steps = self.server.fault, max(1, -(-(tokens - 1) // 6))
        if body.get("speculation") is False or fault in {
            "no-counts",
            "native-counts-only",
            "not-speculating",
        }:
            return None
        if fault == "accept-one":
            steps = max(1, tokens - 1)
        if fault == "batch-kills-acceptance" and self.again:
            steps = max(1, 4 * (tokens - 1) // 5)
        if fault == "accept-impossible":
            steps = max(1, tokens // 20)
        return {"spec_verify_ct": steps, "spec_num_correct_drafts": tokens - 1 - steps}

    def usage(self, tokens: int) -> dict:
        fault = self.server.fault
        if fault == "no-usage":
            return {}
        total = 20 + tokens + (1 if fault == "wrong-total" else 0)
        return {"usage": {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": total}}

    def logprobs(self, body: dict, tokens: list[str]) -> dict:
        if not body.get("logprobs"):
            return {}
        second = {"near-tie": " solution"}.get(self.server.fault, " other")
        gap = 0.1 if self.server.fault == "near-tie" else 3.0
        content = [
            {
                "token": t,
                "logprob": -0.1,
                "top_logprobs": [{"token": t, "logprob": -0.1}, {"token": second, "logprob": -0.1 - gap}],
            }
            for t in tokens
        ]
        return {"logprobs": {"content": content}}

    def whole(self, body: dict, tokens: list[str], reasoning: str, finish: str, calls: list) -> dict:
        message = {"role": "assistant", "content": "".join(tokens), "reasoning_content": reasoning or None}
        message["tool_calls"] = calls or None
        choice = {"index": 0, "message": message, "finish_reason": finish, **self.logprobs(body, tokens)}
        reply = {"object": "chat.completion", "model": MODEL, "choices": [choice], **self.usage(len(tokens))}
        counts = self.counts(len(tokens), body)
        if counts and body.get("return_meta_info"):
            hit = self.again and self.server.fault not in {"never-hits", "repeat-corrupts"}
            choice["meta_info"] = {**counts, "cached_tokens": 19 if hit else 0}
        return reply

    def stream(self, body: dict, tokens: list[str], reasoning: str, finish: str) -> None:
        fault = self.server.fault
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        groups = [tokens[i : i + 4] for i in range(0, len(tokens), 4)]
        if fault == "stream-drops":
            groups = groups[:1] + groups[2:]
        if fault == "one-event":
            groups = [tokens]
        for index, group in enumerate(groups):
            if fault == "stream-error" and index == 1:
                self.event({"error": {"message": "out of memory"}})
                return
            last = index == len(groups) - 1
            choice = {"delta": {"content": "".join(group)}, "finish_reason": finish if last else None}
            self.event({"choices": [choice], **(self.usage(len(tokens)) if fault == "one-event" else {})})
            if body.get("ignore_eos"):
                time.sleep(0.01)
        if fault != "one-event":
            self.event({"choices": [], **self.usage(len(tokens))})
        if fault != "no-done":
            self.wfile.write(b"data: [DONE]\n\n")

    def event(self, value: dict) -> None:
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()
