"""SSSD on a machine: its password, the machine's sources of people, and when it starts and stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corral.agent.directory import DirectoryError, restart_directory, start_directory, with_sss
from corral.agent.host.base import Daemon
from corral.agent.host.packages import Package, head_packages, login_packages, node_packages
from corral.model.users import AccessPlan
from render.plans import DIRECTORY, cpu, dev

PLAN = replace(dev(cpu()), access=AccessPlan(directory=DIRECTORY))


@dataclass
class FakeHost:
    """A host that records what is installed and started."""

    calls: list[str] = field(default_factory=list)

    def install(self, packages: Sequence[Package]) -> None:
        self.calls.append(" ".join(("install", *(package.name for package in packages))))

    def start(self, daemon: Daemon) -> None:
        self.calls.append(f"start {daemon.unit}")

    def stop(self, daemon: Daemon) -> None:
        self.calls.append(f"stop {daemon.unit}")

    def restart(self, daemon: Daemon) -> None:
        self.calls.append(f"restart {daemon.unit}")


def secrets(value: str | None = "pass word") -> Any:
    """Secrets Manager with this text in people/reader; None for one of bytes."""
    answer = {"SecretBinary": b"x"} if value is None else {"SecretString": value}
    return SimpleNamespace(get_secret_value=lambda SecretId: {"people/reader": answer}[SecretId])


ACCOUNT = "account required pam_permit.so\n"
WITH_SSSD = f"{ACCOUNT}account [default=bad success=ok user_unknown=ignore] pam_sss.so\n"


def with_pam(root: Path, text: str = WITH_SSSD) -> None:
    file = root / "etc/pam.d/common-account"
    file.parent.mkdir(parents=True)
    file.write_text(text)


def started(root: Path, value: str | None = "pass word", *, lists_everybody: bool = False) -> str:
    host: Any = FakeHost()
    with_pam(root)
    start_directory(PLAN, host, secrets(value), root, lists_everybody=lists_everybody)
    assert host.calls == ["start sssd"]
    return (root / "etc/sssd/conf.d/60-corral.conf").read_text()


def test_the_password_is_in_a_file_of_roots(tmp_path: Path) -> None:
    assert started(tmp_path).splitlines()[1:] == ["[domain/directory]", "ldap_default_authtok = pass word"]
    assert (tmp_path / "etc/sssd/conf.d/60-corral.conf").stat().st_mode & 0o777 == 0o600


def test_the_head_lists_everybody(tmp_path: Path) -> None:
    assert started(tmp_path, lists_everybody=True).splitlines()[-1] == "enumerate = true"


def test_a_newline_at_its_end_is_not_of_the_password(tmp_path: Path) -> None:
    assert started(tmp_path, "pass\n").splitlines()[-1] == "ldap_default_authtok = pass"


@pytest.mark.parametrize("value", [None, "", " pass", "pass\n[domain/other]", "pass\0"])
def test_a_secret_that_is_no_line_of_text_is_refused(tmp_path: Path, value: str | None) -> None:
    with pytest.raises(DirectoryError, match="people/reader is no password: store one line of text"):
        started(tmp_path, value)
    assert not (tmp_path / "etc/sssd").exists()


@pytest.mark.parametrize(
    "text",
    [ACCOUNT, f"{ACCOUNT}# pam_sss.so\n", f"{ACCOUNT}session optional pam_sss.so\n", None],
    ids=["without", "comment", "sessions alone", "no file"],
)
def test_a_machine_whose_logins_do_not_go_through_sssd_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        with_pam(tmp_path, text)
    host: Any = FakeHost()
    with pytest.raises(DirectoryError, match=r"/etc/pam\.d/common-account does not ask SSSD, so people who leave"):
        start_directory(PLAN, host, secrets(), tmp_path)
    assert host.calls == []


def test_such_a_machine_that_ran_sssd_before_stops_it(tmp_path: Path) -> None:
    started(tmp_path)
    (tmp_path / "etc/pam.d/common-account").write_bytes(b"# \xe9\naccount required pam_permit.so\n")
    host: Any = FakeHost()
    with pytest.raises(DirectoryError, match="does not ask SSSD"):
        start_directory(PLAN, host, secrets(), tmp_path)
    assert (host.calls, [file.name for file in (tmp_path / "etc/sssd/conf.d").iterdir()]) == (["stop sssd"], [])


def test_a_machine_that_had_no_directory_gets_the_packages_first(tmp_path: Path) -> None:
    host: Any = FakeHost()
    with_pam(tmp_path)
    restart_directory(PLAN, host, secrets(), tmp_path)
    assert host.calls == ["install libnss-sss libpam-sss sssd-ldap", "start sssd", "restart sssd"]


def test_without_a_directory_nothing_starts(tmp_path: Path) -> None:
    host: Any = FakeHost()
    start_directory(dev(), host, None, tmp_path)
    assert (host.calls, list(tmp_path.iterdir())) == ([], [])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("passwd: files systemd\ngroup: files systemd\n", "passwd: files sss systemd\ngroup: files sss systemd\n"),
        ("passwd:\t files sss\ngroup:\t files sss\n", "passwd:\t files sss\ngroup:\t files sss\n"),
        ("passwd: compat nis\ngroup: files # sss\n", "passwd: compat sss nis\ngroup: files sss # sss\n"),
        ("passwd: db nis  # own\ngroup: db\n", "passwd: db nis sss  # own\ngroup: db sss\n"),
        ("# passwd: x\nhosts: files dns\n", "# passwd: x\nhosts: files dns\npasswd: files sss\ngroup: files sss\n"),
        ("", "passwd: files sss\ngroup: files sss\n"),
    ],
)
def test_sssd_answers_after_the_machines_own_files(before: str, after: str) -> None:
    assert with_sss(before) == after


def test_every_machine_of_a_cluster_with_a_directory_has_sssd() -> None:
    machines = (head_packages(PLAN), login_packages(PLAN), node_packages(PLAN, PLAN.queues[0]))
    assert [[one.name for one in packages if "sss" in one.name] for packages in machines] == [
        ["libnss-sss", "libpam-sss", "sssd-ldap"]
    ] * 3
    assert not [one.name for one in head_packages(dev()) if "sss" in one.name]
