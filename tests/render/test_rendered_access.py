"""Who may log in to the head, and the way there."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from corral.agent.config.file_placements import placements_for
from corral.agent.file_install import Placement, install
from corral.model.cluster import ClusterPlan
from corral.model.enums import Role
from corral.model.users import AccessPlan, GroupPlan, UserPlan
from corral.render import cluster_files
from corral.render.access import access_files, session_proxy, ssh_config_entry
from render.plans import LOGIN, dev

_KEY_PATHS = ("/etc/ssh/corral_authorized_keys", "/etc/ssh/corral_users/ada", "/etc/ssh/sshd_config.d/60-corral.conf")
_SUDOERS = "/etc/sudoers.d/zzzz-corral-admins"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample ann@laptop"
PEOPLE = AccessPlan(
    ssh_keys=(KEY,),
    users=(
        UserPlan(name="ada", uid=2001, groups=("vision",), ssh_keys=(KEY,), admin=True),
        UserPlan(name="bob", uid=2002),
    ),
    groups=(GroupPlan(name="vision", gid=2100),),
)


def test_without_people_every_file_is_there_and_lets_nobody_in() -> None:
    files = access_files(dev())
    assert files["access/authorized_keys"].splitlines()[1:] == []
    assert files["access/sudoers"].splitlines()[1:] == []
    assert files["slurm/users.conf"].splitlines()[1:] == ["#corral entries 0", "#corral removed-jobs finish"]


def test_each_person_has_a_file_of_keys_also_without_any() -> None:
    files = access_files(replace(dev(), access=PEOPLE))
    found = {name: text.splitlines()[1:] for name, text in files.items() if name.startswith("access/keys/")}
    assert found == {"access/keys/ada": [KEY], "access/keys/bob": []}


def test_administrators_alone_may_use_sudo() -> None:
    files = access_files(replace(dev(), access=PEOPLE))
    assert files["access/sudoers"].splitlines()[1:] == ["ada ALL=(ALL:ALL) NOPASSWD: ALL"]


@pytest.mark.parametrize(
    ("role", "paths"),
    [
        (Role.HEAD, ["/etc/ssh/corral_authorized_keys", *_KEY_PATHS[1:], _SUDOERS]),
        (Role.COMPUTE, []),
    ],
)
def test_the_head_gets_them_and_nodes_do_not(role: Role, paths: list[str]) -> None:
    found = {placement.path for placement in _placed(role)}
    assert sorted(found & {*_KEY_PATHS, _SUDOERS}) == sorted(paths)


@pytest.mark.parametrize(
    ("user", "files"),
    [
        ("ubuntu", "/etc/ssh/corral_authorized_keys"),
        ("ada", "/etc/ssh/corral_users/%u"),
        ("ann", "none"),
        ("slurm", "none"),
        ("root", ".ssh/authorized_keys .ssh/authorized_keys2"),
    ],
)
def test_sshd_of_a_head_reads_the_keys_of_no_shared_home(tmp_path: Path, user: str, files: str) -> None:
    assert _keys_read(_placed(Role.HEAD), tmp_path, user) == files


@pytest.mark.parametrize(
    ("role", "user", "files"),
    [
        (Role.HEAD, "ada", "/etc/ssh/corral_users/%u"),
        (Role.HEAD, "bob", "none"),
        (Role.HEAD, "ubuntu", "none"),
        (Role.HEAD, "root", ".ssh/authorized_keys .ssh/authorized_keys2"),
        (Role.LOGIN, "ada", "/etc/ssh/corral_users/%u"),
        (Role.LOGIN, "bob", "/etc/ssh/corral_users/%u"),
        (Role.LOGIN, "ubuntu", "/etc/ssh/corral_authorized_keys"),
        (Role.LOGIN, "ann", "none"),
    ],
)
def test_sshd_of_a_head_reads_the_keys_of_administrators_alone_if_there_are_login_nodes(
    tmp_path: Path, role: Role, user: str, files: str
) -> None:
    assert _keys_read(_placed(role, replace(dev(), login=LOGIN)), tmp_path, user) == files


def test_administrators_use_sudo_on_login_nodes_too() -> None:
    (placed,) = (one for one in _placed(Role.LOGIN, replace(dev(), login=LOGIN)) if one.path == _SUDOERS)
    assert placed.content.decode().splitlines()[1:] == ["ada ALL=(ALL:ALL) NOPASSWD: ALL"]


def _keys_read(placed: tuple[Placement, ...], tmp_path: Path, user: str) -> str:
    """The files of keys that sshd reads for this user, as it prints them."""
    install(placed, tmp_path)
    key, settings = tmp_path / "host_key", tmp_path / "sshd_config"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    settings.write_text(f"Include {tmp_path}/etc/ssh/sshd_config.d/*.conf\nHostKey {key}\n")
    # sshd prints its settings only if it could start, for which it wants a directory of the system.
    query = f"/usr/sbin/sshd -T -f {settings} -C user={user},host=head,addr=10.64.0.9"
    # sshd looks the user's groups up.
    people = "ada:x:2001:2001::/home/ada:/bin/bash\nbob:x:2002:2002::/home/bob:/bin/bash\n"
    (tmp_path / "passwd").write_text(f"{Path('/etc/passwd').read_text()}{people}")
    (tmp_path / "group").write_text(f"{Path('/etc/group').read_text()}corral-users:x:5999:ada,bob\n")
    mounts = " && ".join(f"mount --bind {tmp_path}/{name} /etc/{name}" for name in ("passwd", "group"))
    script = f"{mounts} && mount -t tmpfs none /run && mkdir /run/sshd && exec {query}"
    printed = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=True)
    (line,) = (one for one in printed.stdout.splitlines() if one.startswith("authorizedkeysfile "))
    return line.removeprefix("authorizedkeysfile ")


def _placed(role: Role, plan: ClusterPlan | None = None) -> tuple[Placement, ...]:
    cluster = replace(plan or dev(), access=PEOPLE)
    files = {name: text.encode() for name, text in cluster_files(cluster).items()}
    return placements_for(files, role, "train")


def test_the_way_to_the_head_goes_through_session_manager() -> None:
    assert ssh_config_entry("dev-head", "ubuntu", "i-0123456789abcdef0", session_proxy("us-east-1")).splitlines() == [
        "Host dev-head",
        "    HostName i-0123456789abcdef0",
        "    User ubuntu",
        "    ProxyCommand aws ssm start-session --target %h --document-name corral-ssh --region us-east-1",
    ]
