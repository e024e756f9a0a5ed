"""The Slurm releases that can run here, with their root directories: the system's, and those in the cache.

tools/prepare builds them.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from corral.catalog.slurm.releases import parse_release, release_text
from corral.model.cache import cache_directory

SYSTEM = Path("/")
_SBIN = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"))


def slurm_roots() -> Mapping[str, Path]:
    """The root directory of each release, such as 24.11. The system's has priority over the cache."""
    cached = sorted((cache_directory(os.environ) / "slurm-roots").glob("*/etc/corral-slurm"))
    found = {_release(stamp.read_text(encoding="utf-8")): stamp.parents[1] for stamp in cached}
    system = system_release()
    return dict(sorted({**found, **({system: SYSTEM} if system else {})}.items()))


def system_release() -> str | None:
    """The release of the system's slurmctld; None without one."""
    slurmctld = shutil.which("slurmctld", path=_SBIN)
    if slurmctld is None:
        return None
    version = subprocess.run([slurmctld, "-V"], capture_output=True, text=True, check=True).stdout
    return _release(version.split()[-1])


def _release(version: str) -> str:
    return release_text(parse_release(version.strip()))
