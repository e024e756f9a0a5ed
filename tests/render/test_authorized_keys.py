"""Keys for SSH on the head, and the way there."""

from __future__ import annotations

from dataclasses import replace

from corral.agent.config.file_placements import placements_for
from corral.model.enums import Role
from corral.render import cluster_files
from corral.render.authorized_keys import head_ssh_config, ssh_files
from render.plans import dev

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample ann@laptop"


def test_without_keys_there_are_no_ssh_files() -> None:
    assert ssh_files(dev()) == {}


def test_declared_keys_are_a_file_of_their_own_for_the_images_user() -> None:
    assert ssh_files(replace(dev(), ssh_keys=(KEY,))) == {
        "ssh/authorized_keys": f"{KEY}\n",
        "ssh/sshd.conf": (
            "# Managed by corral: do not edit. Accept the keys in the environment's file, in addition to those in the"
            " user's home.\n"
            "Match User ubuntu\n"
            "    AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/corral_authorized_keys\n"
        ),
    }


def test_the_head_gets_them_and_nodes_do_not() -> None:
    files = {name: text.encode() for name, text in cluster_files(replace(dev(), ssh_keys=(KEY,))).items()}
    found = [
        [p.path for p in placements_for(files, role, "train") if "etc/ssh" in p.path and "credentials" not in p.path]
        for role in (Role.HEAD, Role.COMPUTE)
    ]
    assert found == [["/etc/ssh/corral_authorized_keys", "/etc/ssh/sshd_config.d/60-corral.conf"], []]


def test_the_way_to_the_head_goes_through_session_manager() -> None:
    assert head_ssh_config("dev", "ubuntu", "i-0123456789abcdef0", "us-east-1").splitlines() == [
        "Host dev-head",
        "    HostName i-0123456789abcdef0",
        "    User ubuntu",
        "    ProxyCommand aws ssm start-session --target %h --document-name corral-ssh --region us-east-1",
    ]
