"""`corral-agent nvme`: mount a node's instance store before its slurmd, at each boot: the disks may be blank."""

import argparse
from pathlib import Path

from corral.agent.host.base import run
from corral.agent.host.instance_store import mount_instance_store


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the options of the command."""
    parser.add_argument("directory", type=Path, help="mount point")
    parser.set_defaults(act=lambda chosen: mount_instance_store(run, chosen.directory))
