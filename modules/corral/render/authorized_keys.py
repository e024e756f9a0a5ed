"""SSH access: the declared public keys, for the image's user on the head, through Session Manager."""

from collections.abc import Mapping

from corral.model.cluster import ClusterPlan
from corral.plan.iam.head_documents import SSH
from corral.render.templates import fill


def ssh_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of each file by its path below the cluster's prefix; none if no key is declared."""
    if not plan.ssh_keys:
        return {}
    return {
        "ssh/authorized_keys": "".join(f"{key.strip()}\n" for key in plan.ssh_keys),
        "ssh/sshd.conf": fill("ssh/sshd.conf.j2", user=plan.image.default_user),
    }


def head_ssh_config(cluster: str, user: str, head: str, region: str) -> str:
    """An entry for `~/.ssh/config` by which `ssh <cluster>-head` goes through Session Manager, without an open port.

    Source: Systems Manager User Guide, "Allow and control permissions for SSH connections through Session Manager".
    """
    session = f"aws ssm start-session --target %h --document-name {SSH.name}"
    return "\n".join(
        [
            f"Host {cluster}-head",
            f"    HostName {head}",
            f"    User {user}",
            f"    ProxyCommand {session} --region {region}",
            "",
        ]
    )
