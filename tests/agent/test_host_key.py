"""The login nodes' host key in the box's Secrets Manager: of the first one, for root alone, gone with its balancer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from box.vpc_fixtures import Clients
from corral.agent.host_key import KEY, SETTINGS, HostKeyError, sync_host_key
from corral.model.cluster import ClusterPlan, LoadBalancerPlan
from corral.model.enums import BalancerScheme
from render.plans import LOGIN, dev

BALANCER = LoadBalancerPlan(
    scheme=BalancerScheme.INTERNET_FACING, allow=(IPv4Network("203.0.113.0/24"),), zones=("use1-az1",)
)
SECRET = "corral/dev/login-host-key"
HEAD = b"-----BEGIN OPENSSH PRIVATE KEY-----\n"
Login = Callable[[str], Path]


def balanced() -> ClusterPlan:
    return replace(dev(), login=replace(LOGIN, load_balancer=BALANCER))


@pytest.fixture
def secrets(aws: Clients) -> Any:
    """A Secrets Manager with the secret as `pulumi up` leaves it: without a value."""
    aws("secretsmanager").create_secret(Name=SECRET)
    return aws("secretsmanager")


@pytest.fixture
def machine(tmp_path: Path) -> Login:
    """Makes the root directory of a login node with a host key of its own."""

    def make(name: str) -> Path:
        key = tmp_path / name / "etc/ssh/ssh_host_ed25519_key"
        key.parent.mkdir(parents=True)
        key.write_bytes(HEAD + name.encode())
        return tmp_path / name

    return make


def shown(root: Path) -> bytes:
    return (root / KEY.lstrip("/")).read_bytes()


def test_the_key_of_the_first_login_node_is_that_of_all(secrets: Any, machine: Login) -> None:
    nodes = [machine("login-1"), machine("login-2")]
    for root in nodes:
        sync_host_key(balanced(), secrets, root)
    assert [shown(root) for root in nodes] == [HEAD + b"login-1"] * 2


def test_of_two_that_begin_at_once_the_second_takes_the_key_of_the_first(secrets: Any, machine: Login) -> None:
    class Late:
        """A client whose first answer is older than the other login node's key."""

        exceptions = secrets.exceptions
        put_secret_value = staticmethod(secrets.put_secret_value)
        answers = 0

        def get_secret_value(self, **arguments: str) -> Any:
            self.answers += 1
            if self.answers == 1:
                raise self.exceptions.ResourceNotFoundException({"Error": {}}, "GetSecretValue")
            return secrets.get_secret_value(**arguments)

    sync_host_key(balanced(), secrets, machine("login-1"))
    second = machine("login-2")
    sync_host_key(balanced(), Late(), second)
    assert shown(second) == HEAD + b"login-1"


def test_only_root_reads_the_key(secrets: Any, machine: Login) -> None:
    root = machine("login-1")
    sync_host_key(balanced(), secrets, root)
    assert (root / KEY.lstrip("/")).stat().st_mode & 0o777 == 0o600


def test_sshd_shows_that_key_and_accepts_keys_alone(secrets: Any, machine: Login) -> None:
    root = machine("login-1")
    sync_host_key(balanced(), secrets, root)
    assert (root / SETTINGS.lstrip("/")).read_text().splitlines()[1:] == [
        "HostKey /etc/ssh/corral_host_ed25519_key",
        "AuthenticationMethods publickey",
    ]


def test_sshd_reloads_once(secrets: Any, machine: Login) -> None:
    root = machine("login-1")
    assert [sync_host_key(balanced(), secrets, root) for _ in range(2)] == [True, False]


def test_without_its_load_balancer_a_login_node_shows_its_own_key_again(secrets: Any, machine: Login) -> None:
    root = machine("login-1")
    sync_host_key(balanced(), secrets, root)
    reloads = [sync_host_key(replace(dev(), login=LOGIN), secrets, root) for _ in range(2)]
    left = sorted(file.name for file in (root / "etc/ssh").rglob("*") if file.is_file())
    assert (reloads, left) == ([True, False], ["ssh_host_ed25519_key"])


@pytest.mark.parametrize("value", [{"SecretBinary": b"munge"}, {"SecretString": "text"}])
def test_what_is_no_key_is_not_installed(secrets: Any, machine: Login, value: dict[str, Any]) -> None:
    secrets.put_secret_value(SecretId=SECRET, **value)
    root = machine("login-1")
    with pytest.raises(HostKeyError, match=f"^{SECRET} contains no ssh key - find out who wrote it$"):
        sync_host_key(balanced(), secrets, root)
    assert not (root / KEY.lstrip("/")).exists()


def test_a_secret_that_is_not_there_yet_is_an_error_that_the_next_look_repeats(aws: Clients, machine: Login) -> None:
    with pytest.raises(HostKeyError, match=f"^cannot write {SECRET}: "):
        sync_host_key(balanced(), aws("secretsmanager"), machine("login-1"))
