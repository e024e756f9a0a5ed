"""Where instances stand in EC2's network: DescribeInstanceTopology. boto3 goes no further.

Source: EC2 API reference, DescribeInstanceTopology: three network nodes, four for some types, the top of the network
first; none for a type that is not supported or an instance that does not run; at most 100 ids in one call.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from corral.agent.ec2 import Ec2Error
from corral.agent.refusals import Kind

AT_ONCE = 100  # ids of one call; MaxResults must not be given beside them
EACH_S = 1.1  # a call a second and no more in store. Source: EC2 developer guide, "Request throttling"
# Codes that say: there is nothing to know here. The last: an instance that ended between two calls.
_NOTHING = frozenset({"UnsupportedOperation", "Unsupported", "InvalidInstanceID.NotFound"})


class Ec2Topology:
    """The call of one region."""

    def __init__(self, client: Any, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._sleep = sleep

    def switches(self, instance_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The network nodes above each instance, that of the top first; those without any are left out.

        It takes a second for each further hundred. Raises Ec2Error for what may go away.
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
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            pages = self._client.get_paginator("describe_instance_topology").paginate(InstanceIds=instance_ids)
            yield from [one for page in pages for one in page["Instances"]]
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
            if code not in _NOTHING:
                raise Ec2Error(f"{code}: {message}", Kind.OUTAGE) from error
        except BotoCoreError as error:
            raise Ec2Error(f"EC2 cannot be asked: {error}", Kind.OUTAGE) from error
