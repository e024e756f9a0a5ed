"""How the keeper's clients read what AWS answers: of an instance only what the keeper knows of it, and times quickly.

A fleet's answer has dozens of fields for each instance, three of them times. Reading all of them, the times in whatever
form, is most of what a launch of a thousand machines costs the head.
"""

from datetime import datetime
from typing import Any

# Of an instance: what `ec2` makes its records of.
READ = frozenset({
    "InstanceId", "AmiLaunchIndex", "State", "StateReason", "PrivateIpAddress", "LaunchTime", "Tags",
})  # fmt: skip


def quick_session() -> Any:
    """A boto3 session whose clients read times as AWS writes them."""
    import boto3
    import botocore.session

    session = botocore.session.get_session()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=moment)
    return boto3.session.Session(botocore_session=session)


def lean(client: Any) -> Any:
    """The same EC2 client, which leaves out of an instance whatever is not in READ."""
    model = client.meta.service_model
    launch = model.operation_model("RunInstances").output_shape
    reservations = model.operation_model("DescribeInstances").output_shape.members["Reservations"]
    for reservation in (launch, reservations.member):
        fields = reservation.members["Instances"].member.members
        for name in fields.keys() - READ:
            del fields[name]
    return client


def moment(text: Any) -> datetime:
    """The time that AWS writes as `2026-11-21T08:22:00.000Z`, and any other that botocore can read."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        from botocore.utils import parse_timestamp

        found: datetime = parse_timestamp(text)
        return found
