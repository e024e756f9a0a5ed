"""The commands of `corral-agent` that make a machine what it was launched for."""

import argparse
from pathlib import Path

from corral.agent.boot import boot_node, fetch
from corral.agent.identity import own_identity
from corral.agent.machine import add_facts, client, host_in, probe, store_of
from corral.model.markets import Role


def add_words(parser: argparse.ArgumentParser, command: str) -> None:
    """The options of a command."""
    parser.add_argument("--role", required=True, choices=[role.value for role in Role], help="what the machine is")
    add_facts(parser)
    if command == "install":
        parser.add_argument("--queue", help="the queue of a compute machine (default: its tag corral:queue)")
        parser.add_argument("--root", type=Path, default=Path("/"), help="where to install (default: %(default)s)")
    parser.set_defaults(act=_install if command == "install" else _boot)


def _boot(chosen: argparse.Namespace) -> None:
    if Role(chosen.role) is Role.HEAD:
        from corral.agent.head_commands import boot

        boot(chosen)
        return
    identity = own_identity()
    plan, deployed = fetch(store_of(chosen), Role.COMPUTE, identity.queue, host_in=host_in)
    secrets = client("secretsmanager", deployed.region)
    boot_node(plan, deployed, identity, host_in(deployed.region), secrets, probe())


def _install(chosen: argparse.Namespace) -> None:
    from corral.agent.metadata import instance_tag

    role = Role(chosen.role)
    queue = None if role is Role.HEAD else chosen.queue or instance_tag("corral:queue")
    fetch(store_of(chosen), role, queue, root=chosen.root)
