"""The table of commands and the page that `corral --help` shows. Nothing is imported for it, so it appears at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Entry:
    """A command, or a group of them, as the first help page shows it; `corral.cli.<name>` holds its `app`."""

    name: str
    arguments: str
    summary: str

    @property
    def module(self) -> str:
        """The module that holds the command as `app`."""
        return f"corral.cli.{self.name.replace('-', '_')}"


class Section(NamedTuple):
    """A block of the page."""

    title: str
    entries: tuple[Entry, ...]


SECTIONS = (
    Section(
        "Look (no account needed)",
        (
            Entry("new", "DIR", "both Pulumi projects, with an environment of yours"),
            Entry("plan", "ENV", "what would exist and cost; --run: how a run would go"),
            Entry("render", "ENV --out DIR", "every file as it would be deployed"),
            Entry("schema", "[base|cluster|run]", "JSON Schema of the files, for editors"),
            Entry("forecast", "COMMAND", "speed predicted against published runs; accelerators"),
            Entry("lint-env", "FILE", "NCCL and EFA variables: wrong, harmful, needless"),
        ),
    ),
    Section(
        "Run (an account, or --box)",
        (
            Entry("bootstrap", "", "prepare an account: state bucket, key, roles of AWS"),
            Entry("check", "ENV", "can the account start it now? quotas, images, capacity"),
            Entry("up", "ENV", "bring an environment up: the base, then the cluster"),
            Entry("status", "ENV", "what is up, how long it will live, what it costs now"),
            Entry("timeline", "ENV", "what happened to its machines and jobs, as a picture"),
            Entry("extend", "ENV TIME", "move the hour at which a cluster ends by itself"),
            Entry("down", "ENV", "take an environment down; data is kept"),
            Entry("connect", "ENV", "a shell on the head, or a command there"),
            Entry("ssh-config", "ENV", "how ssh gets to the head, through Session Manager"),
            Entry("upgrade", "image ENV", "let new machines boot the newest image"),
            Entry("sweep", "[ENV]", "what was left behind and costs money"),
        ),
    ),
    Section(
        "This machine",
        (
            Entry("box", "COMMAND", "AWS on this machine: start, stop, status, env, reset"),
            Entry("doctor", "", "what is installed, what is missing, what is possible"),
        ),
    ),
)
ENTRIES = {entry.name: entry for section in SECTIONS for entry in section.entries}
OPTIONS = (
    ("-h, --help", "this page; after a command: its options and examples"),
    ("--version", "the version"),
    ("--install-completion", "completion of commands and environments for this shell"),
    ("--show-completion", "the same, printed"),
)
FIRST_STEPS = (
    ("corral doctor", "is all there?"),
    ("corral plan dev", "look at it"),
    ("corral box start", "an AWS on this machine"),
    ("corral up dev --box", "the environment in it"),
)
_COLUMN = 24


def page(*, bold: bool = False) -> str:
    """The page as text of at most 80 columns; `bold` marks headings for a terminal."""
    mark = "\033[1m{}\033[0m".format if bold else str
    blocks = [
        (section.title, tuple((f"{entry.name} {entry.arguments}".strip(), entry.summary) for entry in section.entries))
        for section in SECTIONS
    ]
    blocks += [("Options", OPTIONS), ("First steps", FIRST_STEPS)]
    return "\n".join(
        [
            f"{mark('corral')} COMMAND ...",
            "",
            "GPU clusters on AWS with Pulumi and Slurm, whose whole life can be lived on one",
            "machine first. ENV names an environment: stacks/cluster/Pulumi.ENV.yaml.",
            *(line for title, rows in blocks for line in ("", mark(title), *_rows(rows))),
            "",
            "Exit codes: 0 done, 1 failed, 2 wrong input, 3 the account cannot start it,",
            "4 refused for safety, 130 interrupted.",
        ]
    )


def _rows(rows: tuple[tuple[str, str], ...]) -> list[str]:
    return [f"  {name.ljust(_COLUMN)}{text}".rstrip() for name, text in rows]
