"""Findings of `corral lint-env`, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from corral.catalog.aws.nccl_variables import COMPONENTS, VariableVerdict, Version, format_version
from corral.plan.nccl_env.lint_env import Context, EnvFinding
from corral.report.plan.plan_json import Document
from corral.report.tables import Footnotes, heading

_STYLES = {
    VariableVerdict.WRONG: "red",
    VariableVerdict.HARMFUL: "bold red",
    VariableVerdict.NEEDLESS: "yellow",
    VariableVerdict.FINE: "green",
    VariableVerdict.UNKNOWN: "cyan",
}
_INDENT = 4


def lint_view(
    findings: Sequence[EnvFinding], file: str, context: Context, warning: str | None = None
) -> Iterator[RenderableType]:
    """Each variable with its verdict, what is wrong, the fix and the number of its source; then the sources.

    `warning`: a remark about the versions.
    """
    footnotes = Footnotes()
    for finding in findings:
        yield from _finding(finding, file, footnotes)
    if findings:
        yield heading("Sources")
        yield footnotes.shown()
    yield Text(f"\n{_summary(findings, file)}; checked for {_scope(context)}")
    if warning:
        yield Text(warning)


def lint_document(findings: Sequence[EnvFinding], file: str, context: Context, warning: str | None = None) -> Document:
    """The document of `corral lint-env --json`."""
    return {
        "schema": "corral.lint-env/3",
        "file": file,
        "instance_type": context.type_name,
        "versions": {name: format_version(version) for name, version in context.versions.items()},
        "warning": warning,
        "counts": {verdict.value: count for verdict, count in _counts(findings).items()},
        "findings": [
            {
                "line": finding.assignment.line,
                "variable": finding.assignment.name,
                "value": finding.assignment.value,
                "verdict": finding.verdict.value,
                "since": finding.since,
                "message": finding.message,
                "fix": finding.fix,
                "source": finding.source,
            }
            for finding in findings
        ],
    }


def _finding(finding: EnvFinding, file: str, footnotes: Footnotes) -> Iterator[RenderableType]:
    assignment = finding.assignment
    value = "(set by the shell)" if assignment.value is None else assignment.value
    location = f"{file}:{assignment.line} {assignment.name}={value}  "
    verdict = (finding.verdict.value, _STYLES[finding.verdict])
    yield Group(Text.assemble(location, verdict, no_wrap=True, overflow="ignore"))  # a bare Text is printed wrapped
    since = f"since {finding.since}: " if finding.since and finding.is_bad else ""
    fix = f" - {finding.fix}" if finding.fix else ""
    source = f" {footnotes.mark(finding.source)}" if finding.source else ""
    yield Padding(Text(f"{since}{finding.message}{fix}{source}", overflow="fold"), (0, 0, 0, _INDENT))


def _summary(findings: Sequence[EnvFinding], file: str) -> str:
    if not findings:
        return f"{file}: no variable of NCCL, libfabric or EFA"
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in _counts(findings).items() if count)
    return f"{file}: {counts}"


def _counts(findings: Iterable[EnvFinding]) -> Mapping[VariableVerdict, int]:
    verdicts = [finding.verdict for finding in findings]
    return {verdict: verdicts.count(verdict) for verdict in VariableVerdict}


def _scope(context: Context) -> str:
    return f"{context.type_name or 'any type with NVIDIA GPUs'}, {_versions(context.versions)}"


def _versions(versions: Mapping[str, Version]) -> str:
    return ", ".join(f"{COMPONENTS[name]} {format_version(version)}" for name, version in versions.items())
