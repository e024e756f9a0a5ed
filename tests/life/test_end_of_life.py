"""The end of a cluster's life, with real daemons: at its hour while a job runs, moved on, and when nobody uses it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest
from clusters import QUICK, UP_IN_S, Cluster, hurt_cluster, tag

from corral.box import control
from corral.engine.extend import rewrite

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]
BUCKET = f"corral-hurt-{control.ACCOUNT}-us-east-1"
# The first run lasts until it is asked for a checkpoint, and then goes back to the queue; the second just ends.
SCRIPT = """if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
trap 'echo saved >>/home/saved; scontrol requeue $SLURM_JOB_ID' USR1
sleep 1000 & wait; wait; fi"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with hurt_cluster(tmp_path_factory.mktemp("end")) as (cluster,):
        yield cluster


@pytest.fixture(scope="module")
def ended(cluster: Cluster) -> Cluster:
    """Its end was moved near while a job runs, and has come."""
    seen = cluster.life.seen
    cluster.restart_keeper(*QUICK, "--first-look", "0")
    seen["job"] = cluster.submit(SCRIPT, "--partition=wide")
    cluster.runs(seen["job"])
    seen["moved"] = cluster.life.done("extend", cluster.name, "75s")  # the head looks each 30 s
    seen["comment"] = cluster.until(lambda: cluster.job(seen["job"]).get("AdminComment", "").strip())
    cluster.until(lambda: cluster.head() is None)
    seen["left"] = cluster.machines()
    seen["gone"] = cluster.life.corral("timeline", cluster.name, "--box").out
    seen["up too late"] = cluster.life.corral("up", cluster.name, "--box", "--yes", code=4).err
    return cluster


@pytest.fixture(scope="module")
def going_on(ended: Cluster) -> Cluster:
    """It was given more time, and brought up again."""
    seen = ended.life.seen
    seen["extended"] = ended.life.corral("extend", ended.name, "4h", "--box").out
    seen["up"] = ended.life.done("up", ended.name)
    ended.until(lambda: ended.on_head("sinfo", "--noheader"), UP_IN_S)
    seen["end of job"] = ended.end(seen["job"])
    seen["results"] = ended.results(seen["job"])
    seen["events"] = ended.events()
    seen["status"] = json.loads(ended.life.corral("status", ended.name, "--box", "--json").out)
    return ended


@pytest.fixture(scope="module")
def idle(going_on: Cluster) -> Cluster:
    """Nobody uses it for as long as it may be idle: some seconds, which no spec could say."""
    of_bucket = (going_on.life.client("s3"), BUCKET, f"clusters/{going_on.name}", "cluster.json")
    rewrite(*of_bucket, lambda plan: plan["lifetime"].update(idle_s=5))
    going_on.on_head("/opt/corral/bin/corral-agent", "apply")
    going_on.until(lambda: not going_on.machines())
    return going_on


def events(cluster: Cluster, *kinds: str) -> list[str]:
    """The kinds of what happened, of these, as the new head of the cluster has them."""
    return [one["event"] for one in cluster.life.seen["events"] if one["event"] in kinds]


def test_the_head_is_told_of_its_new_end(ended: Cluster) -> None:
    assert ended.life.seen["moved"]["head"] == "its head knows it, its nodes ask for it before they would end"


def test_nothing_is_left_running_after_the_end(ended: Cluster) -> None:
    assert [tag(one, "Name") for one in ended.life.seen["left"]] == []


def test_the_job_was_told_how_the_end_is_moved(ended: Cluster) -> None:
    assert ended.life.seen["comment"].endswith("`corral extend hurt TIME` moves it")


def test_a_job_that_ran_was_asked_for_a_checkpoint_once(ended: Cluster) -> None:
    assert (ended.home() / "saved").read_text() == "saved\n"


def test_the_records_of_jobs_are_in_the_bucket(ended: Cluster) -> None:
    dump = ended.life.client("s3").get_object(Bucket=BUCKET, Key=f"accounting/{ended.name}.sql.gz")["Body"].read()
    assert b"'wrap'" in gzip.decompress(dump)


def test_the_timeline_after_the_end_has_the_job_that_ran(ended: Cluster) -> None:
    assert f"\n  {ended.life.seen['job']} wrap " in ended.life.seen["gone"]


def test_an_up_after_the_end_is_refused_and_names_extend(ended: Cluster) -> None:
    assert "to go on with it: corral extend hurt 4h --box, then corral up hurt --box" in ended.life.seen["up too late"]


def test_extend_says_that_the_hour_had_passed_and_what_makes_a_head(going_on: Cluster) -> None:
    first, second = going_on.life.seen["extended"].splitlines()
    assert (first.partition("; ")[2].partition(":")[0], second) == (
        "its hour had passed",
        "cluster hurt: it has no head now: corral up hurt --box makes one",
    )


def test_an_up_after_extend_makes_nothing_but_a_head(going_on: Cluster) -> None:
    assert going_on.life.seen["up"]["cluster"]["created"] == 2  # and the attachment of its volume


def test_everybody_was_warned_before_queues_were_closed(going_on: Cluster) -> None:
    assert events(going_on, "ends-soon", "draining")[:2] == ["ends-soon", "draining"]


def test_the_job_that_was_requeued_is_done_once_by_the_next_head(going_on: Cluster) -> None:
    assert (going_on.life.seen["end of job"], going_on.life.seen["results"]) == (("COMPLETED", "1"), ["1"])


def test_the_status_has_the_new_end(going_on: Cluster) -> None:
    end = going_on.life.seen["status"]["ends_at"]
    assert end > going_on.life.seen["moved"]["ends_at"]


def test_two_heads_of_one_life_keep_one_object(idle: Cluster) -> None:
    listed = idle.life.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="lives/")["Contents"]
    assert [one["Key"].rpartition("/")[0] for one in listed] == [f"lives/{idle.name}"]


def test_a_cluster_that_nobody_uses_ends_itself_and_its_log_says_why(idle: Cluster) -> None:
    logs = idle.life.client("logs")
    lines = logs.get_log_events(logGroupName=f"/corral/{idle.name}", logStreamName="events")["events"]
    texts = [told["text"] for line in lines if (told := json.loads(line["message"]))["event"] == "cluster-ends"]
    assert texts[-3:] == [
        "cluster hurt ends: no job for 5 s",
        "cluster hurt has ended: its head ends itself, volumes stay; `corral down hurt` removes it",
        "the head of hurt ends itself",
    ]
