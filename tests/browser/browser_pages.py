"""The pages that corral writes: those of plans as its commands write them, those of lives by a small one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from corral.preflight.findings import Finding, Verdict
from corral.report import timeline_page
from corral.report.check_page import check_page
from environments import PROJECT
from small_life import drawn, took

RUN = ("--run", "examples/runs/llama3-8b.yaml")
MORE = ("--compare", "p4d.24xlarge,p5.48xlarge,us-west-2", "--buy", "examples/buy/h100.yaml")

FINDINGS = (
    Finding(check="identity", about="credentials", verdict=Verdict.OK, text="of account 123456789012"),
    Finding(
        check="quotas",
        about="Running On-Demand P instances",
        verdict=Verdict.FAIL,
        text="96 vCPUs, none used by others; up to 3,072 wanted for train",
        fix="aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-417A185B",
    ),
    Finding(
        check="spot", about="p5.48xlarge", verdict=Verdict.WARN, text="a score of 1 of 10", fix="have a second offer"
    ),
    Finding(check="buckets", about="-", verdict=Verdict.SKIPPED, text="not looked at: buckets with data"),
)


def plan_of_train(*options: str) -> str:
    """What `corral plan train --html` writes."""
    with TemporaryDirectory() as directory:
        file = Path(directory, "plan.html")
        command = [sys.executable, "-m", "corral.cli", "plan", "train", *options, "--html", str(file)]
        subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
        return file.read_text(encoding="utf-8")


PAGES: Mapping[str, Callable[[], str]] = {
    "plan": plan_of_train,
    "run": lambda: plan_of_train(*RUN),
    "compared": lambda: plan_of_train(*RUN, *MORE),
    "check": lambda: check_page("train", "us-east-1", FINDINGS, datetime(2026, 11, 22, 12, tzinfo=UTC)),
    "life": lambda: timeline_page.page(drawn(), took(), notes=["the life that began yesterday"]),
    "picture": lambda: timeline_page.page(drawn()),
}
