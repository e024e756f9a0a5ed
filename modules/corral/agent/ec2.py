"""EC2 as the agent needs it: launch, list, terminate. Answers become records here; boto3 goes no further."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from corral.agent.budget import Budget
from corral.agent.errors import AgentError
from corral.agent.identity import NODES_TAG, IdentityError, identity_in
from corral.agent.refusals import Kind, kind_of
from corral.agent.world import Block, Instance
from corral.model.deployed import DeployedTemplate
from corral.model.node_names import fold, number_of, queue_of

TERMINATED_AT_ONCE = 1000  # instances of one call
OFFER_TAG, VERSION_TAG = "corral:offer", "aws:ec2launchtemplate:version"
_SHOWN = ("pending", "running", "shutting-down", "terminated", "stopping", "stopped")
_UNKNOWN_ID = re.compile(r"i-[0-9a-f]+")
# Of an account in a region: instances and calls. Source: EC2 Developer Guide, "Request throttling for the Amazon EC2
# API", resource and request rates.
_LAUNCHED, _LAUNCHES = Budget(most=1000, per_s=2), Budget(most=5, per_s=2)
_TERMINATED, _TERMINATIONS = Budget(most=1000, per_s=20), Budget(most=100, per_s=5)
_PATIENCE_S = 2.0  # how long the keeper waits within a turn; what takes longer waits for a later one


class Ec2Error(AgentError):
    """EC2 does not do what it is asked. `kind`: what that means."""

    def __init__(self, text: str, kind: Kind) -> None:
        super().__init__(text)
        self.kind = kind


class Ec2:
    """The calls of one cluster."""

    def __init__(self, client: Any, cluster: str) -> None:
        self._client = client
        self._cluster = cluster
        self._launched, self._launches = _LAUNCHED, _LAUNCHES
        self._terminated, self._terminations = _TERMINATED, _TERMINATIONS

    def launch(
        self, template: DeployedTemplate, nodes: Sequence[str], token: str, *, at_least: int
    ) -> tuple[Instance, ...]:
        """Instances for the first of the nodes, for as many as there is room; for none if that is less than asked.

        The same token gives the same instances, also those that have ended since. Raises Ec2Error.
        """
        tags = [{"Key": NODES_TAG, "Value": fold(nodes)}]
        self._launched = _spent(self._launched, len(nodes))
        self._launches = _spent(self._launches, 1)
        with _explained():
            answer = self._client.run_instances(
                LaunchTemplate={"LaunchTemplateId": template.id, "Version": template.version},
                MinCount=at_least,
                MaxCount=len(nodes),
                ClientToken=token,
                TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            )
        return tuple(_instances([answer], nodes))

    def instances(self) -> tuple[Instance, ...]:
        """All instances that are or were nodes of this cluster, sorted by node; EC2 shows ended ones for an hour.

        Raises Ec2Error.
        """
        filters = [
            {"Name": "tag:corral:cluster", "Values": [self._cluster]},
            {"Name": "tag-key", "Values": [NODES_TAG]},
            {"Name": "instance-state-name", "Values": list(_SHOWN)},
        ]
        with _explained():
            pages = self._client.get_paginator("describe_instances").paginate(Filters=filters)
            found = [one for page in pages for one in _instances(page["Reservations"])]
        return tuple(sorted(found, key=lambda one: (queue_of(one.node), number_of(one.node), one.launched_at)))

    def launched_at(self, address: str) -> int | None:
        """When the cluster's machine with this address was launched, in seconds since 1970; None where none is shown.

        Raises Ec2Error.
        """
        filters = [
            {"Name": "tag:corral:cluster", "Values": [self._cluster]},
            {"Name": "private-ip-address", "Values": [address]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        with _explained():
            held = self._client.describe_instances(Filters=filters)["Reservations"]
        times = [one["LaunchTime"] for reservation in held for one in reservation["Instances"]]
        return int(max(times).timestamp()) if times else None

    def blocks(self, blocks: Sequence[str]) -> Mapping[str, Block]:
        """Those of the capacity blocks that have an end, by their ids. Raises Ec2Error."""
        if not blocks:
            return {}
        with _explained():
            answer = self._client.describe_capacity_reservations(CapacityReservationIds=list(blocks))
        held = answer["CapacityReservations"]
        return {
            one["CapacityReservationId"]: Block(begins=_seconds(one.get("StartDate")), ends=_seconds(one["EndDate"]))
            for one in held
            if one.get("EndDate")
        }

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Ends instances; those that have ended already are no error. Raises Ec2Error.

        EC2 ends none of a call's instances where it does not know one of them yet: the others are ended, then it is
        an error.
        """
        late: list[str] = []
        for start in range(0, len(instance_ids), TERMINATED_AT_ONCE):
            late += self._terminate(list(instance_ids[start : start + TERMINATED_AT_ONCE]))
        if late:
            raise Ec2Error(f"EC2 does not know {', '.join(late)} yet", Kind.LATE)

    def _terminate(self, instance_ids: list[str]) -> list[str]:
        """Those that EC2 does not know."""
        self._terminated = _spent(self._terminated, len(instance_ids))
        self._terminations = _spent(self._terminations, 1)
        try:
            with _explained():
                self._client.terminate_instances(InstanceIds=instance_ids)
        except Ec2Error as error:
            unknown = [one for one in _UNKNOWN_ID.findall(str(error)) if one in instance_ids]
            if error.kind != Kind.LATE or not unknown:
                raise
            rest = [one for one in instance_ids if one not in unknown]
            return unknown + (self._terminate(rest) if rest else [])
        return []


def _spent(budget: Budget, amount: int) -> Budget:
    """The budget after this. Raises Ec2Error where EC2 would refuse it: asking would only make it worse."""
    left, wait_s = budget.spend(amount, time.monotonic())
    if wait_s <= _PATIENCE_S:
        time.sleep(wait_s)
    else:
        raise Ec2Error(f"the account allows {amount} more instances in {wait_s:.0f} s", Kind.THROTTLE)
    return left


@contextmanager
def _explained() -> Iterator[None]:
    """Tells by the error's kind whether another offer, another time or nothing would help."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
        raise Ec2Error(f"{code}: {message}", kind_of(code)) from error
    except BotoCoreError as error:  # no way to EC2, or no credentials yet
        raise Ec2Error(f"EC2 cannot be asked: {error}", Kind.OUTAGE) from error


def _instances(reservations: Sequence[Any], launched_for: Sequence[str] = ()) -> Iterator[Instance]:
    """Those that are nodes. Tags can be shown later than their instance: who launched it knows what it is for."""
    for held in (one for reservation in reservations for one in reservation["Instances"]):
        tags = {tag["Key"]: tag["Value"] for tag in held.get("Tags", ())}
        try:
            node = identity_in(tags.get(NODES_TAG) or fold(launched_for), held["AmiLaunchIndex"]).node
        except IdentityError:
            continue  # somebody else's tag
        yield Instance(
            instance_id=held["InstanceId"],
            node=node,
            state=held["State"]["Name"],
            address=held.get("PrivateIpAddress", ""),
            offer=tags.get(OFFER_TAG, ""),
            version=tags.get(VERSION_TAG, ""),
            launched_at=_seconds(held.get("LaunchTime")),
            reason=held.get("StateReason", {}).get("Code", ""),
        )


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0
