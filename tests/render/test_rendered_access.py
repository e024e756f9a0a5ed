"""Who may log in to the head, and the way there."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from corral.agent.config.file_placements import placements_for
from corral.agent.file_install import Placement, install
from corral.model.enums import Role
from corral.model.users import AccessPlan, GroupPlan, UserPlan
from corral.render import cluster_files
from corral.render.access import access_files, head_ssh_config, session_proxy
from render.plans import dev

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
    install(_placed(Role.HEAD), tmp_path)
    key, settings = tmp_path / "host_key", tmp_path / "sshd_config"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    settings.write_text(f"Include {tmp_path}/etc/ssh/sshd_config.d/*.conf\nHostKey {key}\n")
    # sshd prints its settings only if it could start, for which it wants a directory of the system.
    query = f"/usr/sbin/sshd -T -f {settings} -C user={user},host=head,addr=10.64.0.9"
    # sshd looks the user's groups up.
    (tmp_path / "passwd").write_text(f"{Path('/etc/passwd').read_text()}ada:x:2001:2001::/home/ada:/bin/bash\n")
    (tmp_path / "group").write_text(f"{Path('/etc/group').read_text()}corral-users:x:5999:ada\n")
    mounts = " && ".join(f"mount --bind {tmp_path}/{name} /etc/{name}" for name in ("passwd", "group"))
    script = f"{mounts} && mount -t tmpfs none /run && mkdir /run/sshd && exec {query}"
    printed = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=True)
    assert f"authorizedkeysfile {files}" in printed.stdout.splitlines()


def _placed(role: Role) -> tuple[Placement, ...]:
    files = {name: text.encode() for name, text in cluster_files(replace(dev(), access=PEOPLE)).items()}
    return placements_for(files, role, "train")


def test_the_way_to_the_head_goes_through_session_manager() -> None:
    assert head_ssh_config("dev", "ubuntu", "i-0123456789abcdef0", session_proxy("us-east-1")).splitlines() == [
        "Host dev-head",
        "    HostName i-0123456789abcdef0",
        "    User ubuntu",
        "    ProxyCommand aws ssm start-session --target %h --document-name corral-ssh --region us-east-1",
    ]
