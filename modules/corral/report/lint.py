"""What `corral lint-env` found, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from corral.catalog.nccl_variables import COMPONENTS, Verdict, Version, show_version
from corral.plan.lint_env import Context, Finding
from corral.report.documents import Document
from corral.report.tables import Footnotes, heading

_STYLES = {
    Verdict.WRONG: "red",
    Verdict.HARMFUL: "bold red",
    Verdict.NEEDLESS: "yellow",
    Verdict.FINE: "green",
    Verdict.UNKNOWN: "cyan",
}
_INDENT = 4


def lint_view(
    findings: Sequence[Finding], file: str, context: Context, note: str | None = None
) -> Iterator[RenderableType]:
    """Each variable with its verdict, why, what would be right, and the number of its source; then the sources.

    `note`: what a reader must know about the versions.
    """
    notes = Footnotes()
    for finding in findings:
        yield from _finding(finding, file, notes)
    if findings:
        yield heading("Sources")
        yield notes.shown()
    yield Text(f"\n{_summary(findings, file)}; judged for {_place(context)}")
    if note:
        yield Text(note)


def lint_document(findings: Sequence[Finding], file: str, context: Context, note: str | None = None) -> Document:
    """What `corral lint-env --json` prints."""
    return {
        "schema": "corral.lint-env/1",
        "file": file,
        "instance_type": context.type_name,
        "versions": {name: show_version(version) for name, version in context.versions.items()},
        "note": note,
        "counts": {verdict.value: count for verdict, count in _counts(findings).items()},
        "findings": [
            {
                "line": finding.assignment.line,
                "variable": finding.assignment.name,
                "value": finding.assignment.value,
                "verdict": finding.verdict.value,
                "since": finding.since,
                "why": finding.why,
                "instead": finding.instead,
                "source": finding.source,
            }
            for finding in findings
        ],
    }


def _finding(finding: Finding, file: str, notes: Footnotes) -> Iterator[RenderableType]:
    assignment = finding.assignment
    value = "(the shell knows)" if assignment.value is None else assignment.value
    place = f"{file}:{assignment.line} {assignment.name}={value}  "
    verdict = (finding.verdict.value, _STYLES[finding.verdict])
    yield Group(Text.assemble(place, verdict, no_wrap=True, overflow="ignore"))  # a bare Text is printed wrapped
    since = f"since {finding.since}: " if finding.since and finding.is_bad else ""
    right = f"; {finding.instead}" if finding.instead else ""
    source = f" {notes.mark(finding.source)}" if finding.source else ""
    yield Padding(Text(f"{since}{finding.why}{right}{source}", overflow="fold"), (0, 0, 0, _INDENT))


def _summary(findings: Sequence[Finding], file: str) -> str:
    if not findings:
        return f"{file}: no variable of NCCL, libfabric or EFA"
    told = ", ".join(f"{count} {verdict.value}" for verdict, count in _counts(findings).items() if count)
    return f"{file}: {told}"


def _counts(findings: Iterable[Finding]) -> Mapping[Verdict, int]:
    verdicts = [finding.verdict for finding in findings]
    return {verdict: verdicts.count(verdict) for verdict in Verdict}


def _place(context: Context) -> str:
    return f"{context.type_name or 'any type with NVIDIA GPUs'}, {_versions(context.versions)}"


def _versions(versions: Mapping[str, Version]) -> str:
    return ", ".join(f"{COMPONENTS[name]} {show_version(version)}" for name, version in versions.items())
