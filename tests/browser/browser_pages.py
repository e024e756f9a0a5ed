"""The pages that corral writes: plans as its commands write them, and the timeline of a small history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from corral.preflight.preflight_findings import PreflightFinding, PreflightVerdict
from corral.report.pages import timeline_page
from corral.report.pages.check_page import check_page
from environments import PROJECT
from forked_corral import run_corral
from small_history import history_timeline, history_usage

RUN = ("--run", "examples/runs/llama3-8b.yaml")
MORE = ("--compare", "p4d.24xlarge,p5.48xlarge,us-west-2", "--buy", "examples/buy/h100.yaml")

FINDINGS = (
    PreflightFinding(
        check="identity", about="credentials", verdict=PreflightVerdict.OK, message="of account 123456789012"
    ),
    PreflightFinding(
        check="quotas",
        about="Running On-Demand P instances",
        verdict=PreflightVerdict.FAIL,
        message="96 vCPUs, none used by others; up to 3,072 wanted for train",
        fix="aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-417A185B",
    ),
    PreflightFinding(
        check="spot",
        about="p5.48xlarge",
        verdict=PreflightVerdict.WARN,
        message="a score of 1 of 10",
        fix="have a second offer",
    ),
    PreflightFinding(check="buckets", about="-", verdict=PreflightVerdict.SKIPPED, message="not checked: data buckets"),
)


def plan_of_train(*options: str) -> str:
    """What `corral plan train --html` writes."""
    with TemporaryDirectory() as directory:
        file = Path(directory, "plan.html")
        run_corral("plan", "train", *options, "--html", str(file), cwd=PROJECT).check_returncode()
        return file.read_text(encoding="utf-8")


PAGES: Mapping[str, Callable[[], str]] = {
    "plan": plan_of_train,
    "run": lambda: plan_of_train(*RUN),
    "compared": lambda: plan_of_train(*RUN, *MORE),
    "check": lambda: check_page("train", "us-east-1", FINDINGS, datetime(2026, 11, 22, 12, tzinfo=UTC)),
    "timeline": lambda: timeline_page.timeline_page(
        history_timeline(), history_usage(), remarks=["the history that began yesterday"]
    ),
    "picture": lambda: timeline_page.timeline_page(history_timeline()),
}
