"""The system of a box's machines: the host's, or another one with its own root directory.

The root directory is read-only: machines use its /usr and a copy of its /etc. Its file `etc/corral-slurm` has the
version of Slurm. tools/slurm_matrix/build_root.sh builds such directories.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from corral.box.daemon.daemon_process import BoxError
from corral.box.state.directory import StateDirectory
from corral.catalog.aws.images import BOX_PROFILE, image_profiles
from corral.catalog.slurm.releases import parse_release

HOST_SYSTEM = Path("/")
VARIABLE = "CORRAL_BOX_SYSTEM"
SLURM_VERSION_FILE = "etc/corral-slurm"


def system_from_environment(environ: Mapping[str, str]) -> Path | None:
    """The root directory in the environment, or None."""
    named = environ.get(VARIABLE)
    return Path(named) if named else None


def system_of(home: StateDirectory) -> Path:
    """The root directory of this box's machines."""
    return home.system.readlink() if home.system.is_symlink() else HOST_SYSTEM


def image_profile(system: Path) -> str:
    """The catalog's image profile for this system. Raises BoxError if there is none."""
    if system == HOST_SYSTEM:
        return BOX_PROFILE
    try:
        version = (system / SLURM_VERSION_FILE).read_text(encoding="utf-8").strip()
        release = parse_release(version)
    except (OSError, ValueError) as error:
        raise BoxError(f"{system} cannot be the system of a box's machines: {SLURM_VERSION_FILE}: {error}") from None
    known = {parse_release(profile.slurm_version): name for name, profile in image_profiles().items() if profile.box}
    if release not in known:
        names = ", ".join(sorted(image_profiles()[name].slurm_version for name in known.values()))
        raise BoxError(f"{system} has Slurm {version}; the box supports {names}")
    return known[release]
