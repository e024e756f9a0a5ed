"""What a machine has and lacks for corral's purposes, on a terminal and as a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.console import RenderableType

from corral.report.documents import Document
from corral.report.tables import facts, heading


class Purpose(StrEnum):
    """What people do with corral; the values are shown."""

    PLAN = "plan and render"
    AWS = "up on AWS"
    BOX = "up in the box"
    SLURM = "tests with real Slurm"
    CONNECT = "a shell on the head"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked for. `found`: what is there, None if it is missing. `fix`: one line that gets it."""

    name: str
    found: str | None
    needed_for: tuple[Purpose, ...]
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What the system tells of itself. `release`: of the kernel; `directory`: where the command was called."""

    system: str
    release: str
    machine: str = "x86_64"
    directory: str = "/"


NOT_LINUX = "plan, render, up, status, down and sweep on AWS work here; the box, and the real Slurm in it, need Linux"
WSL_CLOCK = "WSL: its clock may be late after the computer slept, and AWS then refuses calls: `sudo hwclock -s`"
WSL_1 = "4.4.0-"  # what it says of its kernel, which is none; those of WSL 2 began with 4.19
WINDOWS_DISK = re.compile(r"/mnt/[a-z](/|$)")


def platform_notes(platform: Platform) -> tuple[str, ...]:
    """What is worth knowing of this kind of system; nothing of an ordinary Linux."""
    release = platform.release.lower()
    match platform.system:
        case "Darwin":
            return (f"macOS: {NOT_LINUX} - a virtual machine has it (lima, UTM, Docker Desktop's do)", *_brew(platform))
        case "Windows":
            return ("Windows: corral runs in WSL 2: `wsl --install`, then install it there",)
        case "Linux" if "microsoft" in release and release.startswith(WSL_1):
            return ("WSL 1 has no Linux kernel: the box cannot run - `wsl --set-version DISTRIBUTION 2`",)
        case "Linux" if "microsoft" in release:
            return (WSL_CLOCK, *_windows_disk(platform.directory))
    return ()


def is_at_least(found: str, least: str) -> bool:
    """True if the version is not older; versions are numbers with dots between them."""
    return _numbers(found) >= _numbers(least)


def clock_finding(synchronised: str | None) -> Finding:
    """Whether the clock follows a time server, by what `timedatectl` says: yes or no, None where it says nothing."""
    told = {"yes": "follows a time server", None: "whether it follows a time server is not known here"}
    return Finding(
        name="clock",
        found=told.get(synchronised),
        needed_for=(),
        fix="AWS refuses calls of a clock that is 5 minutes wrong: `sudo timedatectl set-ntp true`",
    )


def _brew(platform: Platform) -> tuple[str, ...]:
    where = "/opt/homebrew" if platform.machine == "arm64" else "/usr/local"
    tools = "brew install pulumi/tap/pulumi awscli; brew install --cask session-manager-plugin"
    return (f"macOS: {tools} (Homebrew in {where})",)


def _windows_disk(directory: str) -> tuple[str, ...]:
    if not WINDOWS_DISK.match(directory):
        return ()
    return (f"WSL: {directory} is on a disk of Windows, which is slow and knows no file modes: work below your home",)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def possible(findings: Sequence[Finding], purpose: Purpose) -> bool:
    """True if nothing that this purpose needs is missing."""
    return all(finding.found is not None for finding in findings if purpose in finding.needed_for)


def doctor_view(findings: Sequence[Finding], notes: Sequence[str] = ()) -> Iterator[RenderableType]:
    """What is there, then what is missing with its fix, then what is possible, and what is peculiar to the system."""
    yield heading("Found")
    yield facts((finding.name, finding.found) for finding in findings if finding.found is not None)
    if missing := [finding for finding in findings if finding.found is None]:
        yield heading("Missing")
        yield facts(row for one in missing for row in _missing(one))
    yield heading("Possible")
    yield facts((purpose.value, _verdict(findings, purpose)) for purpose in Purpose)
    if notes:
        yield heading("This system")
        yield from notes


def doctor_document(findings: Sequence[Finding], notes: Sequence[str] = ()) -> Document:
    """What `corral doctor --json` prints."""
    return {
        "schema": "corral.doctor/1",
        "findings": [
            {
                "name": one.name,
                "found": one.found,
                "needed_for": [p.name.lower() for p in one.needed_for],
                "fix": one.fix,
            }
            for one in findings
        ],
        "notes": list(notes),
        "possible": {purpose.name.lower(): possible(findings, purpose) for purpose in Purpose},
    }


def _missing(finding: Finding) -> Iterator[tuple[str, str]]:
    purposes = ", ".join(finding.needed_for)
    yield finding.name, f"needed for {purposes}" if purposes else "optional"
    yield "", finding.fix


def _verdict(findings: Sequence[Finding], purpose: Purpose) -> str:
    lacking = [one.name for one in findings if purpose in one.needed_for and one.found is None]
    return f"no, for want of {', '.join(lacking)}" if lacking else "yes"
