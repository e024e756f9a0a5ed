"""The table of commands and the page of `corral --help`. It imports no command, so that it appears at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Entry:
    """A command or a group of commands on the page; `corral.cli.commands.<name>` holds its `app`."""

    name: str
    arguments: str
    summary: str

    @property
    def module(self) -> str:
        """The module that holds the command as `app`."""
        return f"corral.cli.commands.{self.name.replace('-', '_')}"


class HelpSection(NamedTuple):
    """A block of the page."""

    title: str
    entries: tuple[Entry, ...]


SECTIONS = (
    HelpSection(
        "Plan (no account needed)",
        (
            Entry("new", "DIR", "Create the Pulumi projects with one environment"),
            Entry("plan", "ENV", "Show resources and cost; --run forecasts a run"),
            Entry("render", "ENV --out DIR", "Write every file that a deployment would contain"),
            Entry("schema", "KIND", "Print the JSON Schema of a file, for editors"),
            Entry("forecast", "COMMAND", "Validate speed forecasts; compare accelerators"),
            Entry("lint-env", "FILE", "Check NCCL and EFA environment variables"),
        ),
    ),
    HelpSection(
        "Deploy (needs an AWS account, or --box)",
        (
            Entry("bootstrap", "", "Prepare an account: state bucket, key, roles, policies"),
            Entry("check", "ENV", "Check quotas, images and capacity of the account"),
            Entry("up", "ENV", "Create or update an environment"),
            Entry("status", "ENV", "Show what is up, its cost and its time remaining"),
            Entry("dashboard", "ENV", "Show a live page of nodes, jobs, cost and events"),
            Entry("timeline", "ENV", "Show what nodes and jobs did over time, and the cost"),
            Entry("diagnose", "ENV JOB", "Show why a job is slow, and what to do first"),
            Entry("runbook", "ALERT", "Show what an alert means, and what to do"),
            Entry("usage", "ENV", "Show who used a cluster, and what it cost"),
            Entry("extend", "ENV TIME", "Change when a cluster ends"),
            Entry("down", "ENV", "Delete a cluster; keep its data"),
            Entry("connect", "ENV", "Open a shell on the head, or run a command there"),
            Entry("ssh-config", "ENV", "Print the ssh configuration for the head"),
            Entry("upgrade", "image ENV", "Use the newest image for new instances"),
            Entry("cleanup", "[ENV]", "List orphaned resources and their cost"),
        ),
    ),
    HelpSection(
        "This machine",
        (
            Entry("box", "COMMAND", "Control the box, a local AWS emulator"),
            Entry("doctor", "", "Check what is installed and what is missing"),
        ),
    ),
)
ENTRIES = {entry.name: entry for section in SECTIONS for entry in section.entries}
OPTIONS = (
    ("-h, --help", "Show this page; after a command, its options"),
    ("--version", "Show the version"),
    ("--install-completion", "Install shell completion of commands and environments"),
    ("--show-completion", "Print the shell completion script"),
)
FIRST_STEPS = (
    ("corral doctor", "Check this machine"),
    ("corral plan dev", "Show what `dev` would create and cost"),
    ("corral box start", "Start the local AWS emulator"),
    ("corral up dev --box", "Deploy `dev` to it"),
)
_COLUMN = 24


def front_page(*, bold: bool = False) -> str:
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
            "Run GPU clusters on AWS with Pulumi and Slurm. Try everything with --box first,",
            "a local AWS emulator. ENV is an environment: stacks/cluster/Pulumi.ENV.yaml.",
            *(line for title, rows in blocks for line in ("", mark(title), *_rows(rows))),
            "",
            "Exit codes: 0 success, 1 failure, 2 invalid input, 3 the account is not ready,",
            "4 refused for safety, 130 interrupted.",
        ]
    )


def _rows(rows: tuple[tuple[str, str], ...]) -> list[str]:
    return [f"  {name.ljust(_COLUMN)}{text}".rstrip() for name, text in rows]
