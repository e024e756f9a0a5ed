"""The user's own data, as the box has it: empty buckets of the names that the environment's Lustre links give.

On AWS these buckets are the user's and exist before any cluster; FSx refuses a link to one that does not.
"""

from __future__ import annotations

from corral.engine.stack import Stack
from corral.engine.workplace import Workplace, account_of
from corral.model.urls import bucket_of
from corral.spec.cluster import ClusterSpec


def lay_out(place: Workplace, cluster: Stack, spec: ClusterSpec) -> None:
    """Makes the buckets that are missing, and says so. Outside the box it does nothing."""
    if not place.in_box:
        return
    named = {bucket_of(link.s3) for system in spec.storage.lustre for link in system.data}
    s3 = account_of(cluster).client("s3")
    there = {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}
    for name in sorted(named - there):
        s3.create_bucket(Bucket=name)
        place.printer.say(f"the box has no s3://{name}, which stands for your data: made an empty one")
