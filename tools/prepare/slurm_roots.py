"""Other Slurm releases than the system's, each in a root directory of its own, for `make slurm-matrix`.

They come from Debian suites, with the munge, MariaDB and Python that heads and nodes need. debootstrap unpacks each
one into this user's cache and starts nothing in it. The mirror is that of the system's apt sources.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from debian_packages import DebianPackages, with_sudo
from steps import ROOT, CannotPrepareError, Step, cache_dir, output_of, run_quietly, say

SUITES = {"trixie": "24.11", "sid": "26.05"}  # with the Slurm release of 2026-11
PACKAGES = {"debootstrap": "debootstrap"}
BUILD = ROOT / "tools" / "slurm_matrix" / "build_root.sh"
# A root without one of these is from an earlier version of the script, and is built again.
PARTS = ("etc/corral-slurm", "usr/sbin/slurmdbd", "usr/sbin/mariadbd", "usr/bin/python3")
TARGETS = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"]
# Without package lists apt knows no origin, and lists nothing but with this option; only the URL is left to judge by.
URLS = ["apt-get", "indextargets", "--no-release-info", "--format", "||$(REPO_URI)", "Created-By: Packages"]


class SlurmRoots(Step):
    """A root directory for each suite. It is complete when it holds the file with its Slurm release, written last."""

    name = "slurm-roots"

    def __init__(self) -> None:
        self.packages = DebianPackages(PACKAGES)

    def missing(self) -> Sequence[str]:
        """Return a line for each missing root, and one for debootstrap if it is missing too."""
        roots = [
            f"{root_of(suite)}: Debian {suite} with its Slurm, {SUITES[suite]} or newer, by debootstrap"
            f"{with_sudo()} (about 650 MB, some minutes)"
            for suite in absent()
        ]
        return [*(self.packages.missing() if roots else ()), *roots]

    def install(self) -> None:
        """Build the missing roots."""
        if not shutil.which("apt-get"):
            raise CannotPrepareError("Other releases of Slurm come from Debian's suites: this needs Debian or Ubuntu.")
        prefix = root_prefix()
        if self.packages.missing():
            self.packages.install()
        mirror = debian_mirror()
        for suite in absent():
            say(f"Building a Debian {suite} root with debootstrap, some minutes")
            run_quietly(
                [*prefix, "sh", str(BUILD), suite, mirror, str(root_of(suite))],
                f"debootstrap could not build a Debian {suite} root from {mirror}: check the network, and that the "
                "mirror has this suite.",
            )

    def ready(self) -> str:
        """Return the Slurm releases and their directory."""
        found = ((root_of(suite) / "etc" / "corral-slurm").read_text(encoding="utf-8").strip() for suite in SUITES)
        return f"Slurm {' and '.join(found)} in {cache_dir() / 'slurm-roots'}"


def root_of(suite: str) -> Path:
    """Return the path of the suite's root."""
    return cache_dir() / "slurm-roots" / suite


def absent() -> list[str]:
    """Return the suites that have no complete root."""
    return [suite for suite in SUITES if not all(os.path.lexists(root_of(suite) / part) for part in PARTS)]


def debian_mirror() -> str:
    """Return CORRAL_DEBIAN_MIRROR, or the Debian mirror of apt's sources."""
    named = os.environ.get("CORRAL_DEBIAN_MIRROR")
    rows = [line.split("|") for line in (output_of(TARGETS) or output_of(URLS) or "").splitlines()]
    fitting = [uri for origin, label, uri in rows if (origin, label) == ("Debian", "Debian")]
    fitting += [uri for origin, _, uri in rows if not origin and uri.rstrip("/").endswith("/debian")]
    if not (named or fitting):
        raise CannotPrepareError("apt's sources have no Debian mirror: set one with CORRAL_DEBIAN_MIRROR=https://...")
    return named or fitting[0]


def root_prefix() -> list[str]:
    """Return the prefix of a command that needs root. Raises CannotPrepareError without a way to be root."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and (sys.stdin.isatty() or output_of(["sudo", "-n", "true"]) is not None):
        return ["sudo"] if sys.stdin.isatty() else ["sudo", "-n"]
    raise CannotPrepareError("debootstrap needs root: run `make slurm-matrix` as root, or as a user who may use sudo.")
