"""Options that several commands share, declared once."""

from __future__ import annotations

from typing import Annotated

import typer

PLAN = "Plan"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
ProfileArgument = Annotated[
    str | None,
    typer.Argument(metavar="PROFILE", help="A profile's name, or the path of its file.", show_default=False),
]
ProfileOption = Annotated[
    str | None, typer.Option("--profile", "-p", metavar="PROFILE", help="The same as the argument PROFILE.")
]
InstanceArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="The instance; may be left out when there is one.", show_default=False
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Change a value of the profile; repeatable.",
        rich_help_panel=PLAN,
    ),
]
BlockSize = Annotated[
    int | None,
    typer.Option(
        "--block-size",
        metavar="N",
        help="Tokens per verify step: the newest one and N-1 proposals.",
        rich_help_panel=PLAN,
    ),
]
WindowSize = Annotated[
    int | None,
    typer.Option(
        "--window-size", metavar="N", help="Attention window of the draft, in tokens.", rich_help_panel=PLAN
    ),
]
Gpus = Annotated[
    str | None,
    typer.Option("--gpus", metavar="LIST", help="GPUs by index or UUID, with commas.", rich_help_panel=PLAN),
]
Host = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.", rich_help_panel=PLAN)
]
Port = Annotated[
    int | None, typer.Option("--port", metavar="PORT", help="Port to listen on.", rich_help_panel=PLAN)
]
EngineVersion = Annotated[
    str | None,
    typer.Option(
        "--engine-version",
        metavar="V",
        help="Judge for that release without having it.",
        rich_help_panel=PLAN,
    ),
]
Python = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="The interpreter that has the engine (also DFLASHCTL_ENGINE_PYTHON).",
        rich_help_panel=PLAN,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="Name of the instance; default: the profile's.", rich_help_panel=PLAN
    ),
]
Runtime = Annotated[
    str,
    typer.Option(
        "--runtime",
        metavar="process|docker",
        help="Run the engine here or in a container.",
        rich_help_panel=PLAN,
    ),
]
Image = Annotated[
    str | None,
    typer.Option("--image", metavar="IMAGE", help="The container image of the engine.", rich_help_panel=PLAN),
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Use only what is here already.", rich_help_panel=PLAN)
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Print the complete plan; `up` then does exactly that.", rich_help_panel=PLAN
    ),
]
MachineFile = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="FILE",
        help="Plan for a saved machine (doctor --save-machine).",
        rich_help_panel=PLAN,
    ),
]
SkipDoctor = Annotated[
    bool, typer.Option("--skip-doctor", help="Start without the check of this machine.", rich_help_panel=PLAN)
]
SkipFetch = Annotated[
    bool, typer.Option("--skip-fetch", help="Start without looking at the weights.", rich_help_panel=PLAN)
]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="Any server, instead of an instance.")]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        "--api-key-env", metavar="VAR", help="The variable that holds the server's key (DFLASHCTL_API_KEY)."
    ),
]
