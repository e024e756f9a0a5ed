"""Rules about what watches a cluster: how long data is kept, who gets alerts, where series are written as well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from corral.model.partitions import partition_of
from corral.model.urls import WORKSPACE, parse_remote_write, remote_write_url
from corral.spec.models.cluster import MonitoringSpec
from corral.spec.models.durations import format_duration
from corral.spec.rules.job_rules import secret_name_problem
from corral.spec.spec_errors import Loc, SpecFinding, SpecProblem

_RETENTION = timedelta(days=1), timedelta(days=730)
# Source: Service Authorization Reference, Amazon Managed Service for Prometheus, "Resource types".
_ARN = re.compile(rf"arn:[a-z-]+:aps:([a-z0-9-]+):\d{{12}}:workspace/({WORKSPACE})")


def check(monitoring: MonitoringSpec, region: str) -> Iterator[SpecFinding]:
    """Yield findings about the monitoring of a cluster in this region."""
    yield from _check_retention(monitoring)
    yield from _check_alerts(monitoring)
    yield from _check_remote_write(monitoring, region)


def _check_retention(monitoring: MonitoringSpec) -> Iterator[SpecFinding]:
    shortest, longest = _RETENTION
    if not shortest <= monitoring.retention <= longest:
        found = f"{format_duration(monitoring.retention)} is not between 1d and 730d"
        yield SpecFinding(("monitoring", "retention"), found, "use 15d")


def _check_alerts(monitoring: MonitoringSpec) -> Iterator[SpecFinding]:
    """Yield findings about who gets alerts."""
    alerts = monitoring.alerts
    if alerts is None:
        return
    loc: Loc = ("monitoring", "alerts")
    secrets = {"slack": alerts.slack, "pagerduty": alerts.pagerduty}
    if not monitoring.prometheus:
        yield SpecFinding(loc, "without Prometheus there are no alerts", "add prometheus: true to monitoring")
    if not alerts.topic and not any(secrets.values()):
        yield SpecFinding(loc, "nobody gets alerts", "name a secret for slack or pagerduty, or remove alerts")
    for receiver, name in secrets.items():
        if name is not None and (problem := secret_name_problem(name)):
            yield problem.at((*loc, receiver))


def _check_remote_write(monitoring: MonitoringSpec, region: str) -> Iterator[SpecFinding]:
    """Yield findings about where Prometheus also writes its series."""
    written = monitoring.remote_write
    if written is None:
        return
    loc: Loc = ("monitoring", "remote_write")
    if not monitoring.prometheus:
        yield SpecFinding(loc, "without Prometheus nothing is written", "add prometheus: true to monitoring")
    if written.workspace is None and written.url is None:
        yield SpecFinding(loc, "names no workspace", "add workspace: ws-...")
    elif written.workspace is not None and written.url is not None:
        yield SpecFinding(loc, "names the workspace twice", "remove workspace or url")
    if written.workspace is not None and (problem := _workspace_problem(written.workspace, region)):
        yield problem.at((*loc, "workspace"))
    if written.url is not None and (problem := _url_problem(written.url, region)):
        yield problem.at((*loc, "url"))


def _workspace_problem(text: str, region: str) -> SpecProblem | None:
    if arn := _ARN.fullmatch(text):
        return _elsewhere(text, arn[1], region) or SpecProblem(f"{text!r} is an ARN", f"use its id, {arn[2]}")
    if re.fullmatch(WORKSPACE, text):
        return None
    return SpecProblem(
        f"{text!r} is not the id of a workspace", "write it like ws-0123abcd-12ab-34cd-56ef-0123456789ab"
    )


def _url_problem(text: str, region: str) -> SpecProblem | None:
    if text.startswith("http://"):
        return SpecProblem(f"{text!r} is not encrypted", "use https")
    found = parse_remote_write(text)
    if found is None:
        return SpecProblem(
            f"{text!r} is not the remote-write URL of a workspace",
            f"write it like {remote_write_url('ws-...', region)}",
        )
    if problem := _elsewhere(text, found.region, region):
        return problem
    domain = partition_of(region).dns_suffix
    return (
        None if found.domain == domain else SpecProblem(f"{text!r} is not a host of AWS", f"its hosts end in {domain}")
    )


def _elsewhere(text: str, found: str, region: str) -> SpecProblem | None:
    if found == region:
        return None
    return SpecProblem(
        f"{text!r} is in {found}, and the head has no access to other regions",
        f"use a workspace in {region}",
    )
