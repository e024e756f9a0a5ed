"""Programs from the distribution: Slurm, munge, MariaDB, Prometheus, sshd, cloud-init's schema, a browser and more.

The installation starts and enables no service: the tests and the box start their own. All steps that need root are in
tools/install_packages.sh, so one sudo covers them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from steps import ROOT, CannotPrepareError, Step, output_of, say

SHELLCHECK = {"shellcheck": "shellcheck"}
BROWSER = {"chromium": "chromium"}  # any chromium on PATH will do: Ubuntu has it only as a snap
VIRTUAL_MACHINES = {"mmdebstrap": "mmdebstrap", "openssh-client": "ssh"}  # QEMU and the image come from these
CONTAINERS = {  # of compilers and headers, programs of what they come with
    "bsdextrautils": "column",
    "curl": "curl",
    "gcc": "gcc",
    "jq": "jq",
    "libbsd-dev": "gcc",
    "libslurm-dev": "gcc",
    "make": "make",
    "parallel": "parallel",
    "squashfs-tools": "mksquashfs",
    "zstd": "zstd",
}
ALL = {  # package: one of its programs, to look for on systems other than Debian
    "cloud-init": "cloud-init",
    "ldap-utils": "ldapsearch",
    "libnss-sss": "sssd",
    "libpam-sss": "sssd",
    "mariadb-server": "mariadbd",
    "munge": "munged",
    "openssh-server": "sshd",
    "prometheus": "promtool",
    "prometheus-alertmanager": "amtool",
    "shellcheck": "shellcheck",
    "slapd": "slapd",
    "slurm-client": "scontrol",
    "slurm-wlm-basic-plugins": "slurmctld",  # plugins have no program of their own
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "sssd-ldap": "sssd",
    "tmux": "tmux",
    "udhcpc": "udhcpc",
    "uidmap": "newuidmap",
}
# A user's PATH often lacks the sbin directories, where Debian puts the daemons.
SEARCH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


class DebianPackages(Step):
    """Packages of Debian or Ubuntu; on other systems, the same programs on PATH."""

    name = "debian"

    def __init__(self, packages: Mapping[str, str], shown: str = "") -> None:
        self.packages = packages
        self.shown = shown or " ".join(sorted(packages))

    def missing(self) -> Sequence[str]:
        """Return one line with the packages that are not installed; none if all are."""
        names = " ".join(self.absent())
        return (f"Debian packages{with_sudo()}: {names} (no service is started or enabled)",) if names else ()

    def absent(self) -> list[str]:
        """Return the packages that are not installed, sorted."""
        if self.packages != BROWSER and shutil.which("dpkg-query"):
            installed = installed_packages(self.packages)
            return sorted(set(self.packages) - installed)
        return sorted(package for package, program in self.packages.items() if not shutil.which(program, path=SEARCH))

    def install(self) -> None:
        """Install what is absent with apt-get, as root."""
        absent = self.absent()
        if not shutil.which("apt-get"):
            raise CannotPrepareError(
                "This is not Debian or Ubuntu: install the programs of these Debian packages, and run this again: "
                f"{' '.join(absent)}."
            )
        say(f"Installing {' '.join(absent)} with apt-get")
        script = [*as_root(absent), "sh", str(ROOT / "tools" / "install_packages.sh"), *absent]
        if subprocess.run(script, check=False).returncode or self.absent():
            raise CannotPrepareError(
                f"apt-get failed: check the network, and that its sources have {' '.join(absent)}."
            )

    def ready(self) -> str:
        """Return the words that describe the packages."""
        return self.shown


def installed_packages(packages: Mapping[str, str]) -> set[str]:
    """Return the packages that are completely installed. dpkg-query fails if it does not know one of them."""
    shown = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\\n", *packages]
    done = subprocess.run(shown, capture_output=True, text=True, check=False)
    pairs = (line.split() for line in done.stdout.splitlines())
    return {pair[0] for pair in pairs if pair[1:] == ["installed"]}


def with_sudo() -> str:
    """Return ' (with sudo)' unless this user is root."""
    return "" if os.geteuid() == 0 else " (with sudo)"


def as_root(packages: Sequence[str]) -> list[str]:
    """Return the prefix of a command that needs root. Raises CannotPrepareError without a way to be root."""
    if os.geteuid() == 0:
        return []
    remedy = f"as root, run: apt-get install --no-install-recommends {' '.join(packages)}"
    if not shutil.which("sudo"):
        raise CannotPrepareError(f"Packages are missing and there is no sudo: {remedy}.")
    if sys.stdin.isatty():
        return ["sudo"]
    if output_of(["sudo", "-n", "true"]) is None:
        raise CannotPrepareError(f"Packages are missing and sudo needs a password: {remedy}.")
    return ["sudo", "-n"]
