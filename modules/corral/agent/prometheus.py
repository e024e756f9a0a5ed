"""Prometheus on the head: its package, its options, and who may read it.

It listens on loopback. A user of the head needs a password there, which only root can read: the series show the queues
and accounts of all users. It accepts no series from anybody (no remote-write receiver, no admin API: off by default).
Its package's unit already runs it as a user of its own, without capabilities and devices, and with a read-only system.
Sources: prometheus(1) of 2.42; Prometheus's documentation, "HTTPS and authentication"; crypt(5).
"""

from __future__ import annotations

import ctypes
import logging
import secrets
from collections.abc import Callable
from pathlib import Path

from corral.agent.errors import AgentError
from corral.agent.file_install import HEADER, Placement, install
from corral.agent.host.base import Daemon, Host
from corral.agent.host.packages import Package
from corral.agent.metrics.node_token import node_token
from corral.model.cluster import ClusterPlan
from corral.model.monitoring import (
    NODE_TOKEN,
    PROMETHEUS_DIR,
    PROMETHEUS_PORT,
    PROMETHEUS_USER,
    WEB_USER,
    MonitoringPlan,
)

DATA = "/var/lib/corral/prometheus"  # on the state volume: a new head continues it
PASSWORD = f"{PROMETHEUS_DIR}/password"
WEB_CONFIG = f"{PROMETHEUS_DIR}/web.yml"
_SALT = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_PACKAGE = Package(name="prometheus", program="/usr/bin/prometheus")

log = logging.getLogger("corral.agent")


def prometheus(plan: MonitoringPlan) -> Daemon:
    """Prometheus's daemon. Its unit reads its options from /etc/default."""
    return Daemon(
        unit="prometheus",
        command=("/usr/bin/prometheus",),
        user=PROMETHEUS_USER,
        private_dirs=(DATA,),
        foreground=options(plan),
    )


def options(plan: MonitoringPlan) -> tuple[str, ...]:
    """The options of Prometheus's command line."""
    return (
        f"--config.file={PROMETHEUS_DIR}/prometheus.yml",
        f"--storage.tsdb.path={DATA}",
        f"--storage.tsdb.retention.time={plan.retention_s}s",
        f"--storage.tsdb.retention.size={plan.retention_gib}GB",
        f"--web.listen-address=127.0.0.1:{PROMETHEUS_PORT}",
        f"--web.config.file={WEB_CONFIG}",
    )


def start_prometheus(
    plan: ClusterPlan, host: Host, root: Path = Path("/"), hashed: Callable[[str], str] | None = None
) -> None:
    """Install and start Prometheus if the plan has it. A failure is logged: a head without it is better than none."""
    if not plan.monitoring.prometheus:
        return
    try:
        host.install((_PACKAGE,))  # first: it creates the user that owns files
        install((_defaults(plan.monitoring), _own_rules(), _token(root), *_password(root, hashed or bcrypt)), root)
        host.start(prometheus(plan.monitoring))
    except (AgentError, OSError) as error:
        log.error("Prometheus does not run: %s", error)


def restart_prometheus(plan: ClusterPlan, host: Host, root: Path = Path("/")) -> None:
    """Start Prometheus with new files, if the plan has it; a running one is restarted."""
    if not plan.monitoring.prometheus:
        return
    start_prometheus(plan, host, root)
    try:
        host.restart(prometheus(plan.monitoring))
    except AgentError as error:
        log.error("Prometheus does not run: %s", error)


def bcrypt(password: str) -> str:
    """The hash of a password in bcrypt's form, by the system's libcrypt. Raises OSError if that lacks it.

    Python's own module for it ends with 3.12. The password is random, so a cheap hash protects it.
    """
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    salt = "".join(secrets.choice(_SALT) for _ in range(21))
    found: bytes | None = library.crypt(password.encode(), f"$2b$05${salt}u".encode())
    if found is None or not found.startswith(b"$2b$"):
        raise OSError("the system's libcrypt knows no bcrypt")
    return found.decode()


def _defaults(plan: MonitoringPlan) -> Placement:
    text = f'{HEADER}ARGS="{" ".join(options(plan))}"\n'
    return Placement(path="/etc/default/prometheus", content=text.encode())


def _own_rules() -> Placement:
    content = b"Your own rules of Prometheus: files *.yml. corral never changes them.\n"
    return Placement(path=f"{PROMETHEUS_DIR}/own/README", content=content, only_if_missing=True)


def _token(root: Path) -> Placement:
    """What Prometheus shows to nodes. Only its own user reads it."""
    return Placement(path=NODE_TOKEN, content=node_token(root).encode(), mode=0o400, owner=PROMETHEUS_USER)


def _password(root: Path, hashed: Callable[[str], str]) -> tuple[Placement, ...]:
    """The password and the file that Prometheus checks it with; a head has one for as long as its root disk."""
    held = root / PASSWORD.lstrip("/")
    if held.exists() and (root / WEB_CONFIG.lstrip("/")).exists():
        return ()
    password = secrets.token_hex(16)
    web = f"{HEADER}basic_auth_users:\n  {WEB_USER}: {hashed(password)}\n"
    return (
        Placement(path=PASSWORD, content=f"{password}\n".encode(), mode=0o400),
        Placement(path=WEB_CONFIG, content=web.encode(), mode=0o400, owner=PROMETHEUS_USER),
    )
