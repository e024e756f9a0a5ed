"""Which system the machines of a box are: this machine's own, or another one whose root directory is given.

Such a root directory is only read: machines have its /usr, and a copy of its /etc. It says in `etc/corral-slurm` which
Slurm it has; tools/slurm_matrix/build_root.sh makes some.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from corral.box.directory import StateDirectory
from corral.box.process import BoxError
from corral.catalog.images import BOX_PROFILE, image_profiles
from corral.catalog.slurm_releases import parse_release

THIS_SYSTEM = Path("/")
VARIABLE = "CORRAL_BOX_SYSTEM"
STAMP = "etc/corral-slurm"


def chosen_system(environ: Mapping[str, str]) -> Path | None:
    """The root directory that the environment names; None where it names none."""
    named = environ.get(VARIABLE)
    return Path(named) if named else None


def system_of(home: StateDirectory) -> Path:
    """The root directory of the system that the machines of this box are."""
    return home.system.readlink() if home.system.is_symlink() else THIS_SYSTEM


def image_profile(system: Path) -> str:
    """The profile of the catalogue that tells what such machines boot. Raises BoxError where there is none."""
    if system == THIS_SYSTEM:
        return BOX_PROFILE
    try:
        version = (system / STAMP).read_text(encoding="utf-8").strip()
        release = parse_release(version)
    except (OSError, ValueError) as error:
        raise BoxError(f"{system} cannot be the system of a box's machines: {STAMP}: {error}") from None
    known = {parse_release(profile.slurm_version): name for name, profile in image_profiles().items() if profile.box}
    if release not in known:
        names = ", ".join(sorted(image_profiles()[name].slurm_version for name in known.values()))
        raise BoxError(f"{system} has Slurm {version}, the box's machines can have that of {names}")
    return known[release]
