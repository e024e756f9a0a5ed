"""The host key that all login nodes behind a load balancer show to ssh, so that people see one host (decision 223).

The first login node puts its own key into the cluster's secret; the others, and those that replace it, take that one.
Only root of a login node reads it. Without a load balancer each machine has the key that its image made.
"""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.agent.file_install import Placement, install
from corral.model.cluster import ClusterPlan

KEY = "/etc/ssh/corral_host_ed25519_key"
# Read before the image's files, and of each setting sshd takes the first value. Source: sshd_config(5).
SETTINGS = "/etc/ssh/sshd_config.d/40-corral-load-balancer.conf"
_OWN = "etc/ssh/ssh_host_ed25519_key"
_START = b"-----BEGIN OPENSSH PRIVATE KEY-----\n"
_LONGEST = 4096  # bytes; an ed25519 key has 400
# Secrets Manager refuses another value with the same token, so of two login nodes that boot at once one is the first.
# Source: Secrets Manager API reference, PutSecretValue, ClientRequestToken.
_FIRST = "corral-login-nodes-first-host-key"
_SSHD = f"""# Managed by corral: do not edit. All login nodes show one host key, and accept keys of people alone.
HostKey {KEY}
AuthenticationMethods publickey
"""

log = logging.getLogger("corral.agent")


class HostKeyError(AgentError):
    """The host key cannot be read, or is none."""


def sync_host_key(plan: ClusterPlan, secrets: Any, root: Path = Path("/")) -> bool:
    """Install the login nodes' host key, or remove it without a load balancer. Returns whether sshd must reload.

    Raises HostKeyError.
    """
    if not (plan.login and plan.login.load_balancer):
        return _remove(root)
    if not (root / _OWN).exists():  # in the box, a machine with a single user has no sshd
        return False
    key = _read(secrets, plan.host_key_secret) or _make(secrets, plan.host_key_secret, (root / _OWN).read_bytes())
    # The key first: sshd does not start without one.
    installed = install((Placement(path=KEY, content=key, mode=0o600),), root)
    installed = (*installed, *install((Placement(path=SETTINGS, content=_SSHD.encode()),), root))
    if installed:
        log.info("install: %s", ", ".join(installed))
    return bool(installed)


def _remove(root: Path) -> bool:
    held = [root / path.lstrip("/") for path in (SETTINGS, KEY)]  # the settings first
    found = [path for path in held if path.exists()]
    for path in found:
        path.unlink()
    return bool(found)


def _make(client: Any, secret: str, own: bytes) -> bytes:
    # ResourceExists: another login node was first.
    with aws_errors_as(HostKeyError, f"write {secret}"), suppress(client.exceptions.ResourceExistsException):
        client.put_secret_value(SecretId=secret, SecretBinary=own, ClientRequestToken=_FIRST)
    found = _read(client, secret)
    if found is None:
        raise HostKeyError(f"{secret} has no host key yet")
    return found


def _read(client: Any, secret: str) -> bytes | None:
    with aws_errors_as(HostKeyError, f"read {secret}"):
        try:
            answer = client.get_secret_value(SecretId=secret)
        except client.exceptions.ResourceNotFoundException:  # also raised for a secret without a value
            return None
    key = bytes(answer.get("SecretBinary", b""))
    if not key.startswith(_START) or len(key) > _LONGEST:
        raise HostKeyError(f"{secret} contains no ssh key - find out who wrote it")
    return key
