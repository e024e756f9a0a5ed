"""The command `corral-agent` of a cluster's machines. Exit code 0: done; 1: it failed; 2: it was asked wrongly."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from corral.agent.boot import boot
from corral.agent.errors import AgentError
from corral.agent.metadata import instance_tag
from corral.agent.store import DirectoryStore, Store, StoreError
from corral.model.deployed import BootFacts
from corral.model.jsons import from_json
from corral.model.markets import Role

FACTS = Path("/opt/corral/boot.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of what the command line asks for."""
    chosen = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s corral-agent %(levelname)s %(message)s")
    try:
        role = Role(chosen.role)
        queue = None if role is Role.HEAD else chosen.queue or instance_tag("corral:queue")
        boot(_store(chosen), role, queue, root=chosen.root)
    except (AgentError, OSError) as error:
        logging.error("boot: %s", error)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="corral-agent", description="The agent on the machines of a corral cluster.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("boot", help="fetch the cluster's files and install them")
    command.add_argument("--role", required=True, choices=[role.value for role in Role], help="what the machine is")
    command.add_argument("--queue", help="the queue of a compute machine (default: its tag corral:queue)")
    command.add_argument(
        "--facts", type=Path, default=FACTS, help="where the cluster's files are (default: %(default)s)"
    )
    command.add_argument("--store", type=Path, help="a directory in the bucket's place")
    command.add_argument("--root", type=Path, default=Path("/"), help="where to install (default: %(default)s)")
    return parser


def _store(chosen: argparse.Namespace) -> Store:
    if chosen.store:
        return DirectoryStore(chosen.store)
    from corral.agent.s3 import BucketStore

    try:
        facts = from_json(BootFacts, chosen.facts.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"{chosen.facts} does not say where the cluster's files are: {error}") from error
    return BucketStore(facts)


if __name__ == "__main__":
    sys.exit(main())
