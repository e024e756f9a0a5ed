"""Keys for SSH on the head, and the way there."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from corral.agent.config.file_placements import placements_for
from corral.agent.file_install import Placement, install
from corral.model.enums import Role
from corral.render import cluster_files
from corral.render.authorized_keys import head_ssh_config, ssh_files
from render.plans import dev

_OF_KEYS = ("/etc/ssh/corral_authorized_keys", "/etc/ssh/sshd_config.d/60-corral.conf")
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample ann@laptop"


def test_without_keys_there_are_no_ssh_files() -> None:
    assert ssh_files(dev()) == {}


def test_declared_keys_are_a_file_of_their_own_for_the_images_user() -> None:
    assert ssh_files(replace(dev(), ssh_keys=(KEY,))) == {
        "ssh/authorized_keys": f"{KEY}\n",
        "ssh/sshd.conf": (
            "# Managed by corral: do not edit. Accept the keys in the environment's file alone: nodes share the users'"
            " homes.\n"
            "Match User ubuntu\n"
            "    AuthorizedKeysFile /etc/ssh/corral_authorized_keys\n"
        ),
    }


@pytest.mark.parametrize(
    ("role", "paths"),
    [
        (Role.HEAD, ["/etc/ssh/corral_authorized_keys", "/etc/ssh/sshd_config.d/60-corral.conf"]),
        (Role.COMPUTE, []),
    ],
)
def test_the_head_gets_them_and_nodes_do_not(role: Role, paths: list[str]) -> None:
    assert [placement.path for placement in _placed(role) if placement.path in _OF_KEYS] == paths


@pytest.mark.parametrize(
    ("user", "files"),
    [
        ("ubuntu", "/etc/ssh/corral_authorized_keys"),
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
    script = f"mount -t tmpfs none /run && mkdir /run/sshd && exec {query}"
    printed = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=True)
    assert f"authorizedkeysfile {files}" in printed.stdout.splitlines()


def _placed(role: Role) -> tuple[Placement, ...]:
    files = {name: text.encode() for name, text in cluster_files(replace(dev(), ssh_keys=(KEY,))).items()}
    return placements_for(files, role, "train")


def test_the_way_to_the_head_goes_through_session_manager() -> None:
    assert head_ssh_config("dev", "ubuntu", "i-0123456789abcdef0", "us-east-1").splitlines() == [
        "Host dev-head",
        "    HostName i-0123456789abcdef0",
        "    User ubuntu",
        "    ProxyCommand aws ssm start-session --target %h --document-name corral-ssh --region us-east-1",
    ]
