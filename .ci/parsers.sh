#!/usr/bin/env bash
# Makes what the parser tests need, and prints its folder: an environment in which every known SGLang release's
# command-line parser imports without a GPU, and the releases' sources.
#   DFLASHCTL_TEST_PARSERS=$(bash .ci/parsers.sh) pytest -m real_parsers
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
folder=${DFLASHCTL_PARSERS_FOLDER:-${TMPDIR:-/tmp}/dflashctl-parsers}
needs=tests/engines/parsers-requirements.txt
data=dflashctl/engines/sglang/data/releases.json
stamp=$(cat "$needs" "$data" .ci/parsers.sh | sha256sum)

if [ "$(cat "$folder/stamp" 2>/dev/null || true)" != "$stamp" ]; then
  rm -rf "$folder"
  mkdir -p "$folder/wheels" "$folder/src"
  "$python" -m venv "$folder/env"
  "$folder/env/bin/pip" install --quiet -r "$needs" >&2
  releases=$("$python" -c 'import json, sys; print(*json.load(open(sys.argv[1])))' "$data")
  newest=$(printf '%s\n' $releases | sort -V | tail -n 1)
  for release in $releases; do
    "$folder/env/bin/pip" download --quiet --no-deps --dest "$folder/wheels" "sglang==$release" >&2
    "$python" - "$folder" "$release" "$newest" <<'PY'
import pathlib, sys, zipfile

folder, release = pathlib.Path(sys.argv[1]), sys.argv[2]
wheel = next((folder / "wheels").glob(f"sglang-{release}-*.whl"))
with zipfile.ZipFile(wheel) as packed:
    whole = release == sys.argv[3]  # argument resolution looks for kernel sources, too
    wanted = [n for n in packed.namelist() if whole or n.endswith((".py", ".json")) or ".dist-info/" in n]
    packed.extractall(folder / "src" / release, wanted)
wheel.unlink()
PY
  done
  printf '%s\n' "$stamp" > "$folder/stamp"
fi
printf '%s\n' "$folder"
