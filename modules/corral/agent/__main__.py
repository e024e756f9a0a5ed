"""The command `corral-agent` of a cluster's machines. Exit code 0: done; 1: failed; 2: usage error.

Only the module of the given command is imported, to keep boots fast.
"""

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from corral.agent.errors import AgentError

# The module of each command, which has `add_arguments(parser, command)`, and the command's help.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "boot": ("boot", "boot this machine in its role"),
    "install": ("boot", "fetch and install the cluster's files only"),
    "resume": ("slurm_hooks", "request that nodes be launched (Slurm's ResumeProgram)"),
    "resume-failed": ("slurm_hooks", "report that nodes did not come up (Slurm's ResumeFailProgram)"),
    "suspend": ("slurm_hooks", "request that nodes be terminated (Slurm's SuspendProgram)"),
    "node-watch": ("node", "watch for spot notices and a lost head (daemon of nodes)"),
    "node-shutdown": ("node", "requeue the jobs of a machine that shuts down (systemd calls it)"),
    "nvme": ("instance_store", "mount the instance store as one file system (at each boot of a node)"),
    "health": ("node", "check whether this node is fit for jobs"),
    "prolog": ("node", "check this node before a job, drain it if unfit (Slurm's Prolog)"),
    "health-check": ("node", "check this node, drain it if unfit (Slurm's HealthCheckProgram)"),
    "rank-order": ("node", "sort node names from standard input by network switch"),
    "ecr-password": ("node", "print a password for the cluster's registries in ECR, by the job role"),
    "credentials": ("node", "serve the job role's credentials (daemon of every machine)"),
    "login-watch": ("login", "follow the cluster's configuration and people (daemon of login nodes)"),
    "autoscaler": ("head", "launch and terminate machines for Slurm (daemon of the head)"),
    "backup": ("head", "write job records and the cluster's history to the bucket (head)"),
    "apply": ("apply", "apply the latest configuration from `corral up` (head)"),
    "status": ("head_queries", "print jobs, offers in backoff, stopped queues and nodes (head)"),
    "events": ("head_queries", "print the cluster's events (head)"),
    "history": ("head_queries", "print the runs of jobs (head)"),
    "job-evidence": ("job_evidence", "print what is known about a job (head)"),
    "read-job": ("job_evidence", "print what a job has written into a directory, as the job's user"),
    "drain-all": ("head_queries", "close the queues and end all jobs before the cluster ends (head)"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
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
    """The parser of these arguments. Only commands among them get their options."""
    whole = argparse.ArgumentParser(prog="corral-agent", description="The agent on the machines of a corral cluster.")
    commands = whole.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for command, (module, text) in COMMANDS.items():
        subparser = commands.add_parser(command, help=text)
        if command in arguments:
            import_module(f"corral.agent.commands.{module}").add_arguments(subparser, command)
    return whole


if __name__ == "__main__":
    sys.exit(main())
