"""`corral-agent boot` and `corral-agent install`: a machine's first boot, or only its files."""

import argparse
from pathlib import Path

from corral.agent.boot.sequence import boot_node, fetch
from corral.agent.node_identity import manifest_version, read_identity
from corral.agent.runtime_context import add_facts, client, host_in, probe, store_of
from corral.model.enums import Role
from corral.model.tags import QUEUE_TAG


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of a command."""
    parser.add_argument("--role", required=True, choices=[role.value for role in Role], help="role of the machine")
    add_facts(parser)
    if command == "install":
        parser.add_argument("--queue", help=f"the queue of a compute machine (default: its tag {QUEUE_TAG})")
        parser.add_argument(
            "--root", type=Path, default=Path("/"), help="root of the installation (default: %(default)s)"
        )
    parser.set_defaults(act=_install if command == "install" else _boot)


def _boot(chosen: argparse.Namespace) -> None:
    if Role(chosen.role) is Role.HEAD:
        from corral.agent.commands import head

        head.boot(chosen)
        return
    if Role(chosen.role) is Role.LOGIN:
        from corral.agent.commands import login

        login.boot(chosen)
        return
    identity = read_identity()
    plan, deployed = fetch(store_of(chosen, manifest_version()), Role.COMPUTE, identity.queue, host_in=host_in)
    secrets = client("secretsmanager", deployed.region)
    boot_node(plan, deployed, identity, host_in(deployed.region), secrets, probe())


def _install(chosen: argparse.Namespace) -> None:
    from corral.agent.imds_client import instance_tag

    role = Role(chosen.role)
    queue = chosen.queue or instance_tag(QUEUE_TAG) if role is Role.COMPUTE else None
    fetch(store_of(chosen, 0), role, queue, root=chosen.root)
