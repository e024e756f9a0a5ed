"""People from a directory: SSSD with the environment's file, and the password that only root of a machine reads.

SSSD answers who somebody is, which groups and keys they have, and remembers it while the directory is away. The
password is in a file of its own, which no other user can read and which comes from Secrets Manager by the machine's own
role: the role of jobs cannot read it, and users do not reach the metadata service.
Sources: sssd.conf(5), "CONFIGURATION SNIPPETS FROM INCLUDE DIRECTORY"; nsswitch.conf(5); sshd_config(5),
AuthorizedKeysCommand.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.agent.file_install import HEADER, Placement, install
from corral.agent.host.base import Daemon, Host
from corral.agent.host.packages import directory_packages
from corral.model.cluster import ClusterPlan
from corral.model.enums import Role
from corral.model.users import DIRECTORY_CA

SSSD_CONF = "/etc/sssd/sssd.conf"
BIND_CONF = "/etc/sssd/conf.d/60-corral.conf"
NSSWITCH = "/etc/nsswitch.conf"
PAM_ACCOUNT = "/etc/pam.d/common-account"
_OF_HEAD = "directory/head-sssd.conf"  # where the head is left to administrators
KEYS_PROGRAM = "/opt/corral/bin/directory-keys"
_FILES = (BIND_CONF, SSSD_CONF, DIRECTORY_CA)
_DATABASES = ("passwd", "group")
_ACCOUNT_PHASE = re.compile(r"\s*-?account\s[^#]*\bpam_sss\.so\b")
# The machine's own files in a line of nsswitch.conf, or all sources if it has others: a name of theirs stays theirs.
_AFTER = re.compile(r"(:\s*(?:files|compat)\b|:[^#]*[^#\s])")
# sshd calls it with a name and the id that the machine has for it. If that is not the directory's, a user of the system
# has the name, and nobody logs in as them by a key in the directory.
_KEYS = """#!/bin/sh
# Managed by corral: written by `corral-agent boot`.
if [ "$(getent --service=sss passwd "$1" | cut -d: -f3)" = "$2" ]; then exec sss_ssh_authorizedkeys "$1"; fi
"""

log = logging.getLogger("corral.agent")


class DirectoryError(AgentError):
    """The password for the directory cannot be read, or this machine would not ask who may log in."""


def sssd() -> Daemon:
    """SSSD, which answers for the directory."""
    return Daemon(unit="sssd", command=("/usr/sbin/sssd",), foreground=("-i",))


def directory_placements(files: Mapping[str, bytes], role: Role) -> tuple[Placement, ...]:
    """SSSD's files but the password, and the program that gives sshd the keys; none without a directory."""
    if (conf := "directory/sssd.conf") not in files:
        return ()
    if role is Role.HEAD and _OF_HEAD in files:
        conf = _OF_HEAD
    ca = "directory/ca.pem"
    return (
        Placement(path=SSSD_CONF, content=files[conf], mode=0o600),
        *((Placement(path=DIRECTORY_CA, content=files[ca]),) if ca in files else ()),
        Placement(path=KEYS_PROGRAM, content=_KEYS.encode(), mode=0o755),
    )


def directory_reads(paths: Iterable[str]) -> bool:
    """True if SSSD reads any of these when it starts."""
    return not set(_FILES).isdisjoint(paths)


def start_directory(
    plan: ClusterPlan, host: Host, secrets: Any, root: Path = Path("/"), *, lists_everybody: bool = False
) -> None:
    """Start SSSD with the plan's directory, if it has one. Raises AgentError.

    `secrets`: boto3's client of Secrets Manager. `lists_everybody`: on the head, which makes homes and accounts.
    """
    if directory := plan.access.directory:
        if not _goes_through_sssd(root):
            _stop_sssd(host, root)
            raise DirectoryError(
                f"{PAM_ACCOUNT} does not ask SSSD, so people who leave the directory could still log in: "
                "run `pam-auth-update --force --enable sss` in the image"
            )
        password = _password(secrets, directory.bind_secret)
        install((_bind(password, lists_everybody=lists_everybody), _nsswitch(root)), root)
        host.start(sssd())


def restart_directory(
    plan: ClusterPlan, host: Host, secrets: Any, root: Path = Path("/"), *, lists_everybody: bool = False
) -> None:
    """Start SSSD with a changed directory, on a machine that may have been without one. Raises AgentError."""
    host.install(directory_packages(plan))
    start_directory(plan, host, secrets, root, lists_everybody=lists_everybody)
    host.restart(sssd())


def stop_directory(plan: ClusterPlan, host: Host, root: Path = Path("/")) -> None:
    """Stop SSSD if the plan has no directory any more. Raises HostError."""
    if not plan.access.directory:
        _stop_sssd(host, root)


def _stop_sssd(host: Host, root: Path) -> None:
    """Stop SSSD, and remove its files, if this machine has them. Raises HostError."""
    if (root / BIND_CONF.lstrip("/")).exists():
        host.stop(sssd())
        for path in _FILES:  # the password first
            (root / path.lstrip("/")).unlink(missing_ok=True)
        log.info("directory: stopped")


def with_sss(nsswitch: str) -> str:
    """nsswitch.conf in which SSSD answers for people and groups, after the machine's own files."""
    lines = nsswitch.splitlines()
    found = {line.partition(":")[0].strip(): number for number, line in enumerate(lines)}
    for database in _DATABASES:
        if database not in found:
            lines.append(f"{database}: files sss")
        elif "sss" not in lines[found[database]].partition("#")[0].split(":", 1)[1].split():
            lines[found[database]] = _AFTER.sub(r"\1 sss", lines[found[database]], count=1)
    return "\n".join(lines) + "\n"


def _nsswitch(root: Path) -> Placement:
    file = root / NSSWITCH.lstrip("/")
    known = file.read_text(encoding="utf-8") if file.exists() else ""
    return Placement(path=NSSWITCH, content=with_sss(known).encode())


def _goes_through_sssd(root: Path) -> bool:
    # libpam-sss enters itself, but pam-auth-update leaves files alone that somebody else has changed. sshd would go on
    # to accept the keys, and nothing would ask the directory whether their owner may still log in.
    file = root / PAM_ACCOUNT.lstrip("/")
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    return any(_ACCOUNT_PHASE.match(line) for line in text.splitlines())


def _bind(password: str, *, lists_everybody: bool) -> Placement:
    everybody = "enumerate = true\n" if lists_everybody else ""
    text = f"{HEADER}[domain/directory]\nldap_default_authtok = {password}\n{everybody}"
    return Placement(path=BIND_CONF, content=text.encode(), mode=0o600)


def _password(client: Any, secret: str) -> str:
    with aws_errors_as(DirectoryError, f"read {secret}"):
        found = client.get_secret_value(SecretId=secret).get("SecretString", "").removesuffix("\n")
    # SSSD reads one line, without the spaces around it.
    if not found or found != found.strip() or not found.isprintable():
        raise DirectoryError(f"{secret} is no password: store one line of text, without spaces at its ends")
    return str(found)
