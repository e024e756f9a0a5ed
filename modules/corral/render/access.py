"""Who may log in to head and login nodes: keys of the image's user and of the cluster's people; who may use sudo.

Every file is always there, so that an apply empties what an earlier configuration has filled; but those of a directory,
whose daemon stops without them.
"""

from collections.abc import Mapping
from functools import partial

from corral.catalog.aws.system_accounts import system_groups, system_users
from corral.model.cluster import ClusterPlan
from corral.model.users import DIRECTORY_CA, HOMES, USERS_CONF, USERS_GROUP, DirectoryPlan, DirectorySchema, users_conf
from corral.plan.iam.head_documents import SSH
from corral.render.templates import fill

_HEADER = "# Managed by corral: do not edit. The keys in the environment's file."


def access_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of each file by its path below the cluster's prefix."""
    access = plan.access
    admins = [user.name for user in access.users if user.admin]
    directory = access.directory
    admin_group = directory.admin_group if directory else ""
    sshd = {"user": plan.image.default_user, "admin_group": admin_group}
    return {
        "access/authorized_keys": _lines(access.ssh_keys),
        "access/sshd.conf": fill("access/sshd.conf.j2", group=USERS_GROUP, has_directory=bool(directory), **sshd),
        **({"access/head-sshd.conf": fill("access/head-sshd.conf.j2", admins=admins, **sshd)} if plan.login else {}),
        "access/sudoers": fill("access/sudoers.j2", admins=admins, admin_group=admin_group),
        **(_directory_files(directory, plan) if directory else {}),
        **{f"access/keys/{user.name}": _lines(user.ssh_keys) for user in access.users},
        f"slurm/{USERS_CONF}": users_conf(access),
    }


def _directory_files(directory: DirectoryPlan, plan: ClusterPlan) -> Mapping[str, str]:
    """SSSD's file without the password, which machines read from Secrets Manager, and the directory's authorities."""
    user = plan.image.default_user
    sssd = partial(
        fill,
        "access/sssd.conf.j2",
        directory=directory,
        is_ad=directory.schema is DirectorySchema.AD,
        starts_tls=directory.servers[0].startswith("ldap:"),
        ca=DIRECTORY_CA if directory.ca else "",
        system_users=", ".join(sorted({*system_users(), user})),
        system_groups=", ".join(sorted({*system_groups(), user})),
    )
    return {
        "directory/sssd.conf": sssd(homes=HOMES),
        **({"directory/head-sssd.conf": sssd(homes=plan.admin_homes)} if plan.login else {}),
        **({"directory/ca.pem": directory.ca} if directory.ca else {}),
    }


def ssh_config_entry(host: str, user: str, instance_id: str, proxy: str) -> str:
    """An entry for `~/.ssh/config` by which `ssh HOST` reaches an instance through this command."""
    lines = (f"Host {host}", f"    HostName {instance_id}", f"    User {user}", f"    ProxyCommand {proxy}", "")
    return "\n".join(lines)


def balancer_entry(host: str, address: str, user: str | None, key: str, proxy: str | None = None) -> str:
    """An entry by which `ssh HOST` reaches a login node through the load balancer at this address.

    It needs no other file: ssh gets the host key from a command. `user`: None for the name of whoever calls it.
    `proxy`: in the box. The load balancer forgets a connection after 350 s of silence. Source: Network Load Balancers'
    user guide, "Connection idle timeout".
    """
    lines = (
        f"Host {host}",
        f"    HostName {address}",
        *([f"    User {user}"] if user else []),
        f"    HostKeyAlias {host}",
        f"    HostKeyAlgorithms {key.partition(' ')[0]}",
        f"    KnownHostsCommand /bin/echo {host} {key}",
        "    StrictHostKeyChecking yes",
        "    ServerAliveInterval 60",
        *([f"    ProxyCommand {proxy}"] if proxy else []),
        "",
    )
    return "\n".join(lines)


def session_proxy(region: str) -> str:
    """The command that connects ssh through Session Manager, without an open port.

    Source: Systems Manager User Guide, "Allow and control permissions for SSH connections through Session Manager".
    """
    return f"aws ssm start-session --target %h --document-name {SSH.name} --region {region}"


def _lines(keys: tuple[str, ...]) -> str:
    return "".join(f"{line.strip()}\n" for line in (_HEADER, *keys))
