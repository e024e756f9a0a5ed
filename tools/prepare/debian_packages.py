"""Programs that come from the distribution: real Slurm, munge, MariaDB, sshd, cloud-init's schema, a browser and more.

Installing them starts no service and enables none: the tests and the box start their own. What needs root is in
tools/install_packages.sh, so that one sudo covers it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from steps import ROOT, CannotPrepareError, Step, answer, say

SHELLCHECK = {"shellcheck": "shellcheck"}
BROWSER = {"chromium": "chromium"}  # one that is on PATH from elsewhere does as well: Ubuntu has it as a snap alone
ALL = {  # package: a program in it, by which a system that is not Debian is judged
    "cloud-init": "cloud-init",
    "mariadb-server": "mariadbd",
    "munge": "munged",
    "openssh-server": "sshd",
    "shellcheck": "shellcheck",
    "slurm-client": "scontrol",
    "slurm-wlm-basic-plugins": "slurmctld",  # plugins have no program of their own
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "tmux": "tmux",
    "uidmap": "newuidmap",
}
# A user's PATH often lacks the sbin directories, where Debian puts the daemons.
SEARCH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


class DebianPackages(Step):
    """Packages of Debian or Ubuntu; on other systems the same programs, if they are on PATH, do as well."""

    name = "debian"

    def __init__(self, packages: Mapping[str, str], shown: str = "") -> None:
        self.packages = packages
        self.shown = shown or " ".join(sorted(packages))

    def missing(self) -> Sequence[str]:
        """Return one line that names the packages that are not installed."""
        names = " ".join(self.absent())
        return (f"Debian packages{with_sudo()}: {names} (no service is started or enabled)",) if names else ()

    def absent(self) -> list[str]:
        """Return the packages that are not there, sorted."""
        if self.packages != BROWSER and shutil.which("dpkg-query"):
            installed = installed_packages(self.packages)
            return sorted(set(self.packages) - installed)
        return sorted(package for package, program in self.packages.items() if not shutil.which(program, path=SEARCH))

    def install(self) -> None:
        """Install what is absent with apt-get, as root."""
        absent = self.absent()
        if not shutil.which("apt-get"):
            raise CannotPrepareError(
                "This is not Debian or Ubuntu: install what these Debian packages hold and run this again: "
                f"{' '.join(absent)}."
            )
        say(f"Installing {' '.join(absent)} with apt-get")
        script = [*as_root(absent), "sh", str(ROOT / "tools" / "install_packages.sh"), *absent]
        if subprocess.run(script, check=False).returncode or self.absent():
            raise CannotPrepareError(
                f"apt-get could not install them: is there a network, and do its sources have {' '.join(absent)}?"
            )

    def ready(self) -> str:
        """Return what is there."""
        return self.shown


def installed_packages(packages: Mapping[str, str]) -> set[str]:
    """Return which of the packages are installed whole; dpkg-query fails if it knows one of them not at all."""
    shown = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\\n", *packages]
    done = subprocess.run(shown, capture_output=True, text=True, check=False)
    pairs = (line.split() for line in done.stdout.splitlines())
    return {pair[0] for pair in pairs if pair[1:] == ["installed"]}


def with_sudo() -> str:
    """Return ' (with sudo)' where that is how root is reached."""
    return "" if os.geteuid() == 0 else " (with sudo)"


def as_root(packages: Sequence[str]) -> list[str]:
    """Return what to put before a command that needs root; raise if there is no way to be root."""
    if os.geteuid() == 0:
        return []
    by_hand = f"as root, run: apt-get install --no-install-recommends {' '.join(packages)}"
    if not shutil.which("sudo"):
        raise CannotPrepareError(f"Packages are missing and there is no sudo: {by_hand}.")
    if sys.stdin.isatty():
        return ["sudo"]
    if answer(["sudo", "-n", "true"]) is None:
        raise CannotPrepareError(f"Packages are missing and sudo would ask for a password: {by_hand}.")
    return ["sudo", "-n"]
