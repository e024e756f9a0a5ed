"""Which queues start no jobs, by what scontrol prints."""

from corral.agent.partitions import starting_none

LINES = """PartitionName=cpu AllowGroups=ALL State=UP TotalCPUs=8 Nodes=cpu-[1-4]
PartitionName=train AllowGroups=ALL State=DOWN TotalCPUs=96 Nodes=train-[1-16]
PartitionName=gone AllowGroups=ALL State=DRAIN TotalCPUs=8 Nodes=gone-1
PartitionName=off AllowGroups=ALL State=INACTIVE TotalCPUs=8 Nodes=off-1
"""


def test_a_queue_that_drains_still_starts_the_jobs_that_it_has() -> None:
    assert starting_none(LINES) == {"train", "off"}
