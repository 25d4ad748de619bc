#!/bin/bash
# Doctor on a GPU machine: its tests against nvidia-smi, then its reports as printed, into the folder $OUT.
#
#   OUT=/tmp/out tests/gpu/doctor.sh                 idle
#   OUT=/tmp/out tests/gpu/doctor.sh --server        also with a server of the tiny pair running
#
# PYTHONPATH may carry SGLang and its packages; SERVER_ARGS adds arguments to the server (such as --tp-size 2).
set -u
cd "$(dirname "$0")/../.." || exit 1
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
PYTHON=${PYTHON:-python3}
OUT=${OUT:-doctor-out}
PORT=39000
mkdir -p "$OUT"

doctor() { "$PYTHON" -m dflashctl doctor "$@"; }

look() {
    local name=$1
    shift
    "$PYTHON" -m pytest -c /dev/null --rootdir . -p no:cacheprovider -q -s \
        -W ignore::pytest.PytestUnknownMarkWarning -m gpu tests/gpu/test_doctor_gpu.py "$@" \
        >"$OUT/$name-tests.txt" 2>&1
    echo "$name: tests exit $?"
    tail -5 "$OUT/$name-tests.txt"
    doctor >"$OUT/$name-alone.txt" 2>&1
    doctor --verbose >"$OUT/$name-verbose.txt" 2>&1
    doctor tiny-gpu --port 39517 >"$OUT/$name-tiny-gpu.txt" 2>&1
    doctor qwen3-8b-h100 --port 39517 >"$OUT/$name-qwen3.txt" 2>&1
    doctor tiny-gpu --port 39517 --json >"$OUT/$name-tiny-gpu.json" 2>"$OUT/$name-json-err.txt"
    doctor --save-machine "$OUT/$name-machine.yaml" >/dev/null 2>&1
    nvidia-smi -q >"$OUT/$name-smi-q.txt"
    nvidia-smi topo -m >"$OUT/$name-topo.txt"
    nvidia-smi nvlink -s >"$OUT/$name-nvlink.txt"
}

look idle
{ time doctor tiny-gpu --port 39517 --deep; } >"$OUT/idle-deep.txt" 2>&1
[ "${1:-}" = --server ] || exit 0

TINY=$PWD/dflashctl/reference/tiny
"$PYTHON" -m sglang.launch_server --model-path "$TINY/target" --speculative-algorithm DFLASH \
    --speculative-draft-model-path "$TINY/draft" --speculative-dflash-block-size 8 \
    --attention-backend triton --speculative-draft-attention-backend triton --sampling-backend pytorch \
    --grammar-backend none --mem-fraction-static 0.1 --host 127.0.0.1 --port $PORT ${SERVER_ARGS:-} \
    >"$OUT/server.log" 2>&1 &
SERVER=$!
for _ in $(seq 300); do
    curl -sf -m 25 "http://127.0.0.1:$PORT/health" >/dev/null && break
    kill -0 $SERVER 2>/dev/null || break
    sleep 1
done
# The tests that try every GPU for real are for the idle machine.
DFLASHCTL_TEST_URL=http://127.0.0.1:$PORT look busy -k "not deep"
timeout 5 "$PYTHON" -m dflashctl doctor --watch >"$OUT/busy-watch.txt" 2>&1
grep -E "max_total_num_tokens=|KV Cache is allocated" "$OUT/server.log" >"$OUT/server-pools.txt"
kill -TERM $SERVER
wait $SERVER
