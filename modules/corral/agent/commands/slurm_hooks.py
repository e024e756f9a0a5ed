"""`corral-agent resume`, `resume-failed` and `suspend`: slurmctld's programs as commands for people.

slurmctld itself runs `autoscaler/resume_program.py`.
"""

import argparse
from pathlib import Path

from corral.agent.autoscaler.request_queue import SPOOL, WAKE_SOCKET
from corral.agent.autoscaler.resume_program import wake, write_request


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the options of a command."""
    parser.add_argument("nodes", help="node names, e.g. train-[1-4]")
    add_queue_options(parser)
    parser.set_defaults(act=_write)


def add_queue_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the paths of the request queue."""
    parser.add_argument("--spool", type=Path, default=SPOOL, help="directory of the requests (default: %(default)s)")
    parser.add_argument(
        "--wake-socket", type=Path, default=WAKE_SOCKET, help="the autoscaler's socket (default: %(default)s)"
    )


def _write(chosen: argparse.Namespace) -> None:
    write_request(chosen.command, chosen.nodes, spool=str(chosen.spool))
    wake(str(chosen.wake_socket))
