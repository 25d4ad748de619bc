"""A server that looks like SGLang to a supervisor, with a switch for each way to fail; standard library only."""

import argparse
import ctypes
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
LIBC = ctypes.CDLL(None, use_errno=True)
STEPS = ("resolve", "load_target", "load_draft", "allocate", "capture")


def options():
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--host", default="127.0.0.1")
    add("--port", type=int, required=True)
    add("--served-model-name", default="tiny")
    add("--config")
    add("--mark", help="something to find these processes by")
    add("--workers", type=int, default=2)
    add("--step-s", type=float, default=0.02, help="how long each step of the start takes")
    add("--die-at", choices=(*STEPS, "ready"), help="end in that step")
    add("--die-text", action="append", default=[])
    add("--die-code", type=int, default=1, help="negative: kill itself with that signal")
    add("--die-unless", help="a file: die only while it does not exist, and make it")
    add("--stuck-at", choices=STEPS, help="never leave that step")
    add("--stuck-line", help="what to repeat meanwhile")
    add("--slow-lines", type=int, default=0, help="that many further lines while loading, one a step")
    add("--unready", action="store_true", help="/ready and /health say 503 although all works")
    add("--health-hangs", action="store_true", help="/ready and /health never answer once it is ready")
    add("--mute-after", type=int, default=-1, help="after so many completions none ends any more")
    add("--no-speculation", action="store_true")
    add("--no-metrics", action="store_true")
    add("--busy", action="store_true", help="metrics show a request in work")
    add("--moving", action="store_true", help="metrics show tokens coming")
    add("--ignore-term", action="store_true")
    add("--ignore-abort", action="store_true")
    add("--term-code", type=int, default=0)
    add("--zombie", action="store_true", help="stay when a worker dies")
    add("--unarmed", action="store_true", help="workers outlive their parent")
    add("--escape", action="store_true", help="one worker leaves for a session of its own")
    add("--early-workers", action="store_true", help="workers exist from the first moment")
    add("--flood-mib", type=int, default=0)
    add("--long-line-mib", type=int, default=0)
    add("--chatter-s", type=float, default=0, help="a line every so often once it is ready")
    add("--tell-key", action="store_true")
    add("--grow-bytes", type=int, default=0)
    return parser.parse_args()


def say(text):
    sys.stderr.write(f"{time.strftime('[%Y-%m-%d %H:%M:%S]')} {text}\n")
    sys.stderr.flush()


def die(args):
    if args.die_unless:
        if os.path.exists(args.die_unless):
            return
        open(args.die_unless, "w").close()
    for text in args.die_text:
        say(text)
    if args.die_code < 0:
        os.kill(os.getpid(), -args.die_code)
        signal.pause()
    os._exit(args.die_code)


def start_workers(args):
    pids = []
    for number in range(args.workers):
        parent = os.getpid()
        pid = os.fork()
        if pid:
            pids.append(pid)
            continue
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        LIBC.prctl(PR_SET_NAME, f"sched_TP{number}".encode(), 0, 0, 0)
        if not args.unarmed:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)
        if args.escape and number == 0:
            LIBC.prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
            os.setsid()
        if args.grow_bytes:
            block = bytearray(args.grow_bytes)
            block[::4096] = b"x" * len(block[::4096])
        while True:
            signal.pause()
    return pids


def load(args):
    lines = {
        "resolve": [
            "server_args=ServerArgs(model_path='/models/tiny', port=1)",
            "Init torch distributed begin.",
        ],
        "load_target": [
            "Load weight begin. avail mem=139.13 GB",
            "Load weight end. elapsed=0.09 s, type=Qwen3ForCausalLM, avail mem=139.12 GB, mem usage=0.01 GB.",
        ],
        "load_draft": [
            "Load weight begin. avail mem=139.10 GB",
            "Load weight end. elapsed=0.01 s, type=DFlashDraftModel, avail mem=139.10 GB, mem usage=0.00 GB.",
            "Initialized DFLASH draft runner. attention_backend=triton, model=DFlashDraftModel, block_size=8, draft_window_size=None, compact_cache=False",
        ],
        "allocate": ["Memory pool end. avail mem=129.84 GB"],
        "capture": [
            "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=8, bs=[1, 2]",
            "Capture target verify CUDA graph end. elapsed=0.86 s, mem usage=0.20 GB, avail mem=124.71 GB.",
        ],
    }
    for step in STEPS:
        first, *rest = lines[step]
        say(first)
        if args.stuck_at == step:
            while True:
                time.sleep(args.step_s)
                if args.stuck_line:
                    say(args.stuck_line)
        for number in range(args.slow_lines if step == "load_target" else 0):
            say(f"still loading, part {number}")
            time.sleep(args.step_s)
        if step == "load_target":
            sys.stderr.write("\rMulti-thread loading shards:   0% Completed | 0/2 [00:00<?, ?it/s]")
            sys.stderr.write(
                "\rMulti-thread loading shards: 100% Completed | 2/2 [00:00<00:00, 220.66it/s]\n"
            )
            sys.stderr.flush()
        time.sleep(args.step_s)
        if args.die_at == step:
            die(args)
        for line in rest:
            say(line)


class Server:
    def __init__(self, args, key):
        self.args = args
        self.key = key
        self.ready = False
        self.running = 0
        self.tokens = 0
        self.completions = 0
        self.probes = 0
        self.most_probes = 0
        self.aborted = threading.Event()
        self.lock = threading.Lock()

    def generate(self, tokens):
        with self.lock:
            self.running += 1
            number, self.completions = self.completions, self.completions + 1
        try:
            if 0 <= self.args.mute_after <= number:
                threading.Event().wait()
            if tokens >= 10**6:
                self.aborted.wait()
        finally:
            with self.lock:
                self.running -= 1
        self.tokens += tokens
        meta = {"completion_tokens": tokens, "finish_reason": {"type": "length"}}
        if not self.args.no_speculation:
            meta["spec_verify_ct"] = max(1, tokens // 7)
            meta["spec_accept_length"] = tokens / meta["spec_verify_ct"]
        return {"text": "x" * tokens, "meta_info": meta}

    def metrics(self):
        if self.args.moving:
            self.tokens += 1
        running = max(self.running, int(self.args.busy))
        return "".join(
            f'sglang:{name}{{model_name="tiny",tp_rank="0"}} {value}\n'
            for name, value in (
                ("num_running_reqs", running),
                ("num_queue_reqs", 0),
                ("gen_throughput", 12.5),
                ("spec_accept_length", 5.25),
                ("token_usage", 0.25),
                ("generation_tokens_total", self.tokens),
            )
        )


def handler(server):  # noqa: C901 - one page after the other
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path in ("/ready", "/health"):
                self.health()
            elif self.path == "/v1/models":
                self.reply(200, {"data": [{"id": server.args.served_model_name}]})
            elif self.path == "/metrics" and not server.args.no_metrics:
                self.reply(200, server.metrics())
            elif self.path == "/fake":
                self.reply(200, {"most_probes": server.most_probes, "completions": server.completions})
            else:
                self.reply(404, {})

        def health(self):
            with server.lock:
                server.probes += 1
                server.most_probes = max(server.most_probes, server.probes)
            if server.args.health_hangs:
                threading.Event().wait()
            self.reply(200 if server.ready and not server.args.unready else 503, {})
            with server.lock:
                server.probes -= 1

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if server.key and self.headers.get("Authorization") != f"Bearer {server.key}":
                self.reply(401, {})
            elif self.path == "/generate":
                self.reply(200, server.generate(body["sampling_params"]["max_new_tokens"]))
            elif self.path == "/abort_request":
                if not server.args.ignore_abort:
                    server.aborted.set()
                self.reply(200, {})
            else:
                self.reply(404, {})

        def reply(self, status, body):
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args):
            pass

        def handle_error(self, *_args):
            pass

    return Handler


class Front(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # all that a proof sends at once
    allow_reuse_address = True

    def handle_error(self, *_args):
        pass


def on_term(server):
    def drain(_number, _frame):
        say("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")

        def end():
            while server.running:
                time.sleep(0.02)
            say("Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].")
            os._exit(server.args.term_code)

        threading.Thread(target=end).start()

    return drain


def watch_workers(args, pids):
    ended, status = os.wait()
    if args.zombie:
        return
    number = pids.index(ended) if ended in pids else 0
    code = os.waitstatus_to_exitcode(status)
    say(
        f"Subprocess scheduler_{number} (pid={ended}) crashed with exit code {code}. Triggering SIGQUIT for cleanup..."
    )
    say("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    os.kill(os.getpid(), signal.SIGKILL)


def flood(args):
    if args.long_line_mib:
        sys.stderr.write("y" * (args.long_line_mib * 1024 * 1024) + "\n")
    block = "".join(f"flood line {number} {'z' * 80}\n" for number in range(1000))
    for _ in range(args.flood_mib * 1024 * 1024 // len(block)):
        sys.stderr.write(block)
    if args.flood_mib:
        say("flood over")


def main():
    args = options()
    key = json.loads(Path(args.config).read_text())["api-key"] if args.config else None
    if args.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pids = start_workers(args) if args.early_workers else []
    load(args)
    pids = pids or start_workers(args)
    server = Server(args, key)
    try:
        front = Front((args.host, args.port), handler(server))
    except OSError as error:
        say(
            f"ERROR:    [Errno {error.errno}] error while attempting to bind on address ('{args.host}', {args.port}): address already in use"
        )
        os._exit(1)
    if not args.ignore_term:
        signal.signal(signal.SIGTERM, on_term(server))
    threading.Thread(target=front.serve_forever, args=(0.02,), daemon=True).start()
    if pids:
        threading.Thread(target=watch_workers, args=(args, pids), daemon=True).start()
    if args.tell_key:
        say(
            f"server_args=ServerArgs(api_key='{key}', admin_api_key='{key}') token {os.environ.get('HF_TOKEN')}"
        )
        print(f"bare {key}", flush=True)
    server.ready = True
    say("The server is fired up and ready to roll!")
    flood(args)
    if args.die_at == "ready":
        while not server.completions:
            time.sleep(0.01)
        time.sleep(args.step_s)
        die(args)
    while True:
        time.sleep(args.chatter_s or 3600)
        say(
            "Decode batch, #running-req: 1, #token: 80, token usage: 0.00, accept len: 7.03, gen throughput (token/s): 1459.28, #queue-req: 0"
        ) if args.chatter_s else None


if __name__ == "__main__":
    main()
