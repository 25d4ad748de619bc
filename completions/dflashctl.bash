# bash completion for dflashctl; made by `python -m dflashctl.cli.stored`.
_dflashctl() {
  local cur prev command words kind value=""
  cur="${COMP_WORDS[COMP_CWORD]}"
  prev="${COMP_WORDS[COMP_CWORD-1]}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "up down status logs diagnose doctor fetch smoke bench profile completion --version --help" -- "$cur")
    return
  fi
  command="${COMP_WORDS[1]}"
  case "$command" in
    bench | profile) if [ "$COMP_CWORD" -gt 2 ]; then command="$command ${COMP_WORDS[2]}"; fi ;;
  esac
  words="" kind=""
  case "$command" in
    "up") words="--profile -p --detach -d --show-log --set --block-size --window-size --gpus --host --port --engine-version --python --name --runtime --image --offline --dry-run --machine --skip-doctor --skip-fetch --json --help"; kind="profiles" ;;
    "down") words="--json --help"; kind="instances" ;;
    "status") words="--watch -w --json --help"; kind="instances" ;;
    "logs") words="--follow -f --lines -n --phase --json --help"; kind="instances" ;;
    "diagnose") words="--json --help"; kind="instances" ;;
    "doctor") words="--profile -p --deep --save-machine --watch -w --verbose -v --set --block-size --window-size --gpus --host --port --engine-version --python --name --runtime --image --offline --dry-run --machine --skip-doctor --skip-fetch --json --help"; kind="profiles" ;;
    "fetch") words="--profile -p --plan --verify --repair --offline --files --accept-code --token-fd --send-token-to --set --json --help"; kind="profiles" ;;
    "smoke") words="--url --quick --only --against-no-spec --against --reference --save-reference --profile -p --near-tie --timeout --api-key-env --json --help"; kind="instances" ;;
    "bench") words="compare report --url --profile -p --workload -w --prompts --count --max-tokens --sampling --temperature --top-p --thinking --no-thinking --ignore-eos --input-tokens --prefix-tokens --groups --seed --api --tokenizer --offline --concurrency -c --rate --warm-up --flush-cache --keep-cache --processes --timeout --max-duration --sweep --baseline --no-baseline --speculation --no-speculation --min-accept-length --against --max-regression --expect --no-expect --expect-tolerance --slo-ttft-ms --slo-tpot-ms --slo-e2e-ms --allow-slow-client --output -o --records --csv --jsonl --api-key-env --json --help"; kind="instances" ;;
    "bench compare") words="--allow-unlike --max-regression --json --help"; kind="" ;;
    "bench report") words="--output -o --png --title --json --help"; kind="" ;;
    "profile") words="list show validate explain diff new schema --help"; kind="" ;;
    "profile list") words="--json --help"; kind="" ;;
    "profile show") words="--json --help"; kind="profiles" ;;
    "profile validate") words="--json --help"; kind="profiles" ;;
    "profile explain") words="--profile -p --all-versions --set --block-size --window-size --gpus --host --port --engine-version --python --name --runtime --image --offline --dry-run --machine --skip-doctor --skip-fetch --json --help"; kind="profiles" ;;
    "profile diff") words="--running --name --url --api-key-env --json --help"; kind="profiles" ;;
    "profile new") words="--from-command --engine-version --offline --output -o --json --help"; kind="" ;;
    "profile schema") words="--json --help"; kind="" ;;
    "completion") words="--install --json --help"; kind="" ;;
  esac
  case "$prev" in
    --against) kind="files"; value=1 ;;
    --api) kind=""; value=1 ;;
    --api-key-env) kind=""; value=1 ;;
    --block-size) kind=""; value=1 ;;
    --concurrency) kind=""; value=1 ;;
    --count) kind=""; value=1 ;;
    --csv) kind="files"; value=1 ;;
    --engine-version) kind=""; value=1 ;;
    --expect-tolerance) kind=""; value=1 ;;
    --from-command) kind="files"; value=1 ;;
    --gpus) kind=""; value=1 ;;
    --groups) kind=""; value=1 ;;
    --host) kind=""; value=1 ;;
    --image) kind=""; value=1 ;;
    --input-tokens) kind=""; value=1 ;;
    --jsonl) kind="files"; value=1 ;;
    --lines) kind=""; value=1 ;;
    --machine) kind="files"; value=1 ;;
    --max-duration) kind=""; value=1 ;;
    --max-regression) kind=""; value=1 ;;
    --max-tokens) kind=""; value=1 ;;
    --min-accept-length) kind=""; value=1 ;;
    --name) kind="instances"; value=1 ;;
    --near-tie) kind=""; value=1 ;;
    --only) kind=""; value=1 ;;
    --output) kind="files"; value=1 ;;
    --phase) kind=""; value=1 ;;
    --png) kind="files"; value=1 ;;
    --port) kind=""; value=1 ;;
    --prefix-tokens) kind=""; value=1 ;;
    --processes) kind=""; value=1 ;;
    --profile) kind="profiles"; value=1 ;;
    --prompts) kind="files"; value=1 ;;
    --python) kind="files"; value=1 ;;
    --rate) kind=""; value=1 ;;
    --reference) kind="files"; value=1 ;;
    --runtime) kind=""; value=1 ;;
    --sampling) kind=""; value=1 ;;
    --save-machine) kind="files"; value=1 ;;
    --save-reference) kind="files"; value=1 ;;
    --seed) kind=""; value=1 ;;
    --send-token-to) kind=""; value=1 ;;
    --set) kind=""; value=1 ;;
    --slo-e2e-ms) kind=""; value=1 ;;
    --slo-tpot-ms) kind=""; value=1 ;;
    --slo-ttft-ms) kind=""; value=1 ;;
    --sweep) kind=""; value=1 ;;
    --temperature) kind=""; value=1 ;;
    --timeout) kind=""; value=1 ;;
    --title) kind=""; value=1 ;;
    --token-fd) kind=""; value=1 ;;
    --tokenizer) kind="files"; value=1 ;;
    --top-p) kind=""; value=1 ;;
    --url) kind=""; value=1 ;;
    --warm-up) kind=""; value=1 ;;
    --window-size) kind=""; value=1 ;;
    --workload) kind=""; value=1 ;;
    -c) kind=""; value=1 ;;
    -n) kind=""; value=1 ;;
    -o) kind="files"; value=1 ;;
    -p) kind="profiles"; value=1 ;;
    -w) kind=""; value=1 ;;
  esac
  if [ -n "$value" ] || [[ "$cur" != -* && -n "$kind" ]]; then
    case "$kind" in
      profiles | instances) mapfile -t COMPREPLY < <(compgen -W "$(dflashctl __complete "$kind" 2>/dev/null) ${value:+}" -- "$cur") ;;
      files) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    esac
    [ -n "$value" ] && return
  fi
  if [[ "$cur" == -* || -z "${COMPREPLY[*]}" ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  fi
}
complete -F _dflashctl dflashctl
