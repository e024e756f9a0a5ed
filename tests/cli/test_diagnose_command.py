"""`corral diagnose` against a head in the box, whose agent answers for one synthetic job."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from calls import corral
from test_connect import BOOTED_IN_S, launch_head

import boxes
from corral.model.job_evidence import JobEvidencePage, StepPage
from corral.model.serialization import to_line
from corral.report.diagnosis.findings import FindingKind
from report.diagnosis.synthetic_jobs import evidence, faulty_job

pytestmark = pytest.mark.box
SEEN = evidence(replace(faulty_job(FindingKind.STRAGGLER, 1), nodes=4, slow={2: 1.6}))
PAGE = JobEvidencePage(job=SEEN.job, steps=StepPage(ranks=SEEN.ranks, next=None, variables={}), node_reasons={})
HALF = len(SEEN.ranks) // 2
PAGES = (
    replace(PAGE, steps=replace(PAGE.steps, ranks=SEEN.ranks[:HALF], next=96)),
    replace(PAGE, steps=replace(PAGE.steps, ranks=SEEN.ranks[HALF:])),
)
USER_DATA = f"""#!/bin/sh
mkdir -p /opt/corral/bin
cat >/opt/corral/bin/corral-agent <<'EOF'
#!/bin/sh
case "$*" in
    "job-evidence 17 --start=0") cat <<'END'
{to_line(PAGES[0])}END
    ;;
    "job-evidence 17 --start=96") cat <<'END'
{to_line(PAGES[1])}END
    ;;
    "job-evidence 99 "*) echo "2026-11-28 corral-agent ERROR job-evidence: Slurm knows no job 99" >&2; exit 1 ;;
    *) exit 2 ;;
esac
EOF
chmod +x /opt/corral/bin/corral-agent
touch /booted
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of a box with a head of dev that has booted."""
    with boxes.running_box(tmp_path_factory.mktemp("diagnose") / "box", machines=True) as box:
        launch_head(box, USER_DATA)
        deadline = time.monotonic() + BOOTED_IN_S
        while corral("connect", "dev", "--root", "--box-dir", str(box.dir), "--", "test", "-e", "/booted").returncode:
            assert time.monotonic() < deadline, f"the head has not booted within {BOOTED_IN_S} s"
        yield box.dir


def test_the_straggler_is_named_with_what_to_do(box: Path) -> None:
    done = corral("diagnose", "dev", "17", "--box-dir", str(box))
    assert (done.returncode, done.stderr) == (0, "")
    assert "1. train-3 is slower than the others\n" in done.stdout


def test_the_document_has_all_processes_of_both_pages(box: Path) -> None:
    document = json.loads(corral("diagnose", "dev", "17", "--json", "--box-dir", str(box)).stdout)
    assert (document["schema"], len(document["processes"])) == ("corral.diagnose/1", len(SEEN.ranks))


def test_with_a_run_file_the_speed_is_compared_with_the_forecast(box: Path) -> None:
    run = ("--run", "examples/runs/llama3-8b.yaml")
    document = json.loads(corral("diagnose", "dev", "17", *run, "--json", "--box-dir", str(box)).stdout)
    assert document["speed"]["forecast_share"] > 0
    assert not [one for one in document["unknown"] if "forecast" in one]


def test_without_a_run_file_there_is_no_share_of_a_forecast(box: Path) -> None:
    document = json.loads(corral("diagnose", "dev", "17", "--json", "--box-dir", str(box)).stdout)
    assert (document["speed"]["mfu"], document["speed"]["forecast_share"]) == (None, None)


def test_an_unknown_job_is_reported_in_the_heads_words(box: Path) -> None:
    done = corral("diagnose", "dev", "99", "--box-dir", str(box))
    assert (done.returncode, done.stderr) == (1, "corral: Slurm knows no job 99\n")


@pytest.mark.parametrize("job", ["seventeen", "17.0", "17_", "-1x", "1;id"])
def test_what_is_no_job_id_is_refused_before_anything_else(job: str) -> None:
    done = corral("diagnose", "dev", "--", job)
    assert (done.returncode, done.stderr) == (2, f"corral: {job}: not a job id - expected one such as 17, or 17_3\n")


def test_a_cluster_without_a_head_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    with boxes.running_box(tmp_path_factory.mktemp("empty")) as box:
        done = corral("diagnose", "dev", "17", "--box-dir", str(box.dir))
    assert (done.returncode, "dev has no head now - bring it up: corral up dev" in done.stderr) == (1, True)
