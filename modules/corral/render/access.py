"""Who may log in to head and login nodes: keys of the image's user and of the cluster's people; who may use sudo.

Every file is always there, so that an apply empties what an earlier configuration has filled.
"""

from collections.abc import Mapping

from corral.model.cluster import ClusterPlan
from corral.model.users import USERS_CONF, USERS_GROUP, users_conf
from corral.plan.iam.head_documents import SSH
from corral.render.templates import fill

_HEADER = "# Managed by corral: do not edit. The keys in the environment's file."


def access_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of each file by its path below the cluster's prefix."""
    access = plan.access
    admins = [user.name for user in access.users if user.admin]
    return {
        "access/authorized_keys": _lines(access.ssh_keys),
        "access/sshd.conf": fill("access/sshd.conf.j2", user=plan.image.default_user, group=USERS_GROUP),
        **({"access/head-sshd.conf": fill("access/head-sshd.conf.j2", admins=admins)} if plan.login else {}),
        "access/sudoers": fill("access/sudoers.j2", admins=admins),
        **{f"access/keys/{user.name}": _lines(user.ssh_keys) for user in access.users},
        f"slurm/{USERS_CONF}": users_conf(access),
    }


def ssh_config_entry(host: str, user: str, instance_id: str, proxy: str) -> str:
    """An entry for `~/.ssh/config` by which `ssh HOST` reaches an instance through this command."""
    lines = (f"Host {host}", f"    HostName {instance_id}", f"    User {user}", f"    ProxyCommand {proxy}", "")
    return "\n".join(lines)


def session_proxy(region: str) -> str:
    """The command that connects ssh through Session Manager, without an open port.

    Source: Systems Manager User Guide, "Allow and control permissions for SSH connections through Session Manager".
    """
    return f"aws ssm start-session --target %h --document-name {SSH.name} --region {region}"


def _lines(keys: tuple[str, ...]) -> str:
    return "".join(f"{line.strip()}\n" for line in (_HEADER, *keys))
