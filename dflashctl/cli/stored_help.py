"""The help of every command as text; made by `python -m dflashctl.cli.stored`, kept equal by a test."""

HELP = {
    "": """\
Usage: dflashctl COMMAND [OPTIONS]

Serve a target model with its DFlash drafter: fetch, check, plan, start, supervise, prove, measure.

Commands:
  up          Fetch, check, plan, start and prove a server; stay in front and supervise it.
  down        Stop a server; done only when its processes are gone, its port is free and its GPU memory is back.
  status      Show what runs: phase, since when, restarts, plan drift, live figures.
  logs        Print a server's log.
  diagnose    Explain a log: the first cause, the lines that show it, and the fix.
  doctor      Check this machine, and whether it can carry a profile.
  fetch       Fetch target and draft at their pinned commits, planned and verified.
  smoke       Prove that a live server works, that it really speculates, and that its text is the target's own.
  bench       Measure accept length, latency and throughput, beside the published figures.
  profile     Profiles: what can be served, and how.
  completion  Print or install the completion of your shell.

Options:
  --version   Print the version and exit.
  -h, --help  Show this text; `dflashctl COMMAND --help` shows a command with an example.

Start here:  dflashctl up tiny-cpu     a real DFlash server on this computer, no GPU needed
             dflashctl profile list    what else can be served
""",
    "up": """\
Usage: dflashctl up [OPTIONS] [PROFILE]

Fetch, check, plan, start and prove a server; stay in front and supervise it.

Words after `--` go to the engine as they are; they win, and are still checked.

Examples:
  dflashctl up tiny-cpu
  dflashctl up kimi-k3-b300 --block-size 16 --dry-run

Argument:
  [PROFILE]  A profile's name, or the path of its file.

Options:
  -p, --profile PROFILE  The same as the argument PROFILE.
  -d, --detach           Return once ready; the supervisor stays.
  --show-log             Show the server's own log as well, as PID 1 of a container does.
  --json                 Print one JSON object on standard output.
  -h, --help             Show this text.

Plan:
  --set SECTION.KEY=VALUE   Change a value of the profile; repeatable.
  --block-size N            Tokens per verify step: the newest one and N-1 proposals.
  --window-size N           Attention window of the draft, in tokens.
  --gpus LIST               GPUs by index or UUID, with commas.
  --host ADDRESS            Address to listen on.
  --port PORT               Port to listen on.
  --engine-version V        Judge for that release without having it.
  --python PATH             The interpreter that has the engine (also DFLASHCTL_ENGINE_PYTHON).
  --name NAME               Name of the instance; default: the profile's.
  --runtime process|docker  Run the engine here or in a container.
  --image IMAGE             The container image of the engine.
  --offline                 Use only what is here already.
  --dry-run                 Print the complete plan; `up` then does exactly that.
  --machine FILE            Plan for a saved machine (doctor --save-machine).
  --skip-doctor             Start without the check of this machine.
  --skip-fetch              Start without looking at the weights.
""",
    "down": """\
Usage: dflashctl down [OPTIONS] [NAME]

Stop a server; done only when its processes are gone, its port is free and its GPU memory is back.

Examples:
  dflashctl down tiny-cpu

Argument:
  [NAME]  The instance; may be left out when there is one.

Options:
  --json      Print one JSON object on standard output.
  -h, --help  Show this text.
""",
    "status": """\
Usage: dflashctl status [OPTIONS] [NAME]

Show what runs: phase, since when, restarts, plan drift, live figures.

Examples:
  dflashctl status --watch

Argument:
  [NAME]  The instance; may be left out when there is one.

Options:
  -w, --watch  A live view, until Ctrl-C.
  --json       Print one JSON object on standard output.
  -h, --help   Show this text.
""",
    "logs": """\
Usage: dflashctl logs [OPTIONS] [NAME]

Print a server's log.

Examples:
  dflashctl logs tiny-cpu -f

Argument:
  [NAME]  The instance; may be left out when there is one.

Options:
  -f, --follow   Go on printing new lines.
  -n, --lines N  So many of the last lines.
  --phase PHASE  Only the lines of that phase.
  --json         Print one JSON object on standard output.
  -h, --help     Show this text.
""",
    "diagnose": """\
Usage: dflashctl diagnose [OPTIONS] [NAME|FILE|-]

Explain a log: the first cause, the lines that show it, and the fix.

Examples:
  dflashctl diagnose server.log

Argument:
  [NAME|FILE|-]  An instance, a log file, or - for standard input.

Options:
  --json      Print one JSON object on standard output.
  -h, --help  Show this text.
""",
    "doctor": """\
Usage: dflashctl doctor [OPTIONS] [PROFILE]

Check this machine, and whether it can carry a profile.

Examples:
  dflashctl doctor --profile kimi-k3-b300
  dflashctl doctor --machine saved.yaml --profile kimi-k2.5-b200

Argument:
  [PROFILE]  A profile's name, or the path of its file.

Options:
  -p, --profile PROFILE  The same as the argument PROFILE.
  --deep                 Also what costs seconds: CUDA, copies, disk speed.
  --save-machine FILE    Save this machine, without serial numbers.
  -w, --watch            Clocks, power, throttling and memory, until Ctrl-C.
  -v, --verbose          Show what passed as well.
  --json                 Print one JSON object on standard output.
  -h, --help             Show this text.

Plan:
  --set SECTION.KEY=VALUE   Change a value of the profile; repeatable.
  --block-size N            Tokens per verify step: the newest one and N-1 proposals.
  --window-size N           Attention window of the draft, in tokens.
  --gpus LIST               GPUs by index or UUID, with commas.
  --host ADDRESS            Address to listen on.
  --port PORT               Port to listen on.
  --engine-version V        Judge for that release without having it.
  --python PATH             The interpreter that has the engine (also DFLASHCTL_ENGINE_PYTHON).
  --name NAME               Name of the instance; default: the profile's.
  --runtime process|docker  Run the engine here or in a container.
  --image IMAGE             The container image of the engine.
  --offline                 Use only what is here already.
  --dry-run                 As for `up`; nothing is started here, so it changes nothing.
  --machine FILE            Plan for a saved machine (doctor --save-machine).
  --skip-doctor             As for `up`; nothing is started here, so it changes nothing.
  --skip-fetch              As for `up`; nothing is started here, so it changes nothing.
""",
    "fetch": """\
Usage: dflashctl fetch [OPTIONS] [PROFILE]

Fetch target and draft at their pinned commits, planned and verified.

Examples:
  dflashctl fetch kimi-k2.5-b200 --plan

Argument:
  [PROFILE]  A profile's name, or the path of its file.

Options:
  -p, --profile PROFILE  The same as the argument PROFILE.
  --plan                 Show what would be fetched, and fetch nothing.
  --verify               Read every byte and compare it with the lock.
  --repair               Set bad files aside and fetch only those.
  --files                Show each file on its own.
  --accept-code          Agree to Python files of a model that changed since the lock.
  --token-fd FD          Read the hub token from this open descriptor.
  --send-token-to HOST   Also send the token to this HF_ENDPOINT.
  --json                 Print one JSON object on standard output.
  -h, --help             Show this text.

Plan:
  --offline                Use only what is here already.
  --set SECTION.KEY=VALUE  Change a value of the profile; repeatable.
""",
    "smoke": """\
Usage: dflashctl smoke [OPTIONS] [NAME]

Prove that a live server works, that it really speculates, and that its text is the target's own.

Examples:
  dflashctl smoke tiny-cpu
  dflashctl smoke --url http://127.0.0.1:30000 --only lossless

Argument:
  [NAME]  The instance; may be left out when there is one.

Options:
  --url URL              Any server, instead of an instance.
  --quick                Only the proofs that `up` makes.
  --only PROOF           Only that proof; repeatable.
  --against-no-spec      Start a second server without speculation as reference.
  --against URL          A server without speculation as reference.
  --reference FILE       A saved run as reference.
  --save-reference FILE  Save this server's texts as a reference.
  -p, --profile PROFILE  The profile whose model must be served, and what --against-no-spec starts.
  --near-tie NATS        Log-probability margin below which a difference is noise.
  --timeout SECONDS      Limit of one request.
  --api-key-env VAR      The variable that holds the server's key (DFLASHCTL_API_KEY).
  --json                 Print one JSON object on standard output.
  -h, --help             Show this text.
""",
    "bench": """\
Usage: dflashctl bench [OPTIONS] [NAME] [KEY=A,B...]

Measure accept length, latency and throughput, beside the published figures.

Examples:
  dflashctl bench tiny-cpu
  dflashctl bench --profile tiny-cpu --sweep block_size=8,16 concurrency=1,8,32

Commands:
  compare  Compare two results, with intervals; unlike settings are refused or marked.
  report   Make one self-contained HTML page with charts of results.

Arguments:
  [NAME]        The instance; may be left out when there is one.
  [KEY=A,B...]  Further axes of --sweep.

Options:
  --url URL              Any server, instead of an instance.
  -p, --profile PROFILE  The same as the argument PROFILE.
  --api-key-env VAR      The variable that holds the server's key (DFLASHCTL_API_KEY).
  --json                 Print one JSON object on standard output.
  -h, --help             Show this text.

Workload:
  -w, --workload SET            gsm8k, math500, humaneval, humaneval-long, mbpp, mt-bench,
                                longbench-v2, tiny-math, random, shared-prefix; repeatable.
  --prompts FILE                Your own prompts: JSONL of OpenAI messages.
  --count N                     So many prompts of each set.
  --max-tokens N                Output tokens of a request.
  --sampling greedy|recommended
                                Default: as the published figures were made.
  --temperature T               Sampling temperature.
  --top-p P                     Nucleus of the sampling.
  --thinking, --no-thinking     Reasoning on or off.
  --ignore-eos                  Generate on past the end of text.
  --input-tokens N              Length of random prompts.
  --prefix-tokens N             Length of shared prefixes.
  --groups N                    Number of shared prefixes.
  --seed N                      Seed of prompts and arrivals.
  --api chat|generate           Who applies the chat template: the server or we.
  --tokenizer DIR               The target's folder, for --api generate.

Plan:
  --offline  Use only what is here already.

Load:
  -c, --concurrency LIST        Requests in flight: 1,8,32; repeatable.
  --rate LIST                   Requests per second (Poisson): 2,8; repeatable.
  --warm-up N                   Requests before the clock starts.
  --flush-cache, --keep-cache   Empty the prefix cache before each run.
  --processes N                 Processes of the load generator; default: one for each 1024 requests
                                in flight.
  --timeout SECONDS             Limit of one request.
  --max-duration SECONDS        Limit of one run.
  --sweep KEY=A,B               block_size=8,16, concurrency=1,8, or a profile path; repeatable.
  --baseline, --no-baseline     In a sweep, also run without speculation.
  --speculation, --no-speculation
                                Only with, or only without.

Judgement:
  --min-accept-length X     Exit 1 below it.
  --against FILE            An earlier result to compare with.
  --max-regression SHARE    Exit 1 when worse than --against by more: 0.05.
  --expect, --no-expect     Exit 1 below the profile's published figures.
  --expect-tolerance SHARE  What may be missing.
  --slo-ttft-ms MS          Goodput counts requests within it.
  --slo-tpot-ms MS          Goodput counts requests within it.
  --slo-e2e-ms MS           Goodput counts requests within it.
  --allow-slow-client       Give figures that the client may have spoilt.

Files:
  -o, --output FILE  The result file; runs are appended.
  --records          Keep every request in the result file.
  --csv FILE         The table as CSV.
  --jsonl FILE       The runs as bench_serving writes them.
""",
    "bench compare": """\
Usage: dflashctl bench compare [OPTIONS] A B

Compare two results, with intervals; unlike settings are refused or marked.

Examples:
  dflashctl bench compare before.json after.json

Arguments:
  A  A result file.
  B  Another one.

Options:
  --allow-unlike          Compare runs of unlike settings all the same.
  --max-regression SHARE  Exit 1 when B is worse by more: 0.05.
  --json                  Print one JSON object on standard output.
  -h, --help              Show this text.
""",
    "bench report": """\
Usage: dflashctl bench report [OPTIONS] RUN...

Make one self-contained HTML page with charts of results.

Examples:
  dflashctl bench report run.json -o report.html

Argument:
  RUN...  Result files.

Options:
  -o, --output FILE  Default: dflashctl-report.html.
  --png FILE         The charts as a picture, too.
  --title TEXT       The heading.
  --json             Print one JSON object on standard output.
  -h, --help         Show this text.
""",
    "profile": """\
Usage: dflashctl profile COMMAND [OPTIONS]

Profiles: what can be served, and how.

Commands:
  list      List the profiles.
  show      Print a profile; `reference` is the commented schema.
  validate  Check that profiles are valid; every problem is told with file and line.
  explain   Say for each engine argument where it comes from, and what was translated, added or
            dropped.
  diff      Show in which fields two profiles differ, or a profile and the server that runs.
  new       Make a profile of a published launch command; nothing of it is executed.
  schema    Print the JSON Schema of a profile, for editors.

`dflashctl profile COMMAND --help` shows a command with an example.
""",
    "profile list": """\
Usage: dflashctl profile list [OPTIONS]

List the profiles.

Examples:
  dflashctl profile list

Options:
  --json      Print one JSON object on standard output.
  -h, --help  Show this text.
""",
    "profile show": """\
Usage: dflashctl profile show [OPTIONS] PROFILE

Print a profile; `reference` is the commented schema.

Examples:
  dflashctl profile show reference

Argument:
  PROFILE  A profile's name, or the path of its file.

Options:
  --json      Print one JSON object on standard output.
  -h, --help  Show this text.
""",
    "profile validate": """\
Usage: dflashctl profile validate [OPTIONS] PROFILE...

Check that profiles are valid; every problem is told with file and line.

Examples:
  dflashctl profile validate my.yaml

Argument:
  PROFILE...  Names or files.

Options:
  --json      Print one JSON object on standard output.
  -h, --help  Show this text.
""",
    "profile explain": """\
Usage: dflashctl profile explain [OPTIONS] [PROFILE]

Say for each engine argument where it comes from, and what was translated, added or dropped.

Examples:
  dflashctl profile explain kimi-k3-b300 --engine-version 0.5.22
  dflashctl profile explain --all-versions

Argument:
  [PROFILE]  A profile's name, or the path of its file.

Options:
  -p, --profile PROFILE  The same as the argument PROFILE.
  --all-versions         Profiles against every known release, as a matrix.
  --json                 Print one JSON object on standard output.
  -h, --help             Show this text.

Plan:
  --set SECTION.KEY=VALUE   Change a value of the profile; repeatable.
  --block-size N            Tokens per verify step: the newest one and N-1 proposals.
  --window-size N           Attention window of the draft, in tokens.
  --gpus LIST               GPUs by index or UUID, with commas.
  --host ADDRESS            Address to listen on.
  --port PORT               Port to listen on.
  --engine-version V        Judge for that release without having it.
  --python PATH             The interpreter that has the engine (also DFLASHCTL_ENGINE_PYTHON).
  --name NAME               Name of the instance; default: the profile's.
  --runtime process|docker  Run the engine here or in a container.
  --image IMAGE             The container image of the engine.
  --offline                 As for `up`; nothing is started here, so it changes nothing.
  --dry-run                 As for `up`; nothing is started here, so it changes nothing.
  --machine FILE            Plan for a saved machine (doctor --save-machine).
  --skip-doctor             As for `up`; nothing is started here, so it changes nothing.
  --skip-fetch              As for `up`; nothing is started here, so it changes nothing.
""",
    "profile diff": """\
Usage: dflashctl profile diff [OPTIONS] PROFILE...

Show in which fields two profiles differ, or a profile and the server that runs.

Examples:
  dflashctl profile diff kimi-k3-b300 kimi-k3-b300-peak
  dflashctl profile diff tiny-cpu --running

Argument:
  PROFILE...  Two profiles; one with --running.

Options:
  --running          Compare with the server that runs.
  --url URL          Any server, instead of an instance.
  --api-key-env VAR  The variable that holds the server's key.
  --json             Print one JSON object on standard output.
  -h, --help         Show this text.

Plan:
  --name NAME  Name of the instance; default: the profile's.
""",
    "profile new": """\
Usage: dflashctl profile new [OPTIONS] NEW

Make a profile of a published launch command; nothing of it is executed.

Examples:
  dflashctl profile new mine --from-command - < command.txt > mine.yaml

Argument:
  NEW  The name of the new profile.

Options:
  --from-command TEXT|FILE|-  A launch command: the text, a file, or - for standard input.
  -o, --output FILE           Write it there instead of printing it.
  --json                      Print one JSON object on standard output.
  -h, --help                  Show this text.

Plan:
  --engine-version V  Judge for that release without having it.
  --offline           Use only what is here already.
""",
    "profile schema": """\
Usage: dflashctl profile schema [OPTIONS]

Print the JSON Schema of a profile, for editors.

Examples:
  dflashctl profile schema > profile.schema.json

Options:
  --json      Print one JSON object on standard output.
  -h, --help  Show this text.
""",
    "completion": """\
Usage: dflashctl completion [OPTIONS] [bash|zsh|fish]

Print or install the completion of your shell.

Examples:
  dflashctl completion bash --install

Argument:
  [bash|zsh|fish]  Default: the shell in $SHELL.

Options:
  --install   Write it where the shell finds it.
  --json      Print one JSON object on standard output.
  -h, --help  Show this text.
""",
}
