"""For which release of Slurm files are written, where the cluster's own is another one than those that are known."""

from corral.catalog.slurm_releases import OLDEST, RELEASES, Release, parse_release, release_text


class ReleaseError(ValueError):
    """A Slurm that corral cannot write for; the text is for a person."""


def written_release(version: str) -> Release:
    """The release that files for this version are written for: its own, or the newest known one before it.

    Raises ReleaseError for a version that is older than all that are known.
    """
    release = parse_release(version)
    if release < OLDEST:
        raise ReleaseError(
            f"Slurm {version} is too old: corral writes for {release_text(OLDEST)} and later - take a newer image"
        )
    return max(known for known in RELEASES if known <= release)


def release_note(version: str) -> str | None:
    """What the reader of a file should know where it is not written for its Slurm's own release."""
    written = written_release(version)
    if written == parse_release(version):
        return None
    return f"corral does not know this release: written as for {release_text(written)}."
