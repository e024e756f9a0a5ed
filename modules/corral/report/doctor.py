"""What a machine has and lacks for corral's purposes, on a terminal and as a document."""

from __future__ import annotations

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


def possible(findings: Sequence[Finding], purpose: Purpose) -> bool:
    """True if nothing that this purpose needs is missing."""
    return all(finding.found is not None for finding in findings if purpose in finding.needed_for)


def doctor_view(findings: Sequence[Finding]) -> Iterator[RenderableType]:
    """What is there, then what is missing with its fix, then what is possible."""
    yield heading("Found")
    yield facts((finding.name, finding.found) for finding in findings if finding.found is not None)
    if missing := [finding for finding in findings if finding.found is None]:
        yield heading("Missing")
        yield facts(row for one in missing for row in _missing(one))
    yield heading("Possible")
    yield facts((purpose.value, _verdict(findings, purpose)) for purpose in Purpose)


def doctor_document(findings: Sequence[Finding]) -> Document:
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
        "possible": {purpose.name.lower(): possible(findings, purpose) for purpose in Purpose},
    }


def _missing(finding: Finding) -> Iterator[tuple[str, str]]:
    purposes = ", ".join(finding.needed_for)
    yield finding.name, f"needed for {purposes}" if purposes else "optional"
    yield "", finding.fix


def _verdict(findings: Sequence[Finding], purpose: Purpose) -> str:
    lacking = [one.name for one in findings if purpose in one.needed_for and one.found is None]
    return f"no, for want of {', '.join(lacking)}" if lacking else "yes"
