"""Findings of `corral doctor` about this computer, on a terminal and as a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.console import RenderableType

from corral.report.plan.plan_json import Document
from corral.report.tables import facts, heading


class Purpose(StrEnum):
    """What corral can do on a computer; the values are displayed."""

    PLAN = "plan and render"
    AWS = "up on AWS"
    BOX = "up in the box"
    SLURM = "tests with real Slurm"
    CONNECT = "a shell on the head"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """The result of one check. `found`: None if it is missing. `fix`: one line that installs it."""

    name: str
    found: str | None
    needed_for: tuple[Purpose, ...]
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """The operating system. `release`: of the kernel; `directory`: the working directory of the command."""

    system: str
    release: str
    machine: str = "x86_64"
    directory: str = "/"


NOT_LINUX = "plan, render, up, status, down and cleanup on AWS work here; the box, and the real Slurm in it, need Linux"
WSL_CLOCK = "WSL: after the computer slept, the clock may be slow and AWS refuses calls - `sudo hwclock -s` sets it"
WSL_1 = "4.4.0-"  # the kernel release that WSL 1 reports; those of WSL 2 start at 4.19
WINDOWS_DISK = re.compile(r"/mnt/[a-z](/|$)")


def platform_hints(platform: Platform) -> tuple[str, ...]:
    """Hints about this kind of system; none for an ordinary Linux."""
    release = platform.release.lower()
    match platform.system:
        case "Darwin":
            return (f"macOS: {NOT_LINUX} - use a Linux virtual machine (lima, UTM, Docker Desktop)", *_brew(platform))
        case "Windows":
            return ("Windows: corral runs in WSL 2 - run `wsl --install`, then install corral there",)
        case "Linux" if "microsoft" in release and release.startswith(WSL_1):
            return ("WSL 1 has no Linux kernel: the box cannot run - run `wsl --set-version DISTRIBUTION 2`",)
        case "Linux" if "microsoft" in release:
            return (WSL_CLOCK, *_windows_disk(platform.directory))
    return ()


def is_at_least(found: str, least: str) -> bool:
    """True if the version is not older; both are numbers separated by dots."""
    return _numbers(found) >= _numbers(least)


def clock_finding(synchronised: str | None) -> DoctorFinding:
    """The finding about the clock. `synchronised`: yes or no as `timedatectl` prints it, None if it prints nothing."""
    states = {"yes": "synchronised with a time server", None: "synchronisation unknown"}
    return DoctorFinding(
        name="clock",
        found=states.get(synchronised),
        needed_for=(),
        fix="run `sudo timedatectl set-ntp true`: AWS refuses calls if the clock is off by 5 minutes",
    )


def _brew(platform: Platform) -> tuple[str, ...]:
    where = "/opt/homebrew" if platform.machine == "arm64" else "/usr/local"
    tools = "brew install pulumi/tap/pulumi awscli; brew install --cask session-manager-plugin"
    return (f"macOS: {tools} (Homebrew in {where})",)


def _windows_disk(directory: str) -> tuple[str, ...]:
    if not WINDOWS_DISK.match(directory):
        return ()
    return (
        f"WSL: {directory} is on a Windows disk, which is slow and has no file modes - work below your home directory",
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def possible(findings: Sequence[DoctorFinding], purpose: Purpose) -> bool:
    """True if nothing is missing for this purpose."""
    return all(finding.found is not None for finding in findings if purpose in finding.needed_for)


def doctor_view(findings: Sequence[DoctorFinding], hints: Sequence[str] = ()) -> Iterator[RenderableType]:
    """What was found, what is missing with its fix, what is possible, and hints about the system."""
    yield heading("Found")
    yield facts((finding.name, finding.found) for finding in findings if finding.found is not None)
    if missing := [finding for finding in findings if finding.found is None]:
        yield heading("Missing")
        yield facts(row for one in missing for row in _missing(one))
    yield heading("Possible")
    yield facts((purpose.value, _verdict(findings, purpose)) for purpose in Purpose)
    if hints:
        yield heading("This system")
        yield from hints


def doctor_document(findings: Sequence[DoctorFinding], hints: Sequence[str] = ()) -> Document:
    """The document of `corral doctor --json`."""
    return {
        "schema": "corral.doctor/2",
        "findings": [
            {
                "name": one.name,
                "found": one.found,
                "needed_for": [p.name.lower() for p in one.needed_for],
                "fix": one.fix,
            }
            for one in findings
        ],
        "hints": list(hints),
        "possible": {purpose.name.lower(): possible(findings, purpose) for purpose in Purpose},
    }


def _missing(finding: DoctorFinding) -> Iterator[tuple[str, str]]:
    purposes = ", ".join(finding.needed_for)
    yield finding.name, f"needed for {purposes}" if purposes else "optional"
    yield "", finding.fix


def _verdict(findings: Sequence[DoctorFinding], purpose: Purpose) -> str:
    lacking = [one.name for one in findings if purpose in one.needed_for and one.found is None]
    return f"no, missing {', '.join(lacking)}" if lacking else "yes"
