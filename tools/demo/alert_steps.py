"""The step in which a machine is slow: Prometheus and Alertmanager report it, and `corral diagnose` has the reason."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster_queries import HEAD, wait_for_job_end
from session import DemoSession, Unexpected, expect

from corral.box.vpc.capabilities import Users, probe_host

RULE, PROGRAM = (Path(__file__).with_name(name) for name in ("node_slow.yml", "synchronous.py"))
OWN_RULES = "/etc/corral/prometheus/own"
SLOW, USER = "train-2", "admin"  # the image's user


def find_slow_node(demo: DemoSession) -> None:
    """A machine slows a job down, as others wait for it: an alert arrives, and the record of the steps has why."""
    demo.shell(f"corral connect dev --box -- sh -c 'cat >/scratch/synchronous.py' <{PROGRAM}")
    if probe_host().users is Users.ONE:
        demo.explain("This box has a single user (docs/fidelity.md), so Prometheus, which has its own, does not run.")
        shell: Sequence[str] = ("env", "--chdir=/scratch", "sh", "-c")
        job = _submit(demo, shell)
        diagnose: Sequence[str] = ("diagnose", "dev", str(job), "--box")
        demo.wait_until(lambda: bool(demo.query_json(*diagnose)["findings"]), "the job has made enough steps")
    else:
        read_rule = f"cat >{OWN_RULES}/node_slow.yml; pkill -HUP -x prometheus"
        demo.shell(f"corral connect dev --box -- sh -c '{read_rule}' <{RULE}")
        demo.explain("Prometheus has a rule of our own: the shipped CorralNodeSlow without its minutes.")
        shell = ("su", "-", USER, "-c")  # nobody reads the steps of root's jobs
        with _subscribed(demo) as read_messages:
            job = _submit(demo, shell)
            messages = _wait_for_messages(demo, read_messages)
        diagnose = expect_alert(SLOW, job, messages)
    demo.corral(*diagnose)
    expect_slow_node(SLOW, demo.query_json(*diagnose)["findings"])
    demo.explain(f"The runbook advises to drain {SLOW} and to requeue the job. Here a file ends it.")
    demo.corral(*HEAD, *shell, "touch synchronous/end")
    wait_for_job_end(demo, job)


def _submit(demo: DemoSession, shell: Sequence[str]) -> int:
    """Submit the program in this shell, and return the job's number."""
    script = "/opt/corral/jobs/train/jax.sbatch /scratch/synchronous.py"
    command = f"PYTHON=python3 sbatch --ntasks-per-node=1 {script} {SLOW} synchronous"
    output = demo.shell(f"corral connect dev --box -- {shlex.join([*shell, command])}")
    demo.explain(f"It runs on two machines. On {SLOW} each step takes three times as long.")
    return int(output.split()[-1])


def _wait_for_messages(demo: DemoSession, read_messages: Callable[[], list[str]]) -> Sequence[str]:
    """Wait for the first messages, and show one."""
    demo.explain("Prometheus reads both every 30 s, and Alertmanager waits 30 s for similar alerts ...")
    messages: list[str] = []

    def is_read() -> bool:
        messages.extend(read_messages())
        return bool(messages)

    demo.wait_until(is_read, "an alert arrives")
    demo.explain("... and the topic, and so the addresses of the base's `budget.notify`, get a message:\n")
    demo.explain(textwrap.indent(messages[0].strip(), "    ") + "\n")
    return messages


def expect_alert(node: str, job: int, messages: Sequence[str]) -> Sequence[str]:
    """The command that the message names first. Raises Unexpected unless one message reports this node and this job."""
    expect(
        {
            f"one message arrived: {messages}": len(messages) == 1,
            f"it names {node} and job {job}": re.match(
                rf"{node} works [\d.]+ times as long on a step of job {job} as other nodes", messages[0]
            ),
        }
    )
    named = re.search(r"^Look first: corral (diagnose dev \d+)$", messages[0], re.MULTILINE)
    if named is None:
        raise Unexpected(f"the message should name a command; it is {messages[0]!r}")
    return (*named[1].split(), "--box")


def expect_slow_node(node: str, findings: Sequence[Mapping[str, Any]]) -> None:
    """Raise Unexpected unless this node is all that is wrong with the job."""
    expect(
        {
            f"{node} is found, and nothing else: {findings}": [(one["kind"], one["nodes"]) for one in findings]
            == [("straggler", [node])]
        }
    )


@contextmanager
def _subscribed(demo: DemoSession) -> Iterator[Callable[[], list[str]]]:
    """Subscribe a queue to the cluster's topic, as an address of `budget.notify` is; yields what reads new messages."""
    sns, sqs = demo.client("sns"), demo.client("sqs")
    (topic,) = (one["TopicArn"] for one in sns.list_topics()["Topics"] if one["TopicArn"].endswith("topic-dev"))
    queue = sqs.create_queue(QueueName="alerts")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    subscription = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)["SubscriptionArn"]

    def read() -> list[str]:
        found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        return [str(json.loads(one["Body"])["Message"]) for one in found]

    try:
        yield read
    finally:
        sns.unsubscribe(SubscriptionArn=subscription)
        sqs.delete_queue(QueueUrl=queue)
