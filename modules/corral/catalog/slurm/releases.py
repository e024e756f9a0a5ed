"""The known releases of Slurm; parse and format releases."""

from __future__ import annotations

Release = tuple[int, int]

RELEASES: tuple[Release, ...] = ((22, 5), (23, 2), (23, 11), (24, 5), (24, 11), (25, 5), (25, 11), (26, 5))
OLDEST, NEWEST = RELEASES[0], RELEASES[-1]


class InvalidVersion(ValueError):
    """A text that is not a version of Slurm. `hint` ends the message."""

    def __init__(self, version: str) -> None:
        self.message, self.hint = f"{version!r} is not a Slurm version", "write it like 23.11 or 23.11.4"
        super().__init__(f"{self.message} - {self.hint}")


def parse_release(version: str) -> Release:
    """Return the release of a version: 23.11 for `23.11.4`. Raises InvalidVersion."""
    numbers = version.split(".")[:2]
    if len(numbers) < 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        raise InvalidVersion(version)
    return int(numbers[0]), int(numbers[1])


def release_text(release: Release) -> str:
    """Format a release as Slurm does: `23.02`."""
    return f"{release[0]}.{release[1]:02}"
