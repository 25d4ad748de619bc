"""The table of commands: their words, and where their signatures lie. Imports nothing."""

SUMMARY = (
    "Serve a target model with its DFlash drafter: fetch, check, plan, start, supervise, prove, measure."
)
# Words that only lead to further commands, with what they are about.
GROUPS = {"profile": "Profiles: what can be served, and how."}


class Entry:
    """A command: `words` as typed; `module` and `attribute` of its signature within dflashctl.cli."""

    __slots__ = ("attribute", "module", "words")

    def __init__(self, words: str, module: str, attribute: str) -> None:
        self.words = tuple(words.split())
        self.module = module
        self.attribute = attribute


# In the order of the help text: the main job first.
ENTRIES = (
    Entry("up", "serve", "up"),
    Entry("down", "serve", "down"),
    Entry("status", "serve", "status"),
    Entry("logs", "serve", "logs"),
    Entry("diagnose", "serve", "diagnose"),
    Entry("doctor", "setup", "doctor"),
    Entry("fetch", "setup", "fetch"),
    Entry("smoke", "smoke", "smoke"),
    Entry("bench", "bench", "bench"),
    Entry("bench compare", "bench_read", "bench_compare"),
    Entry("bench report", "bench_read", "bench_report"),
    Entry("profile list", "profile", "list_"),
    Entry("profile show", "profile", "show"),
    Entry("profile validate", "profile", "validate"),
    Entry("profile explain", "profile", "explain"),
    Entry("profile diff", "profile", "diff"),
    Entry("profile new", "profile", "new"),
    Entry("profile schema", "profile", "schema"),
    Entry("completion", "completion", "completion"),
)


def find(words: list) -> "Entry | None":  # type: ignore[type-arg]
    """The entry that the words begin with, the longest one winning; None when there is none."""
    for length in (2, 1):
        for entry in ENTRIES:
            if len(entry.words) == length and tuple(words[:length]) == entry.words:
                return entry
    return None


def command_name(words: list) -> str:  # type: ignore[type-arg]
    """The command as the envelope names it: "up", "profile show"; "dflashctl" when there is none."""
    entry = find(words)
    if entry is not None:
        return " ".join(entry.words)
    return words[0] if words and words[0] in GROUPS else "dflashctl"
