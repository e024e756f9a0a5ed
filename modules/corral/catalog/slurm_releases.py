"""The releases of Slurm that are known here, and how a release is read and written."""

from __future__ import annotations

Release = tuple[int, int]

RELEASES: tuple[Release, ...] = ((22, 5), (23, 2), (23, 11), (24, 5), (24, 11), (25, 5), (25, 11), (26, 5))
OLDEST, NEWEST = RELEASES[0], RELEASES[-1]


def parse_release(version: str) -> Release:
    """The release that a version belongs to: `23.11.4` is of 23.11. Raises ValueError for what is no version."""
    numbers = version.split(".")[:2]
    if len(numbers) < 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        raise ValueError(f"{version!r} is no version of Slurm - write it as 23.11 or 23.11.4")
    return int(numbers[0]), int(numbers[1])


def release_text(release: Release) -> str:
    """As Slurm writes it: `23.02`."""
    return f"{release[0]}.{release[1]:02}"
