"""The position of instances in EC2's network, from DescribeInstanceTopology.

Source: EC2 API reference, DescribeInstanceTopology: three network nodes, four for some types, the top of the network
first; none for a type that is not supported or an instance that does not run; at most 100 ids in one call.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from corral.agent.aws_errors import unanswered
from corral.agent.cluster.ec2_client import Ec2Error
from corral.agent.cluster.launch_errors import LaunchErrorKind

AT_ONCE = 100  # ids per call; EC2 refuses MaxResults with them
EACH_S = 1.1  # one call a second, without a burst. Source: EC2 developer guide, "Request throttling"
# Codes for an unknown topology. The last: the instance terminated between two calls.
_UNKNOWN_TOPOLOGY = frozenset({"UnsupportedOperation", "Unsupported", "InvalidInstanceID.NotFound"})


class Ec2Topology:
    """The call of one region."""

    def __init__(self, client: Any, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._sleep = sleep

    def switches(self, instance_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the network nodes above each instance, from the top; instances without any are left out.

        Takes a second per further 100 instances. Raises Ec2Error for errors that may be transient.
        """
        found: dict[str, tuple[str, ...]] = {}
        for start in range(0, len(instance_ids), AT_ONCE):
            if start:
                self._sleep(EACH_S)
            for one in self._described(list(instance_ids[start : start + AT_ONCE])):
                if nodes := tuple(one.get("NetworkNodes") or ()):
                    found[one["InstanceId"]] = nodes
        return found

    def _described(self, instance_ids: list[str]) -> Iterator[Mapping[str, Any]]:
        from botocore.exceptions import ClientError

        try:
            pages = self._client.get_paginator("describe_instance_topology").paginate(InstanceIds=instance_ids)
            yield from [one for page in pages for one in page["Instances"]]
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
            if code not in _UNKNOWN_TOPOLOGY:
                raise Ec2Error(f"{code}: {message}", LaunchErrorKind.OUTAGE) from error
        except unanswered() as error:
            raise Ec2Error(f"cannot reach EC2: {error}", LaunchErrorKind.OUTAGE) from error
