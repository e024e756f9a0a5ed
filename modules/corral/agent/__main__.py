"""The command `corral-agent` of a cluster's machines. Exit code 0: done; 1: it failed; 2: it was asked wrongly.

Only the module of the command that is asked for is imported: what a node never does costs its boot nothing.
"""

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from corral.agent.errors import AgentError

# The module of each command, which has `add_words(parser, command)`; and what `--help` says of it.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "boot": ("boot_commands", "make this machine what it was launched for"),
    "install": ("boot_commands", "fetch the cluster's files and install them, no more"),
    "resume": ("note_commands", "note that nodes are wanted: Slurm's ResumeProgram"),
    "resume-failed": ("note_commands", "note that nodes did not come up: Slurm's ResumeFailProgram"),
    "suspend": ("note_commands", "note that nodes are idle: Slurm's SuspendProgram"),
    "watch": ("node_commands", "look for notices that the machine is taken back; runs on nodes"),
    "nvme": ("nvme_command", "mount the node's own disks as one; runs at each boot of a node"),
    "health": ("node_commands", "say whether this node is fit for jobs"),
    "prolog": ("node_commands", "let a job begin, or drain this node: Slurm's Prolog"),
    "health-check": ("node_commands", "drain this node if it is sick: Slurm's HealthCheckProgram"),
    "ranks": ("node_commands", "print the node names of the standard input in the order of switches"),
    "credentials": ("node_commands", "hand out the job role on this machine"),
    "keep": ("head_commands", "launch and end machines as Slurm asks for it; runs on the head"),
    "dump": ("head_commands", "write the records of jobs and of the cluster's life to the bucket; runs on the head"),
    "apply": ("apply_command", "bring this head to what `corral up` wrote last"),
    "state": ("asked", "print jobs, offers that rest, stopped queues and nodes; on the head"),
    "events": ("asked", "print what happened; on the head"),
    "history": ("asked", "print the runs of jobs; on the head"),
    "drain-all": ("asked", "let no job run any more; on the head, before the cluster ends"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of what the command line asks for."""
    chosen = parser(sys.argv[1:] if arguments is None else arguments).parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s corral-agent %(levelname)s %(message)s")
    logging.getLogger("botocore").setLevel(logging.WARNING)
    try:
        chosen.act(chosen)
    except (AgentError, OSError) as error:
        logging.error("%s: %s", chosen.command, error)
        return 1
    return 0


def parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """What reads these arguments: it knows the options of the commands alone that are among them."""
    whole = argparse.ArgumentParser(prog="corral-agent", description="The agent on the machines of a corral cluster.")
    commands = whole.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for command, (module, text) in COMMANDS.items():
        words = commands.add_parser(command, help=text)
        if command in arguments:
            import_module(f"corral.agent.{module}").add_words(words, command)
    return whole


if __name__ == "__main__":
    sys.exit(main())
