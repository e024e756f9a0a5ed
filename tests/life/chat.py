"""A chat of the owner's, on a machine of its own in the cluster's VPC: it takes messages as Slack's webhooks do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusters import Cluster

from certificates import make_certificate

PROGRAM = Path(__file__).parent / "programs/webhook.py"
CHAT_HOST, WEBHOOK = "hooks.example.org", "/services/T0123/B0123/w3bh00k0fth1st3st"
_DIRECTORY = "/opt/chat"  # of its machine
_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat that runs on this instance."""

    cluster: Cluster
    instance: str

    def messages(self) -> list[Any]:
        """The messages so far: what is in Slack's attachment."""
        lines = self.cluster.on(self.instance, "cat", f"{_DIRECTORY}/messages").splitlines()
        return [attachment for line in lines for attachment in json.loads(line)["attachments"]]


def start_chat(cluster: Cluster, directory: Path) -> Chat:
    """Starts a chat. The head knows its host and its authority, as an owner's image does."""
    ec2 = cluster.life.client("ec2")
    filters = [{"Name": "instance-id", "Values": [cluster.head()]}]
    (reservation,) = ec2.describe_instances(Filters=filters)["Reservations"]
    (head,) = reservation["Instances"]
    made = make_certificate(directory, [CHAT_HOST])
    files = {"webhook.py": PROGRAM, "cert.pem": made / "cert.pem", "key.pem": made / "key.pem"}
    texts = [f"cat >{_DIRECTORY}/{name} <<'END'\n{path.read_text()}END\n" for name, path in files.items()]
    start = f"setsid python3 {_DIRECTORY}/webhook.py {WEBHOOK} {_DIRECTORY} &\n"
    (instance,) = ec2.run_instances(
        ImageId=head["ImageId"],
        InstanceType="m7i.large",
        SubnetId=head["SubnetId"],
        UserData=f"#!/bin/sh\numask 077\nmkdir {_DIRECTORY}\n{''.join(texts)}{start}",
        MinCount=1,
        MaxCount=1,
    )["Instances"]
    trust = f"cat >>{_AUTHORITIES} <<'END'\n{(made / 'cert.pem').read_text()}END\n"
    cluster.on_head("sh", "-c", f"echo {instance['PrivateIpAddress']} {CHAT_HOST} >>/etc/hosts\n{trust}")
    answers = f"curl --silent --request POST --data nothing https://{CHAT_HOST}/"
    cluster.until(lambda: cluster.on_head("sh", "-c", answers) == "no_service")
    return Chat(cluster=cluster, instance=instance["InstanceId"])
