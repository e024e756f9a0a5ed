"""A cluster with Prometheus: a later `corral up` starts it, it follows real jobs, and no user of the head reads it.
A machine slows a job down, and those whom the environment names get the alert, and its end.

Prometheus and Alertmanager have the files that `corral up` installs, with all their minutes: the alert takes ten, its
end up to fifteen. A new head is silent for ten minutes; all steps before the slow machine fit into these.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from canaries import Secret, locations, secrets_of, served, shown
from chat import CHAT_HOST, WEBHOOK, Chat, start_chat
from clusters import UP_IN_S, Cluster
from people import as_person

import boxes
from agent.health_fixtures import RECORDED
from corral.box.client import BoxStatus
from corral.box.vpc.capabilities import probe_host
from corral.model.monitoring import PAGERDUTY_KEY, SLACK_URL
from life import begin
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.long]
METRICS, PROMETHEUS = "http://127.0.0.1:251/metrics", "http://127.0.0.1:9090/api/v1"
STATUS = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}")
AS_ADA = ("setpriv", "--reuid=ada", "--regid=ada", "--init-groups", "--")
DATA = "/var/lib/corral/prometheus"
# A training program: a step a second, recorded by what the agent brings.
RECORDS_STEPS = """
export CORRAL_STEP_DIR=$PWD/.corral/steps/$SLURM_JOB_ID PYTHONPATH=/opt/corral/agent/corral/agent/job_library
(umask 077 && mkdir -p "$CORRAL_STEP_DIR")
srun python3 -c '
import corral_step, time
with corral_step.StepRecorder() as steps:
    while True:
        time.sleep(1)
        steps.end_step(tokens=100)
'"""
RUN = "{model: llama3-8b, tokens: 1B, sequence_length: 8192, batch_sequences: 64, queue: train, nodes: 2}\n"
RUNBOOK = Path(__file__).parents[2] / "docs/runbooks/CorralNodeSlow.md"
PROGRAMS = Path(__file__).parent / "programs"
# A synchronous training program: the same on both machines, until one of them stops its processes again and again.
HOME = "/home/ada"
TRAINS = f"{HOME}/trains.py --in-pieces --step 0.08 --seconds 7200 --mark limps"
SLOWS_DOWN = f"setsid /usr/bin/python3 {HOME}/slows_down.py limps </dev/null >/dev/null 2>&1 &"
# The chat answers. What is no key of PagerDuty's is sent to a host that does not.
RECEIVERS = {"team/slack": f"https://{CHAT_HOST}{WEBHOOK}", "team/pagerduty": "r0ut1ngk3y0fth1st3st0123456789ab"}
WATCHING = ("Prometheus's password", "node token", "Slack's webhook", "PagerDuty's key", "munge key")
ALERTMANAGER = "http://127.0.0.1:9093"
MOVED_IN_S = 420  # Slurm lets a job that is requeued wait two minutes
# Silence after the head's start, a mean that rises, `for`, `group_wait`; then a mean that forgets, `group_interval`.
FIRES_IN_S, OVER_IN_S = 1800, 1500
KEY = "corral:$(cat /etc/corral/prometheus/password)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """What people got so far: messages of the cluster's topic, and of the chat."""

    read_mails: Callable[[], list[str]]
    chat: Chat
    mails: list[str] = field(default_factory=list)

    def mail(self, words: str) -> str:
        """The mail with these words; looks every five seconds."""
        time.sleep(5)
        self.mails.extend(self.read_mails())
        return next((one for one in self.mails if words in one), "")

    def posts(self) -> list[Mapping[str, Any]]:
        return self.chat.messages()


def test_a_cluster_watches_itself(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert probe_host().users, probe_host().problem
    directory = tmp_path_factory.mktemp("watched")
    with boxes.running_box(directory / "box", machines=True) as box:
        cluster = Cluster(life=begin(directory, box), name="dev")
        come_up(cluster)
        inbox = Inbox(read_mails=mailbox(box), chat=start_chat(cluster, tmp_path_factory.mktemp("chat")))
        add_prometheus(cluster)
        name_receivers(cluster)
        follow_a_job(cluster)
        follow_its_steps(cluster)
        keep_users_out(cluster)
        job = start_training(cluster)
        notify_of_a_slow_node(cluster, job, inbox)
        follow_the_runbook(cluster, job)
        secrets = look_for_secrets(cluster, job)  # while the alert is still over nothing but old steps
        notify_of_its_end(cluster, job, inbox)
        report_a_receiver_that_fails(cluster)
        cluster.life.done("down", "dev")
        with step("what watched a cluster that is gone leaves its secrets nowhere"):
            assert locations(cluster, secrets, ()) == {name: one.afterwards for name, one in secrets.items()}


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
        spec.write("    monitoring: {prometheus: true, alerts: {}, remote_write: {workspace: ws-1}}\n")
        spec.write("    jobs: {runs: {small: runs/small.yaml}}\n")
    (cluster.life.project / "runs").mkdir()
    (cluster.life.project / "runs/small.yaml").write_text(RUN)
    cluster.life.done("up", "dev")
    with step("a later up starts Prometheus, which scrapes the head"):
        cluster.until(lambda: values(cluster, 'up{job="corral"}') == ["1"])
    with step("Prometheus runs as a user of its own, with its data on the state volume"):
        assert cluster.on_head("stat", "--format=%U %a", "/var/lib/corral/prometheus") == "prometheus 700"
        assert cluster.on_head("ps", "-o", "user=", "-C", "prometheus").split() == ["prometheus"]
    with step("each rule is evaluated, and a healthy cluster has no alert"):
        rules = [one for group in found(cluster, "rules")["groups"] for one in group["rules"]]
        assert {one["health"] for one in rules} <= {"ok", "unknown"}
        assert {one["state"] for one in rules if one["type"] == "alerting"} == {"inactive"}
    with step("series for a workspace that does not answer are kept"):
        cluster.until(lambda: float(own_metric(cluster, "samples_retried_total")) > 0)
        assert float(own_metric(cluster, "samples_failed_total")) == 0
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


def follow_its_steps(cluster: Cluster) -> None:
    """A job of ada's on both machines, whose processes record their steps; one machine has the GPU of a recording."""
    for machine in cluster.nodes().values():
        shown = Path(cluster.life.box.dir) / "machines/disks" / machine / "box/health"
        shown.mkdir(parents=True)
        shutil.copy(RECORDED / "h200-loaded/gpu-load.csv", shown)
    options = ("--chdir=/home/ada", "--nodes=2", "--gpus-per-node=8", "--export=ALL,CORRAL_RUN=small")
    command = ("sbatch", "--parsable", *options, f"--wrap={RECORDS_STEPS}")
    job = cluster.on_head(*AS_ADA, *command)
    with step("Prometheus reads each node that is up, by the token"):
        cluster.until(lambda: sorted(values(cluster, 'up{job="nodes"}')) == ["1", "1"])
    with step("the steps of each process are series of its job and user"):
        steps = f'corral_job_step_seconds{{job_id="{job}",user="ada"}}'
        cluster.until(lambda: len(values(cluster, f"{steps}>0.9")) == 2)
    with step("each process is of the node on which it runs"):
        assert values(cluster, "count(count(corral_job_step_seconds)by(node,rank))") == ["2"]
    with step("its speed is compared with the forecast of the run that it names"):
        of_run = f'corral_job_forecast_ratio{{job_id="{job}",user="ada",run="small",queue="train"}}'
        (ratio,) = cluster.until(lambda: values(cluster, of_run))
        (speed,) = values(cluster, "corral_job_tokens_per_second_per_gpu")  # 200 tokens a second on 16 GPUs
        (forecast,) = values(cluster, "corral_forecast_tokens_per_second_per_gpu")
        assert float(speed) == pytest.approx(12.4, abs=0.3)
        assert float(ratio) == pytest.approx(float(speed) / float(forecast), rel=0.1)
    with step("diagnose compares it, too, without a run file"):
        shown = cluster.until(lambda: speed_of_run(diagnosis(cluster, job)))
        assert (shown["forecast_run"], shown["forecast_share"]) == ("small", pytest.approx(float(ratio), rel=0.1))
    with step("what nvidia-smi answers on a node is there"):
        cluster.until(lambda: values(cluster, "corral_gpu_power_watts") == ["627.4", "627.4"])
    with step("a user of the head or of a node reads nothing of a node"):
        node = cluster.node("train-1")["NodeAddr"]
        assert cluster.on_head(*AS_ADA, *STATUS, f"http://{node}:252/metrics") == "401"
        refused = "cat /etc/corral/prometheus/node-token >/dev/null 2>&1 || echo refused"
        assert cluster.on_head(*AS_ADA, "sh", "-c", refused) == "refused"
    with step("with the job its series end"):
        cluster.on_head("scancel", job)
        cluster.until(lambda: values(cluster, "corral_job_step_seconds") == [])


def keep_users_out(cluster: Cluster) -> None:
    """A person on the head."""
    with step("a user reads no metrics of the head"):
        assert cluster.on_head(*AS_ADA, *STATUS, METRICS) == "403"
    with step("a user writes no series to the workspace"):
        written = ("--data", "series", METRICS.replace("/metrics", "/remote-write"))
        assert cluster.on_head(*AS_ADA, *STATUS, *written) == "403"
    with step("a user reads nothing of Prometheus"):
        assert cluster.on_head(*AS_ADA, *STATUS, f"{PROMETHEUS}/query?query=up") == "401"
    with step("a user reads neither the password nor its hash nor the data"):
        for command in ("cat /etc/corral/prometheus/password", "cat /etc/corral/prometheus/web.yml", f"ls {DATA}"):
            refused = f"{command} >/dev/null 2>&1 || echo refused"
            assert cluster.on_head(*AS_ADA, "sh", "-c", refused) == "refused"


def name_receivers(cluster: Cluster) -> None:
    """A later `corral up` names secrets of Slack and PagerDuty."""
    for name, value in RECEIVERS.items():
        cluster.life.client("secretsmanager").create_secret(Name=name, SecretString=value)
    receivers = "{slack: team/slack, pagerduty: team/pagerduty}"
    cluster.spec.write_text(cluster.spec.read_text().replace("alerts: {}", f"alerts: {receivers}"))
    cluster.life.done("up", "dev")
    cluster.until(lambda: cluster.on_head("cat", SLACK_URL) and cluster.on_head("cat", PAGERDUTY_KEY))


def start_training(cluster: Cluster) -> str:
    """A job of ada's on both machines, with the shipped script, on which nothing is wrong yet."""
    for name in ("trains.py", "slows_down.py"):
        file = cluster.home() / "ada" / name
        file.write_text((PROGRAMS / name).read_text())
        file.chmod(0o644)
    options = "--nodes=2 --ntasks-per-node=1 --cpus-per-task=1 --gpus-per-node=8 --mem=2G"
    command = f"PYTHON=/usr/bin/python3 sbatch --parsable {options} /opt/corral/jobs/train/jax.sbatch {TRAINS}"
    job = as_person(cluster, "ada", command)
    with step("a healthy job on two machines has a speed and no finding"):
        cluster.until(lambda: curves_of_run(cluster, job))
        assert cluster.job(int(job))["NodeList"] == "train-[1-2]"
        assert found_in(diagnosis(cluster, job)) == []
    return job


def notify_of_a_slow_node(cluster: Cluster, job: str, inbox: Inbox) -> None:
    """A machine slows the job down: the alert, its messages, and the reason."""
    cluster.on(cluster.instance_of("train-2"), "sh", "-c", SLOWS_DOWN)
    with step("Alertmanager's message names the node, where to look first, and the runbook"):
        text = cluster.until(lambda: inbox.mail("train-2 works"), FIRES_IN_S)
        # A quarter of the way between both machines is what others need: a node at 1.8 times is at 1.5 of that.
        assert re.search(rf"train-2 works 1\.[3-6]\d times as long on a step of job {job} as other nodes", text)
        assert f"Look first: corral diagnose dev {job}\nRunbook: docs/runbooks/CorralNodeSlow.md" in text
    with step("the chat gets it by its webhook"):
        (post,) = cluster.until(inbox.posts)
        assert (post["title"], post["color"]) == ("corral dev: CorralNodeSlow (warning)", "warning")
        assert post["text"].startswith("train-2 works 1.")
    with step("nothing else is wrong"):
        assert [one for one in inbox.mails if "train-2 works" not in one] == []
    with step("the command of the message names the node and the reason"):
        (command,) = re.findall(r"Look first: corral (.+)", text)
        shown = json.loads(cluster.life.corral(*shlex.split(command), "--box", "--json").out)
        assert found_in(shown) == [("straggler", ["train-2"])]
    with step("it has read the one GPU that nvidia-smi shows on each of the job's nodes"):
        assert [one for one in shown["unknown"] if "GPUs" in one or "EFA" in one] == [
            "14 of 16 GPUs (nvidia-smi did not report them)",
            "EFA of 2 of 2 nodes (no two readings of its counters)",
        ]
    with step("the job's page has its GPUs of all the time, and its speed, which fell"):
        kept = curves_of_run(cluster, job)
        assert (kept["problem"], kept["nodes"], {*kept["gpu_utilization"]}) == ("", 2, {1.0})
        assert kept["tokens_per_s"][-1] < 0.8 * max(one for one in kept["tokens_per_s"] if one)


def follow_the_runbook(cluster: Cluster, job: str) -> None:
    """The first thing that the alert's page lists to do."""
    (first,) = re.findall(r"^## Do\n1\. (.+)$", RUNBOOK.read_text(), re.MULTILINE)
    for command in re.findall(r"`(scontrol .+?)`", first):  # of job 17 on train-2
        cluster.on_head(*shlex.split(re.sub(r"\b17\b", job, command)))
    with step("the commands of the runbook move the job to another machine"):
        cluster.until(lambda: cluster.job(int(job)).get("JobState") == "PENDING")
        cluster.until(lambda: cluster.job(int(job))["JobState"] == "RUNNING", MOVED_IN_S)
        moved = cluster.job(int(job))
        assert (moved["NodeList"], moved["Restarts"]) == ("train-[1,3]", "1")


def notify_of_its_end(cluster: Cluster, job: str, inbox: Inbox) -> None:
    """The job makes its steps on another machine."""
    with step("a message reports that it is over"):
        cluster.until(lambda: inbox.mail("Over: train-2 works"), OVER_IN_S)
    with step("the chat is informed of the end, too, and of nothing else"):
        posts = cluster.until(lambda: posts if len(posts := inbox.posts()) > 1 else None)
        ended = ("corral dev: CorralNodeSlow is over", "good")
        assert [(one["title"], one["color"]) for one in posts[1:]] == [ended]
    with step("the job is as fast as before, and nothing is wrong"):
        assert found_in(diagnosis(cluster, job)) == []
        alerts = found(cluster, "alerts")["alerts"]
        assert [one["labels"]["alertname"] for one in alerts if one["state"] == "firing"] == []
    cluster.on_head("scancel", job)


def report_a_receiver_that_fails(cluster: Cluster) -> None:
    """PagerDuty, which does not answer here, and gets critical alerts alone."""
    with step("messages to PagerDuty fail"):
        cluster.until(lambda: "Canary" in alerts_after_adding(cluster))
        cluster.until(lambda: "pagerduty" in failed_integrations(cluster))


def alerts_after_adding(cluster: Cluster) -> str:
    """The alerts of Alertmanager, one of them added now, unless it does not answer yet."""
    return cluster.on_head("sh", "-c", "amtool alert add Canary severity=critical cluster=dev && amtool alert query")


def failed_integrations(cluster: Cluster) -> list[str]:
    """To whom Alertmanager could not send a message."""
    text = cluster.on_head("sh", "-c", f'curl --silent --user "{KEY}" {ALERTMANAGER}/metrics')
    return re.findall(
        r'^alertmanager_notification_requests_failed_total{integration="(\w+)"} [1-9]', text, re.MULTILINE
    )


def look_for_secrets(cluster: Cluster, job: str) -> Mapping[str, Secret]:
    """Those of what watches the cluster, while this job runs on train-1."""
    node = cluster.instance_of("train-1")
    secrets = {name: one for name, one in secrets_of(cluster, node).items() if name in WATCHING}
    with step("the secrets of what watches a cluster are known"):
        assert sorted(secrets) == sorted(WATCHING)
    texts = [*shown(cluster, int(job)), *served(cluster, node)]
    with step("the secrets of what watches a cluster are where they belong and nowhere else"):
        assert locations(cluster, secrets, texts) == {name: one.locations for name, one in secrets.items()}
    return secrets


def diagnosis(cluster: Cluster, job: str) -> Any:
    return json.loads(cluster.life.corral("diagnose", "dev", job, "--box", "--json").out)


def speed_of_run(document: Any) -> Any:
    """The speed, if all processes have recorded theirs."""
    return document["speed"] if document["speed"]["forecast_share"] else None


def curves_of_run(cluster: Cluster, job: str) -> Any:
    """What the head has from Prometheus of the job's run, once slurmdbd has the job, and there are tokens."""
    answer = cluster.on_head("/opt/corral/bin/corral-agent", "job-evidence", job)
    curves = json.loads(answer)["curves"] if answer else None
    return curves if curves and curves["tokens_per_s"] else None


def found_in(document: Any) -> list[tuple[str, list[str]]]:
    return [(one["kind"], one["nodes"]) for one in document["findings"]]


def mailbox(box: BoxStatus) -> Callable[[], list[str]]:
    """Subscribes to the cluster's topic; returns what reads the new messages."""
    sns, sqs = boxes.client(box, "sns"), boxes.client(box, "sqs")
    (topic,) = (one["TopicArn"] for one in sns.list_topics()["Topics"] if one["TopicArn"].endswith(":watch-topic-dev"))
    queue = boxes.subscribed_queue(sns, sqs, topic)

    def read() -> list[str]:
        found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        for one in found:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=one["ReceiptHandle"])
        return [json.loads(one["Body"])["Message"] for one in found]

    return read


def found(cluster: Cluster, path: str) -> Any:
    """The data of Prometheus's answer; nothing while it does not answer."""
    text = cluster.on_head("sh", "-c", f"curl --silent --globoff --user \"{KEY}\" '{PROMETHEUS}/{path}'")
    return json.loads(text)["data"] if text.startswith("{") else {"result": []}


def own_metric(cluster: Cluster, name: str) -> str:
    """Prometheus's own counter of what it writes elsewhere."""
    text = cluster.on_head("sh", "-c", f'curl --silent --user "{KEY}" {PROMETHEUS.replace("/api/v1", "/metrics")}')
    found = re.search(rf"^prometheus_remote_storage_{name}{{.*}} (\S+)$", text, re.MULTILINE)
    return found[1] if found else "0"


def values(cluster: Cluster, expression: str) -> list[str]:
    """The values of an expression."""
    escaped = expression.replace(" ", "%20").replace("+", "%2B")
    return [one["value"][1] for one in found(cluster, f"query?query={escaped}")["result"]]
