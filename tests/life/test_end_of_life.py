"""The end of a cluster's lifetime, with real daemons: while a job runs, moved on, and when nobody uses it.

One scenario; a failure names its step.
"""

from __future__ import annotations

import gzip
import json

import pytest
from clusters import QUICK, UP_IN_S, Cluster, hurt_cluster, tag

from corral.box import account
from corral.engine.lifecycle.extend import rewrite
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.long]
BUCKET = f"corral-hurt-{account.ACCOUNT}-us-east-1"
# The first run lasts until it is asked for a checkpoint, and then returns to the queue; the second just ends.
SCRIPT = """if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
trap 'echo saved >>/home/saved; scontrol requeue $SLURM_JOB_ID' USR1
sleep 1000 & wait; wait; fi"""


def test_a_cluster_ends_after_its_lifetime_and_when_it_is_idle(tmp_path_factory: pytest.TempPathFactory) -> None:
    with hurt_cluster(tmp_path_factory.mktemp("end")) as (cluster,):
        job, ends_at = reach_the_end(cluster)
        refuse_to_come_up(cluster)
        come_up_again(cluster, job, ends_at)
        stand_idle(cluster)


def reach_the_end(cluster: Cluster) -> tuple[int, str]:
    """The end is moved near while a job runs, and comes; the job and the moment."""
    cluster.restart_autoscaler(*QUICK, "--min-uptime", "0")
    job = cluster.submit(SCRIPT, "--partition=wide")
    cluster.runs(job)
    with step("the head has its new end"):
        moved = cluster.life.done("extend", cluster.name, "75s")  # the head looks each 30 s
        assert moved["head"] == "the head has the new end; nodes read it before they would terminate"
    with step("the job's comment explains how to move the end"):
        comment = cluster.until(lambda: cluster.job(job).get("AdminComment", "").strip())
        assert comment.endswith("`corral extend hurt TIME` moves it")
    with step("nothing is left running after the end"):
        cluster.until(lambda: cluster.head() is None)
        assert [tag(one, "Name") for one in cluster.machines()] == []
    with step("a job that ran was signalled for a checkpoint once"):
        assert (cluster.home() / "saved").read_text() == "saved\n"
    with step("the records of jobs are in the bucket"):
        dump = cluster.life.client("s3").get_object(Bucket=BUCKET, Key=f"accounting/{cluster.name}.sql.gz")
        assert b"'wrap'" in gzip.decompress(dump["Body"].read())
    with step("the timeline after the end has the job that ran"):
        assert f"\n  {job} wrap " in cluster.life.corral("timeline", cluster.name, "--box").out
    return job, str(moved["ends_at"])


def refuse_to_come_up(cluster: Cluster) -> None:
    """Its lifetime is over until somebody extends it."""
    with step("an up after the end is refused and names extend"):
        refused = cluster.life.corral("up", cluster.name, "--box", "--yes", code=4).err
        assert "to continue: corral extend hurt 4h --box, then corral up hurt --box" in refused
    with step("extend reports that the cluster had expired and what makes a head"):
        first, second = cluster.life.corral("extend", cluster.name, "4h", "--box").out.splitlines()
        assert (first.partition("; ")[2].partition(":")[0], second) == (
            "it had expired",
            "cluster hurt: it has no head now: corral up hurt --box creates one",
        )


def come_up_again(cluster: Cluster, job: int, ends_at: str) -> None:
    """The next head."""
    with step("an up after extend makes nothing but a head"):
        up = cluster.life.done("up", cluster.name)
        assert up["cluster"]["created"] == 2  # and the attachment of its volume
    with step("the job that was requeued is done once by the next head"):
        cluster.until(lambda: cluster.on_head("sinfo", "--noheader"), UP_IN_S)
        assert (cluster.end(job), cluster.results(job)) == (("COMPLETED", "1"), ["1"])
    with step("everybody was warned before queues were closed"):
        kinds = [one["event"] for one in cluster.events() if one["event"] in ("ends-soon", "draining")]
        assert kinds[:2] == ["ends-soon", "draining"]
    with step("the status has the new end"):
        assert json.loads(cluster.life.corral("status", cluster.name, "--box", "--json").out)["ends_at"] > ends_at


def stand_idle(cluster: Cluster) -> None:
    """Nobody uses it for as long as it may be idle: some seconds, which no spec could say."""
    s3, logs = cluster.life.client("s3"), cluster.life.client("logs")
    file = (BUCKET, f"clusters/{cluster.name}", "cluster.json")
    rewrite(cluster.life, cluster.name, *file, lambda plan: plan["lifetime"].update(idle_s=5))
    cluster.on_head("/opt/corral/bin/corral-agent", "apply")
    cluster.until(lambda: not cluster.machines())
    with step("two heads of one cluster keep one history"):
        listed = s3.list_objects_v2(Bucket=BUCKET, Prefix="lives/")["Contents"]
        assert [one["Key"].rpartition("/")[0] for one in listed] == [f"lives/{cluster.name}"]
    with step("a cluster that nobody uses ends itself and its log has the reason"):
        lines = logs.get_log_events(logGroupName=f"/corral/{cluster.name}", logStreamName="events")["events"]
        logged = [event["text"] for line in lines if (event := json.loads(line["message"]))["event"] == "cluster-ends"]
        assert logged[-3:] == [
            "cluster hurt ends: no job for 5 s",
            "cluster hurt has ended: its head powers itself off, volumes remain; `corral down hurt` removes it",
            "the head of hurt powers itself off",
        ]
