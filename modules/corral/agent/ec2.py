"""EC2 as the agent needs it: launch, list, terminate. Answers become records here; boto3 goes no further."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from corral.agent.errors import AgentError
from corral.agent.identity import NODES_TAG, IdentityError, identity_in
from corral.model.deployed import DeployedTemplate
from corral.model.node_names import fold, number_of, queue_of

TERMINATED_AT_ONCE = 1000  # instances of one call
TAG_LENGTH = 256  # characters of a tag's value. Source: EC2 User Guide, "Tag your Amazon EC2 resources"
_LIVE = ("pending", "running", "stopping", "stopped")
# Error codes that say: not here, not now. Source: EC2 API reference, "Error codes".
_NO_CAPACITY = frozenset(
    {
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
        "Unsupported",
    }
)
# Codes that say nothing about the launch, but about EC2 at this moment. Same source.
_NOT_NOW = frozenset(
    {
        "ExpiredToken",
        "InternalError",
        "InternalFailure",
        "RequestExpired",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingException",
        "Unavailable",
    }
)


class Ec2Error(AgentError):
    """EC2 does not do what it is asked, for a reason that may go away: what was asked for can be asked again."""


class LaunchError(AgentError):
    """A launch that EC2 refused, for a reason that another try would not change."""


class NoCapacity(AgentError):
    """An offer that has no room now; another may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance that is some node's. `address`: its private one."""

    instance_id: str
    node: str
    state: str
    address: str


class Ec2:
    """The calls of one cluster."""

    def __init__(self, client: Any, cluster: str) -> None:
        self._client = client
        self._cluster = cluster

    def launch(
        self, template: DeployedTemplate, nodes: Sequence[str], token: str, *, at_least: int
    ) -> tuple[Instance, ...]:
        """Instances for the first of the nodes, for as many as there is room, or for none if that is less than asked.

        The same token gives the same instances. Raises NoCapacity, LaunchError, Ec2Error.
        """
        tags = [{"Key": NODES_TAG, "Value": fold(nodes)}]
        with _explained(LaunchError):
            answer = self._client.run_instances(
                LaunchTemplate={"LaunchTemplateId": template.id, "Version": template.version},
                MinCount=at_least,
                MaxCount=len(nodes),
                ClientToken=token,
                TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            )
        made = tuple(one for one in _instances([answer]) if one.state in _LIVE)
        if not made:  # an earlier try's, which it ended itself
            raise NoCapacity("the instances of an earlier try have ended")
        return made

    def nodes(self) -> tuple[Instance, ...]:
        """All instances that are nodes of this cluster and are not ending, sorted by node. Raises Ec2Error."""
        filters = [
            {"Name": "tag:corral:cluster", "Values": [self._cluster]},
            {"Name": "tag-key", "Values": [NODES_TAG]},
            {"Name": "instance-state-name", "Values": list(_LIVE)},
        ]
        with _explained(Ec2Error):
            pages = self._client.get_paginator("describe_instances").paginate(Filters=filters)
            found = [one for page in pages for one in _instances(page["Reservations"])]
        return tuple(sorted(found, key=lambda one: (queue_of(one.node), number_of(one.node))))

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Ends instances; those that have ended already are no error. Raises Ec2Error."""
        for start in range(0, len(instance_ids), TERMINATED_AT_ONCE):
            with _explained(Ec2Error):
                self._client.terminate_instances(InstanceIds=list(instance_ids[start : start + TERMINATED_AT_ONCE]))


@contextmanager
def _explained(refused: type[AgentError]) -> Iterator[None]:
    """Tells by the error's kind whether another offer, another time or nothing would help; `refused` is for nothing."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
        kind = NoCapacity if code in _NO_CAPACITY else Ec2Error if code in _NOT_NOW else refused
        raise kind(f"{code}: {message}") from error
    except BotoCoreError as error:  # no way to EC2, or no credentials yet
        raise Ec2Error(f"EC2 cannot be asked: {error}") from error


def _instances(reservations: Sequence[Any]) -> Iterator[Instance]:
    for held in (one for reservation in reservations for one in reservation["Instances"]):
        tags = {tag["Key"]: tag["Value"] for tag in held.get("Tags", ())}
        try:
            node = identity_in(tags.get(NODES_TAG, ""), held["AmiLaunchIndex"]).node
        except IdentityError:
            continue  # somebody else's tag; reconcile tells of it
        yield Instance(
            instance_id=held["InstanceId"],
            node=node,
            state=held["State"]["Name"],
            address=held.get("PrivateIpAddress", ""),
        )
