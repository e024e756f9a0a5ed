"""The Slurm release that files are written for if the cluster's own release is not a known one."""

from corral.catalog.slurm.releases import OLDEST, RELEASES, Release, parse_release, release_text


class ReleaseError(ValueError):
    """An unsupported Slurm release; the text is a message for the user."""


def written_release(version: str) -> Release:
    """The release that files for this version are written for: its own, or the newest known one before it.

    Raises ReleaseError for a version older than every known one.
    """
    release = parse_release(version)
    if release < OLDEST:
        raise ReleaseError(
            f"Slurm {version} is too old: corral writes for {release_text(OLDEST)} and later - take a newer image"
        )
    return max(known for known in RELEASES if known <= release)


def release_remark(version: str) -> str | None:
    """A comment for files that are written for another release than the cluster's."""
    written = written_release(version)
    if written == parse_release(version):
        return None
    return f"corral does not know this release: written as for {release_text(written)}."
