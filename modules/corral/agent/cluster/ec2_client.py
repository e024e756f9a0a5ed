"""EC2 calls of the agent: launch, list, terminate. Responses become records here; no other module sees boto3 types.

Calls stay within EC2's request limits: a token bucket per limit.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Any

from corral.agent.aws_errors import unanswered
from corral.agent.cluster.launch_errors import LaunchErrorKind, launch_error_kind
from corral.agent.cluster.models import BlockPeriod, Instance, ReservedCapacity
from corral.agent.errors import AgentError
from corral.agent.node_identity import IdentityError, identity_at
from corral.model.deployed import DeployedTemplate
from corral.model.node_names import fold, number_of, queue_of
from corral.model.tags import CLUSTER_TAG, MANIFEST_TAG, NODES_TAG, OFFER_TAG, has_tag_filter, tag_filter
from corral.model.token_bucket import TokenBucket, full_bucket

TERMINATED_AT_ONCE = 1000  # instances per call
VERSION_TAG = "aws:ec2launchtemplate:version"
_SHOWN = ("pending", "running", "shutting-down", "terminated", "stopping", "stopped")
_UNKNOWN_ID = re.compile(r"i-[0-9a-f]+")
# Of an account in a region: instances and calls. Source: EC2 Developer Guide, "Request throttling for the Amazon EC2
# API", resource and request rates.
_LAUNCHED, _LAUNCHES = full_bucket(capacity=1000, refill_per_s=2), full_bucket(capacity=5, refill_per_s=2)
_TERMINATED, _TERMINATIONS = full_bucket(capacity=1000, refill_per_s=20), full_bucket(capacity=100, refill_per_s=5)
_MAX_WAIT_S = 2.0  # the longest wait for a bucket; beyond it the call fails and is tried again later


class Ec2Error(AgentError):
    """An EC2 call failed. `kind`: what that means for the launch."""

    def __init__(self, text: str, kind: LaunchErrorKind) -> None:
        super().__init__(text)
        self.kind = kind


class Ec2:
    """The EC2 calls of one cluster. `manifest`: the version of the head's manifest; nodes believe no older one."""

    def __init__(self, client: Any, cluster: str, manifest: Callable[[], int] = lambda: 0) -> None:
        self._client = client
        self._cluster = cluster
        self._manifest = manifest
        self._launched, self._launches = _LAUNCHED, _LAUNCHES
        self._terminated, self._terminations = _TERMINATED, _TERMINATIONS

    def launch(
        self,
        template: DeployedTemplate,
        nodes: Sequence[str],
        token: str,
        *,
        at_least: int,
        tags: Mapping[str, Mapping[str, str]] = MappingProxyType({"instance": {}}),
    ) -> tuple[Instance, ...]:
        """Launch instances for the first of the nodes, as many as EC2 has capacity for, but at least `at_least`.

        `tags`: by kind of resource; the instances get those of their nodes and manifest, too. The same token returns
        the same instances, including ended ones. Raises Ec2Error.
        """
        manifest = self._manifest()
        own = {NODES_TAG: fold(nodes)} | ({MANIFEST_TAG: str(manifest)} if manifest else {})
        all_tags = {**tags, "instance": {**tags["instance"], **own}}
        self._launched = _spent(self._launched, len(nodes))
        self._launches = _spent(self._launches, 1)
        with _explained():
            answer = self._client.run_instances(
                LaunchTemplate={"LaunchTemplateId": template.id, "Version": template.version},
                MinCount=at_least,
                MaxCount=len(nodes),
                ClientToken=token,
                TagSpecifications=[
                    {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in own.items()]}
                    for kind, own in all_tags.items()
                ],
            )
        return tuple(_instances([answer], nodes))

    def instances(self) -> tuple[Instance, ...]:
        """All instances that are or were nodes of this cluster, sorted by node; EC2 shows ended ones for an hour.

        Raises Ec2Error.
        """
        filters = [
            tag_filter(CLUSTER_TAG, self._cluster),
            has_tag_filter(NODES_TAG),
            {"Name": "instance-state-name", "Values": list(_SHOWN)},
        ]
        with _explained():
            pages = self._client.get_paginator("describe_instances").paginate(Filters=filters)
            found = [one for page in pages for one in _instances(page["Reservations"])]
        return tuple(sorted(found, key=lambda one: (queue_of(one.node), number_of(one.node), one.launched_at)))

    def launched_at(self, address: str) -> int | None:
        """When the cluster's instance with this address was launched, in seconds since 1970; None if EC2 shows none.

        Raises Ec2Error.
        """
        filters = [
            tag_filter(CLUSTER_TAG, self._cluster),
            {"Name": "private-ip-address", "Values": [address]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        with _explained():
            held = self._client.describe_instances(Filters=filters)["Reservations"]
        times = [one["LaunchTime"] for reservation in held for one in reservation["Instances"]]
        return int(max(times).timestamp()) if times else None

    def blocks(self, blocks: Sequence[str]) -> Mapping[str, BlockPeriod]:
        """The periods of the capacity blocks that have an end, by id. Raises Ec2Error."""
        if not blocks:
            return {}
        with _explained():
            answer = self._client.describe_capacity_reservations(CapacityReservationIds=list(blocks))
        held = answer["CapacityReservations"]
        return {
            one["CapacityReservationId"]: BlockPeriod(
                begins=_seconds(one.get("StartDate")), ends=_seconds(one["EndDate"])
            )
            for one in held
            if one.get("EndDate")
        }

    def reserved_capacity(self, reservations: Sequence[str]) -> Mapping[str, ReservedCapacity]:
        """The capacity of reservations and blocks by id; none in those that are not active. Raises Ec2Error."""
        with _explained():
            answer = self._client.describe_capacity_reservations(CapacityReservationIds=list(reservations))
        return {
            one["CapacityReservationId"]: ReservedCapacity(
                total=one["TotalInstanceCount"] if one["State"] == "active" else 0,
                free=one["AvailableInstanceCount"] if one["State"] == "active" else 0,
            )
            for one in answer["CapacityReservations"]
        }

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Terminate instances; ended ones are no error. Raises Ec2Error.

        EC2 terminates no instance of a call if it does not know one of them yet. This terminates the known ones, then
        raises.
        """
        late: list[str] = []
        for start in range(0, len(instance_ids), TERMINATED_AT_ONCE):
            late += self._terminate(list(instance_ids[start : start + TERMINATED_AT_ONCE]))
        if late:
            raise Ec2Error(f"EC2 does not know {', '.join(late)} yet", LaunchErrorKind.NOT_VISIBLE)

    def _terminate(self, instance_ids: list[str]) -> list[str]:
        """Terminate instances, and return the ids that EC2 does not know."""
        self._terminated = _spent(self._terminated, len(instance_ids))
        self._terminations = _spent(self._terminations, 1)
        try:
            with _explained():
                self._client.terminate_instances(InstanceIds=instance_ids)
        except Ec2Error as error:
            unknown = [one for one in _UNKNOWN_ID.findall(str(error)) if one in instance_ids]
            if error.kind != LaunchErrorKind.NOT_VISIBLE or not unknown:
                raise
            rest = [one for one in instance_ids if one not in unknown]
            return unknown + (self._terminate(rest) if rest else [])
        return []


def _spent(bucket: TokenBucket, amount: int) -> TokenBucket:
    """Wait for the tokens, and return the bucket after this call.

    Raises Ec2Error if the wait is too long: a throttled call would spend tokens too.
    """
    left, wait_s = bucket.spend(amount, time.monotonic())
    if wait_s <= _MAX_WAIT_S:
        time.sleep(wait_s)
    else:
        raise Ec2Error(f"the account allows {amount} more instances in {wait_s:.0f} s", LaunchErrorKind.THROTTLE)
    return left


@contextmanager
def _explained() -> Iterator[None]:
    """Raise botocore's errors as Ec2Error with their kind."""
    from botocore.exceptions import ClientError

    try:
        yield
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
        raise Ec2Error(f"{code}: {message}", launch_error_kind(code, message)) from error
    except unanswered() as error:
        raise Ec2Error(f"cannot reach EC2: {error}", LaunchErrorKind.OUTAGE) from error


def _instances(reservations: Sequence[Any], launched_for: Sequence[str] = ()) -> Iterator[Instance]:
    """The instances that are nodes. EC2 may show tags later than their instance; `launched_for` replaces them."""
    for held in (one for reservation in reservations for one in reservation["Instances"]):
        tags = {tag["Key"]: tag["Value"] for tag in held.get("Tags", ())}
        try:
            node = identity_at(tags.get(NODES_TAG) or fold(launched_for), held["AmiLaunchIndex"]).node
        except IdentityError:
            continue  # the tag is not corral's
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
