"""`corral-agent nvme`: what a node does at each boot before its slurmd, since disks may come back blank."""

import argparse
from pathlib import Path

from corral.agent.hosts import run
from corral.agent.nvme import mount_own_disks


def add_words(parser: argparse.ArgumentParser, _: str) -> None:
    """The options of the command."""
    parser.add_argument("place", type=Path, help="where they are mounted as one")
    parser.set_defaults(act=lambda chosen: mount_own_disks(run, chosen.place))
