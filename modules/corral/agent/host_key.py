"""The host key that all login nodes behind a load balancer show to ssh, so that people see one host (decision 223).

The first login node puts its own key into the cluster's secret, and the others take it.
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
# Secrets Manager refuses another value with the same token, so of two login nodes that boot at once one is the first.
_FIRST = "corral-login-nodes-first-host-key"
_SSHD = f"""# Managed by corral: do not edit. All login nodes show one host key, and accept keys of people alone.
HostKey {KEY}
AuthenticationMethods publickey
"""

log = logging.getLogger("corral.agent")


class HostKeyError(AgentError):
    """The host key cannot be read, or is none."""


def sync_host_key(plan: ClusterPlan, secrets: Any, root: Path = Path("/")) -> bool:
    """Install the host key, or remove it without a load balancer. Returns whether sshd must reload.

    Raises HostKeyError.
    """
    if not (plan.login and plan.login.load_balancer):
        held = [path for name in (SETTINGS, KEY) if (path := root / name[1:]).exists()]
        for path in held:  # the settings first: sshd does not start without its key
            path.unlink()
        return bool(held)
    own = root / _OWN
    if not own.exists():  # in the box, a machine with a single user has no sshd
        return False
    key = _shared_key(secrets, plan.host_key_secret, own.read_bytes())
    installed = install((Placement(path=KEY, content=key, mode=0o600),), root)
    installed = (*installed, *install((Placement(path=SETTINGS, content=_SSHD.encode()),), root))
    if installed:
        log.info("install: %s", ", ".join(installed))
    return bool(installed)


def _shared_key(client: Any, secret: str, own: bytes) -> bytes:
    if (key := _read(client, secret)) is None:
        with aws_errors_as(HostKeyError, f"write {secret}"), suppress(client.exceptions.ResourceExistsException):
            client.put_secret_value(SecretId=secret, SecretBinary=own, ClientRequestToken=_FIRST)
        key = _read(client, secret)
    if not key or not key.startswith(_START):
        raise HostKeyError(f"{secret} contains no ssh key - find out who wrote it")
    return key


def _read(client: Any, secret: str) -> bytes | None:
    with aws_errors_as(HostKeyError, f"read {secret}"):
        try:
            return bytes(client.get_secret_value(SecretId=secret).get("SecretBinary", b""))
        except client.exceptions.ResourceNotFoundException:  # also raised for a secret without a value
            return None
