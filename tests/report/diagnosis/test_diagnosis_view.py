"""A diagnosis on the terminal: one screen."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from corral.report.diagnosis.diagnose import diagnose
from corral.report.diagnosis.diagnosis_view import diagnosis_view
from corral.report.diagnosis.evidence import JobEvidence
from report.diagnosis.test_diagnosis_rules import EXPECTED, job, samples, with_first

NOW = 1_795_003_600.0


def shown(seen: JobEvidence) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=100, color_system=None)
    for part in diagnosis_view(seen, diagnose(seen), NOW):
        console.print(part)
    return stream.getvalue()


def test_a_diagnosis_is_one_screen() -> None:
    seen = replace(with_first(own_s=2.7, communication_share=0.01), expected=EXPECTED, nodes=samples(""))
    assert [line.rstrip() for line in shown(seen).splitlines()] == [
        "",
        "Job 17  synthetic, ada, queue train: running, 1 h on train-1, 4 GPUs, run 2",
        "  steps  2 s each, at step 200; 4 of 4 processes",
        "  speed  2,000 tokens/s for each GPU, MFU 20%, 50% of the forecast",
        "  waits  data 1.0%, communication 7.8%, checkpoints 0.0%",
        "",
        "1. train-1 is slower than the others",
        "  seen   train-1: 2.7 s of own work in a step, others 1.8 s",
        "  seen   the others wait 10% of the time",
        "  first  as root on the head: `scontrol update nodename=train-1 state=drain reason=slow`, then",
        "         `scontrol requeue` the job; a deep health check (docs/health.md) says whether the machine",
        "         is sick",
        "Unknown: GPU memory; NCCL's network (no NCCL_DEBUG=INFO in the output).",
    ]


def test_a_healthy_job_has_no_findings_and_shows_what_is_unknown() -> None:
    lines = [line.rstrip() for line in shown(job(expected=EXPECTED, nodes=samples(""))).splitlines()]
    assert lines[-2:] == [
        "Nothing is wrong in what could be looked at.",
        "Unknown: GPU memory; NCCL's network (no NCCL_DEBUG=INFO in the output).",
    ]


def test_the_declared_run_of_the_forecast_is_named() -> None:
    seen = job(expected=replace(EXPECTED, name="llama"))
    assert "50% of the forecast of llama" in shown(seen)


def test_why_the_run_of_a_job_has_no_forecast_is_unknown() -> None:
    seen = job(forecast_problem="that of llama is for 4 nodes of train")
    assert "the forecast (that of llama is for 4 nodes of train)" in " ".join(shown(seen).split())


def stopped(**changes: object) -> list[str]:
    """The line of a job whose processes made their last step forty minutes ago, the first one a step earlier."""
    ranks = [replace(one, last_at=int(NOW) - 2400, **changes) for one in job().ranks]  # type: ignore[arg-type]
    seen = job(ranks=(replace(ranks[0], last_step=199), *ranks[1:]))
    return [line.strip() for line in shown(seen).splitlines() if line.startswith("  last step")]


def test_a_job_that_makes_no_steps_shows_since_when_and_which_process_made_fewest() -> None:
    assert stopped() == ["last step  40 min ago; rank 0 on train-1 stopped at step 199"]


def test_a_job_that_has_closed_its_recorder_misses_no_step() -> None:
    assert stopped(is_closed=True) == []


def test_a_job_with_long_steps_makes_them() -> None:
    assert stopped(step_s=1200.0) == []


def test_a_job_that_has_ended_misses_no_step() -> None:
    seen = job(job=replace(job().job, state="completed"), ranks=(replace(job().ranks[0], last_at=int(NOW) - 2400),))
    assert "last step" not in shown(seen)


def test_what_could_not_be_read_is_named() -> None:
    assert shown(job(problem="no output: /x: Permission denied")).endswith(
        "Missing: no output: /x: Permission denied.\n"
    )
