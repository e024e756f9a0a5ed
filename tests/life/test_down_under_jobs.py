"""`corral down` while a job runs, with the real slurmctld, slurmdbd and slurmd: refused, then with --now."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_machine_life import GONE_IN_S, HEAD_IN_S, JOB_IN_S, home, on_head, until

import boxes
from corral.box import control
from corral.box.vpc.probe import probe
from life import Life, begin

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]
STEPS = 5000  # of a tenth of a second: it does not end by itself


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    assert probe().users, probe().problem
    directory = tmp_path_factory.mktemp("down")
    with boxes.running_box(directory / "box", machines=True) as box:
        yield begin(directory, box)


@pytest.fixture(scope="module")
def busy(life: Life) -> Life:
    """A training job runs on two nodes, another waits, and people have looked."""
    life.done("up", "dev")
    until(lambda: on_head(life, "sinfo", "--noheader"), HEAD_IN_S)
    shutil.copy(Path(__file__).parent / "programs/steps.py", home(life))
    script = ("/opt/corral/jobs/train/jax.sbatch", "/home/steps.py", str(STEPS))
    python = "--export=ALL,PYTHON=/usr/bin/python3"
    life.seen["job"] = on_head(life, "sbatch", "--parsable", "--chdir=/home", "--ntasks-per-node=1", python, *script)
    on_head(life, "sbatch", "--chdir=/", "--job-name=later", "--begin=now+1hour", "--wrap=hostname")
    until(lambda: "runs" if list(home(life).glob("checkpoints/losses-0")) else "", JOB_IN_S)
    life.seen["status"] = json.loads(life.corral("status", "dev", "--box", "--json").out)
    until(lambda: life.corral("status", "dev", "--box", "--events").out if " up " in events(life) else "", JOB_IN_S)
    life.seen["events"] = events(life)
    life.seen["page"] = life.directory / "life.html"
    life.seen["timeline"] = life.corral("timeline", "dev", "--box", "--html", str(life.seen["page"])).out
    return life


@pytest.fixture(scope="module")
def refused(busy: Life) -> Life:
    """A down that says yes to everything but the end of jobs."""
    busy.seen["refused"] = busy.corral("down", "dev", "--box", "--yes", code=4).err
    busy.seen["queue after it"] = on_head(busy, "sinfo", "--noheader", "--format=%a").split()[0]
    return busy


@pytest.fixture(scope="module")
def ended(refused: Life) -> Life:
    """The same, with --now."""
    refused.seen["down"] = refused.done("down", "dev", "--now", "--grace", "8")
    until(lambda: "" if control.machines(refused.box.dir) else "none", GONE_IN_S)
    refused.seen["gone"] = refused.corral("timeline", "dev", "--box").out
    refused.seen["took"] = json.loads(refused.corral("timeline", "dev", "--box", "--json").out)["spent"]
    refused.seen["lives"] = refused.corral("timeline", "dev", "--box", "--lives").out
    refused.seen["events of none"] = refused.corral("status", "dev", "--box", "--events", code=1).err
    return refused


def events(life: Life) -> str:
    return life.corral("status", "dev", "--box", "--events").out


def test_status_tells_the_job_that_runs_and_why_the_other_waits(busy: Life) -> None:
    jobs = busy.seen["status"]["slurm"]["jobs"]
    assert [(job["name"], job["state"], job["why"]) for job in jobs] == [
        ("jax", "running", ""),
        ("later", "pending", "its time has not come"),
    ]


def test_events_tell_the_launch_and_that_its_nodes_are_up(busy: Life) -> None:
    kinds = re.findall(r"^\S+ \S+ +(\S+) +(train-\S+)", busy.seen["events"], re.MULTILINE)
    assert sorted(kinds) == [("launched", "train-[1-2]"), ("up", "train-1"), ("up", "train-2")]


def test_the_timeline_has_the_head_the_nodes_and_the_jobs(busy: Life) -> None:
    rows = re.findall(r"^  (head|train-\d|\d+ \w+) ", busy.seen["timeline"], re.MULTILINE)
    assert rows == ["head", "train-1", "train-2", f"{busy.seen['job']} jax", f"{int(busy.seen['job']) + 1} later"]


def test_the_page_of_the_timeline_has_the_job(busy: Life) -> None:
    assert f"job {busy.seen['job']} (jax) of root" in busy.seen["page"].read_text()


def test_down_is_refused_and_names_the_job(refused: Life) -> None:
    listed = f"  job {refused.seen['job']}  root  jax  train  train-[1-2]  running for "
    assert f"corral: cluster dev: 1 job runs: nothing was changed\n{listed}" in refused.seen["refused"]


def test_a_refused_down_leaves_the_queue_open(refused: Life) -> None:
    assert refused.seen["queue after it"] == "up"


def test_down_now_asks_for_a_checkpoint_and_then_ends_the_job(ended: Life) -> None:
    job = ended.seen["job"]
    assert ended.seen["down"]["drained"] == {
        "refused": False, "asked": [job], "ended": [], "requeued": [job], "cancelled": [], "waiting": 1,
    }  # fmt: skip


def test_the_checkpoint_is_that_of_the_last_step(ended: Life) -> None:
    last = (home(ended) / "checkpoints/losses-0").read_text().splitlines()[-1]
    (saved,) = (home(ended) / "checkpoints").glob("jax-*/step-0")
    assert saved.read_text() == last


def test_the_records_of_its_jobs_are_in_the_bucket(ended: Life) -> None:
    bucket = f"corral-dev-{control.ACCOUNT}-us-east-1"
    dumped = boxes.client(ended.box, "s3").get_object(Bucket=bucket, Key="accounting/dev.sql.gz")["Body"].read()
    assert b"'jax'" in gzip.decompress(dumped)


def test_one_life_is_in_the_bucket(ended: Life) -> None:
    bucket = f"corral-dev-{control.ACCOUNT}-us-east-1"
    listed = boxes.client(ended.box, "s3").list_objects_v2(Bucket=bucket, Prefix="lives/")["Contents"]
    (life,) = re.findall(r"^  (\S+Z) ", ended.seen["lives"], re.MULTILINE)
    assert [one["Key"] for one in listed] == [f"lives/dev/{life}.json.gz"]


def test_the_timeline_of_a_cluster_that_is_gone_has_the_job_that_ran(ended: Life) -> None:
    rows = re.findall(r"^  (head|train-\d|\d+ \w+) .*?[█─┄]", ended.seen["gone"], re.MULTILINE)
    assert rows == ["head", "train-1", "train-2", f"{ended.seen['job']} jax", f"{int(ended.seen['job']) + 1} later"]


def test_the_timeline_of_a_cluster_that_is_gone_says_so(ended: Life) -> None:
    assert "\n  dev has no head now: the life that began " in ended.seen["gone"]


def test_what_a_cluster_that_is_gone_took_is_told_by_the_markets_of_its_launches(ended: Life) -> None:
    pools = ended.seen["took"]["pools"]
    assert [(one["queue"], one["instance_type"], one["market"], one["machines"]) for one in pools] == [
        ("train", "p4d.24xlarge", "spot", 2)
    ]


def test_what_the_job_of_a_cluster_that_is_gone_took_is_told(ended: Life) -> None:
    jobs = {one["job_id"]: (one["nodes"], one["runs"], one["node_hours"] > 0) for one in ended.seen["took"]["jobs"]}
    assert jobs[ended.seen["job"]] == (2, 1, True)


def test_events_of_a_cluster_that_is_gone_point_to_the_timeline(ended: Life) -> None:
    assert ended.seen["events of none"] == (
        "corral: dev has no head now - what is kept of its life: corral timeline dev --box\n"
    )


def test_down_now_leaves_no_machine(ended: Life) -> None:
    assert list((Path(ended.box.dir) / "machines/disks").iterdir()) == []
