"""What slurmctld's programs do, as commands for people; slurmctld itself runs `note` as a file."""

import argparse
from pathlib import Path

from corral.agent.note import leave_note, ring
from corral.agent.spool import BELL, SPOOL


def add_words(parser: argparse.ArgumentParser, _: str) -> None:
    """The options of a command."""
    parser.add_argument("nodes", help="such as train-[1-4]")
    add_places(parser)
    parser.set_defaults(act=_note)


def add_places(parser: argparse.ArgumentParser) -> None:
    """The options that say where the keeper is asked."""
    parser.add_argument("--spool", type=Path, default=SPOOL, help="where notes lie (default: %(default)s)")
    parser.add_argument("--bell", type=Path, default=BELL, help="the keeper's socket (default: %(default)s)")


def _note(chosen: argparse.Namespace) -> None:
    leave_note(chosen.command, chosen.nodes, spool=str(chosen.spool))
    ring(str(chosen.bell))
