"""Alertmanager on the head: its package, its options, and the secrets with which it notifies people.

It listens on loopback with Prometheus's password, and talks to no other Alertmanager. It reads the secrets from files
when it sends a message, so a new value needs no restart; they are never in its configuration. Debian runs it as
Prometheus's user. Sources: prometheus-alertmanager(1) and amtool(1) of 0.25; Alertmanager's documentation,
"Configuration".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.agent.file_install import HEADER, Placement, install
from corral.agent.host.base import Daemon, Host
from corral.agent.host.packages import Package
from corral.agent.prometheus import PASSWORD, WEB_CONFIG
from corral.model.cluster import ClusterPlan
from corral.model.monitoring import (
    ALERTMANAGER_DIR,
    ALERTMANAGER_PORT,
    PAGERDUTY_KEY,
    PROMETHEUS_USER,
    SLACK_URL,
    WEB_USER,
)

DATA = "/var/lib/corral/alertmanager"  # on the state volume: a new head keeps silences
OWN_PASSWORD = f"{ALERTMANAGER_DIR}/password"  # Prometheus's copy, with which it sends alerts
POLL_EVERY_S = 30.0
READ_EVERY_S = 300.0  # two secrets cost 0.09 USD a month (Secrets Manager: 0.05 USD for 10,000 calls)
_AMTOOL = f"{ALERTMANAGER_DIR}/amtool.yml"
_PROGRAM = "/usr/bin/prometheus-alertmanager"
_PACKAGE = Package(name="prometheus-alertmanager", program=_PROGRAM)
_OPTIONS = (
    f"--config.file={ALERTMANAGER_DIR}/alertmanager.yml",
    f"--storage.path={DATA}",
    f"--web.listen-address=127.0.0.1:{ALERTMANAGER_PORT}",
    f"--web.config.file={WEB_CONFIG}",
    "--cluster.listen-address=",
)

log = logging.getLogger("corral.agent")


class AlertSecretError(AgentError):
    """A secret cannot be read, or does not hold what the receiver needs."""


def alertmanager() -> Daemon:
    """Alertmanager's daemon. Its unit reads its options from /etc/default."""
    return Daemon(
        unit="prometheus-alertmanager",
        command=(_PROGRAM,),
        user=PROMETHEUS_USER,
        private_dirs=(DATA,),
        foreground=_OPTIONS,
    )


def start_alertmanager(plan: ClusterPlan, host: Host, root: Path = Path("/")) -> None:
    """Install and start Alertmanager if somebody gets alerts, after Prometheus. A failure is logged."""
    if not plan.monitoring.alerts:
        return
    try:
        host.install((_PACKAGE,))
        install(_files(root), root)
        host.start(alertmanager())
    except (AgentError, OSError) as error:
        log.error("Alertmanager does not run: %s", error)


def restart_alertmanager(plan: ClusterPlan, host: Host, root: Path = Path("/")) -> None:
    """Start Alertmanager with new files, if somebody gets alerts; a running one is restarted."""
    if not plan.monitoring.alerts:
        return
    start_alertmanager(plan, host, root)
    try:
        host.restart(alertmanager())
    except AgentError as error:
        log.error("Alertmanager does not run: %s", error)


def _files(root: Path) -> tuple[Placement, ...]:
    """Its options, Prometheus's copy of the password, and what makes root's amtool find it. Raises OSError."""
    password = (root / PASSWORD.lstrip("/")).read_bytes()
    login = f"{HEADER}basic_auth: {{username: {WEB_USER}, password_file: {PASSWORD}}}\n"
    amtool = f"{HEADER}alertmanager.url: http://127.0.0.1:{ALERTMANAGER_PORT}\nhttp.config.file: {_AMTOOL}\n"
    return (
        Placement(
            path="/etc/default/prometheus-alertmanager", content=f'{HEADER}ARGS="{" ".join(_OPTIONS)}"\n'.encode()
        ),
        Placement(path=OWN_PASSWORD, content=password, mode=0o400, owner=PROMETHEUS_USER),
        Placement(path=_AMTOOL, content=login.encode()),
        Placement(path="/etc/prometheus/amtool.yml", content=amtool.encode()),
    )


@dataclass(kw_only=True)
class AlertSecretsTask:
    """Keeps the files of the secrets as the plan names them, and as Secrets Manager has them.

    A new name is read at the next call, a new value within `READ_EVERY_S`. Without an answer, a file stays as it is.
    `read`: the text of a secret by its name; raises AgentError.
    """

    plan: Callable[[], ClusterPlan]
    read: Callable[[str], str]
    clock: Callable[[], float]
    root: Path = Path("/")
    _names: Mapping[str, str] = field(default_factory=dict)
    _read_at: float = 0.0

    def __call__(self) -> None:
        """Read the secrets if they are due. Raises AlertSecretError after trying all."""
        alerts = self.plan().monitoring.alerts
        names = alerts.secrets if alerts else {}
        for path in {SLACK_URL, PAGERDUTY_KEY} - names.keys():
            self._file(path).unlink(missing_ok=True)
        if not names or not self._file(OWN_PASSWORD).exists():  # without it the package's user may be missing, too
            return
        now = self.clock()
        if names == self._names and now - self._read_at < READ_EVERY_S:
            return
        self._names, self._read_at = names, now
        problems = [problem for path, name in names.items() if (problem := self._write(path, name))]
        if problems:
            raise AlertSecretError("; ".join(problems))

    def _write(self, path: str, name: str) -> str:
        """Write the secret of this name; the problem if that fails."""
        try:
            content = _checked(path, name, self.read(name))
        except AgentError as error:
            return str(error)
        install((Placement(path=path, content=content.encode(), mode=0o400, owner=PROMETHEUS_USER),), self.root)
        return ""

    def _file(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def read_secret(client: Any, name: str) -> str:
    """The text of the secret of this name, by this client of Secrets Manager. Raises AlertSecretError."""
    with aws_errors_as(AlertSecretError, f"read the secret {name}"):
        return str(client.get_secret_value(SecretId=name).get("SecretString", ""))


def _checked(path: str, name: str, text: str) -> str:
    """The secret without the line's end that an editor adds. Raises AlertSecretError, which does not quote it."""
    value = text.strip()
    if not value or any(letter in value for letter in ' \n\t"{'):
        raise AlertSecretError(f"the secret {name} must be plain text in one line, not JSON")
    if path == SLACK_URL and not value.startswith("https://"):
        raise AlertSecretError(f"the secret {name} must be the URL of a webhook, https://...")
    return value
