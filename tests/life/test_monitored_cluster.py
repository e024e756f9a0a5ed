"""A cluster with Prometheus: a later `corral up` starts it, it follows a real job, and no user of the head reads it.

Everything is read on the head, by curl.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from clusters import UP_IN_S, Cluster

import boxes
from corral.box.vpc.capabilities import probe_host
from life import begin
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.long]
METRICS, PROMETHEUS = "http://127.0.0.1:251/metrics", "http://127.0.0.1:9090/api/v1"
STATUS = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}")
AS_ADA = ("setpriv", "--reuid=ada", "--regid=ada", "--init-groups", "--")
DATA = "/var/lib/corral/prometheus"
KEY = "corral:$(cat /etc/corral/prometheus/password)"


def test_a_cluster_watches_itself(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert probe_host().users, probe_host().problem
    directory = tmp_path_factory.mktemp("watched")
    with boxes.running_box(directory / "box", machines=True) as box:
        cluster = Cluster(life=begin(directory, box), name="dev")
        come_up(cluster)
        add_prometheus(cluster)
        follow_a_job(cluster)
        keep_users_out(cluster)
        cluster.life.done("down", "dev")


def come_up(cluster: Cluster) -> None:
    """A cluster without Prometheus."""
    with cluster.spec.open("a") as spec:
        spec.write("    access:\n      users:\n        ada: {uid: 2000}\n")
    cluster.life.done("up", "dev")
    cluster.until(lambda: cluster.on_head("sinfo", "--noheader"), UP_IN_S)
    cluster.until(lambda: cluster.on_head("id", "ada"))
    with step("root of a head without Prometheus reads its metrics"):
        assert "corral_slurmctld_up 1\n" in cluster.on_head("curl", "--silent", METRICS) + "\n"
    with step("promtool finds nothing wrong with them"):
        checked = cluster.on_head("sh", "-c", f"curl --silent {METRICS} | promtool check metrics && echo well")
        assert checked == "well"


def add_prometheus(cluster: Cluster) -> None:
    """The environment's file gets a line, and the running head Prometheus."""
    with cluster.spec.open("a") as spec:
        spec.write("    monitoring: {prometheus: true}\n")
    cluster.life.done("up", "dev")
    with step("a later up starts Prometheus, which scrapes the head"):
        cluster.until(lambda: values(cluster, 'up{job="corral"}') == ["1"])
    with step("Prometheus runs as a user of its own, with its data on the state volume"):
        assert cluster.on_head("stat", "--format=%U %a", "/var/lib/corral/prometheus") == "prometheus 700"
        assert cluster.on_head("ps", "-o", "user=", "-C", "prometheus").split() == ["prometheus"]
    with step("each rule is evaluated, and a healthy cluster has no alert"):
        rules = [one for group in found(cluster, "rules")["groups"] for one in group["rules"]]
        assert {(one["health"], one["state"]) for one in rules} <= {("ok", "inactive"), ("unknown", "inactive")}
    with step("the head costs money"):
        cluster.until(lambda: values(cluster, 'corral_cost_usd_per_hour{estimate="low"} > 0.4') != [])


def follow_a_job(cluster: Cluster) -> None:
    """A job on two machines."""
    job = cluster.submit("sleep 600", "--nodes=2", "--gpus-per-node=8")
    with step("its GPUs are allocated while it runs"):
        cluster.runs(job)
        cluster.until(lambda: values(cluster, 'corral_gpus{state="allocated"}') == ["16"])
    with step("its launch is counted, and its machines are of an offer"):
        cluster.until(lambda: values(cluster, "sum(corral_machines)") == ["2"])
        assert values(cluster, 'sum(corral_launches_total{outcome="launched"})') == ["1"]
    with step("its boot has a time"):
        cluster.until(lambda: values(cluster, "sum(corral_node_boot_seconds_count)") == ["2"])
    with step("it has ended in the metrics, too"):
        cluster.on_head("scancel", str(job))
        cluster.until(lambda: values(cluster, 'corral_gpus{state="allocated"}') == ["0"])


def keep_users_out(cluster: Cluster) -> None:
    """A person on the head."""
    with step("a user reads no metrics of the head"):
        assert cluster.on_head(*AS_ADA, *STATUS, METRICS) == "403"
    with step("a user reads nothing of Prometheus"):
        assert cluster.on_head(*AS_ADA, *STATUS, f"{PROMETHEUS}/query?query=up") == "401"
    with step("a user reads neither the password nor its hash nor the data"):
        for command in ("cat /etc/corral/prometheus/password", "cat /etc/corral/prometheus/web.yml", f"ls {DATA}"):
            refused = f"{command} >/dev/null 2>&1 || echo refused"
            assert cluster.on_head(*AS_ADA, "sh", "-c", refused) == "refused"


def found(cluster: Cluster, path: str) -> Any:
    """The data of Prometheus's answer; nothing while it does not answer."""
    text = cluster.on_head("sh", "-c", f"curl --silent --globoff --user \"{KEY}\" '{PROMETHEUS}/{path}'")
    return json.loads(text)["data"] if text.startswith("{") else {"result": []}


def values(cluster: Cluster, expression: str) -> list[str]:
    """The values of an expression."""
    escaped = expression.replace(" ", "%20").replace("+", "%2B")
    return [one["value"][1] for one in found(cluster, f"query?query={escaped}")["result"]]
