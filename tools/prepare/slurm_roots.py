"""Other releases of Slurm than the system's, each in a root directory of its own, for `make slurm-matrix`.

Debian suites carry them, with the munge, MariaDB and Python that heads and nodes need beside it; debootstrap unpacks
one into this user's cache, and nothing in it is started. The mirror is
that of the system's own apt sources.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from debian_packages import DebianPackages, with_sudo
from steps import ROOT, CannotPrepareError, Step, answer, cache_dir, say, work

SUITES = {"trixie": "24.11", "sid": "26.05"}  # and the Slurm that each had when this was written
PACKAGES = {"debootstrap": "debootstrap"}
BUILD = ROOT / "tools" / "slurm_matrix" / "build_root.sh"
# A root without one of them was made by an earlier version of the script, and is made anew.
PARTS = ("etc/corral-slurm", "usr/sbin/slurmdbd", "usr/sbin/mariadbd", "usr/bin/python3")
TARGETS = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"]


class SlurmRoots(Step):
    """A root directory for each of the suites. One is complete when it says which Slurm it has, written last."""

    name = "slurm-roots"

    def __init__(self) -> None:
        self.packages = DebianPackages(PACKAGES)

    def missing(self) -> Sequence[str]:
        """Return a line for each root that is not there, and one for debootstrap if they need it."""
        roots = [
            f"{root_of(suite)}: Debian {suite} with its Slurm, {SUITES[suite]} or newer, by debootstrap"
            f"{with_sudo()} (about 650 MB, some minutes)"
            for suite in absent()
        ]
        return [*(self.packages.missing() if roots else ()), *roots]

    def install(self) -> None:
        """Make the roots that are not there."""
        if not shutil.which("apt-get"):
            raise CannotPrepareError("Other releases of Slurm come from Debian's suites: this needs Debian or Ubuntu.")
        prefix = root_prefix()
        if self.packages.missing():
            self.packages.install()
        mirror = debian_mirror()
        for suite in absent():
            say(f"Making a Debian {suite} with debootstrap, some minutes")
            work(
                [*prefix, "sh", str(BUILD), suite, mirror, str(root_of(suite))],
                f"debootstrap could not make a Debian {suite} from {mirror}: does this mirror have that suite, and is "
                "there a network?",
            )

    def ready(self) -> str:
        """Return what is there."""
        found = ((root_of(suite) / "etc" / "corral-slurm").read_text(encoding="utf-8").strip() for suite in SUITES)
        return f"Slurm {' and '.join(found)} in {cache_dir() / 'slurm-roots'}"


def root_of(suite: str) -> Path:
    """Return where the root with this suite is, or shall be."""
    return cache_dir() / "slurm-roots" / suite


def absent() -> list[str]:
    """Return the suites that have no complete root."""
    return [suite for suite in SUITES if not all(os.path.lexists(root_of(suite) / part) for part in PARTS)]


def debian_mirror() -> str:
    """Return the Debian mirror that apt itself uses, or CORRAL_DEBIAN_MIRROR."""
    named = os.environ.get("CORRAL_DEBIAN_MIRROR")
    rows = [line.split("|") for line in (answer(TARGETS) or "").splitlines()]
    # Without fetched lists apt does not know whose a source is; the address is all there is then.
    fitting = [uri for origin, label, uri in rows if (origin, label) == ("Debian", "Debian")]
    fitting += [uri for origin, _, uri in rows if not origin and uri.rstrip("/").endswith("/debian")]
    if not (named or fitting):
        raise CannotPrepareError(
            "No Debian mirror is known: apt's sources name none, so name one: CORRAL_DEBIAN_MIRROR=https://..."
        )
    return named or fitting[0]


def root_prefix() -> list[str]:
    """Return what to put before a command that needs root; raise if there is no way to be root."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and (sys.stdin.isatty() or answer(["sudo", "-n", "true"]) is not None):
        return ["sudo"] if sys.stdin.isatty() else ["sudo", "-n"]
    raise CannotPrepareError(
        "debootstrap needs root, and there is no sudo that works here: run `make slurm-matrix` where there is one."
    )
