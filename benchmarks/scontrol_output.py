"""Synthetic output of `scontrol show nodes`: one line per node (`--oneliner`) for corral, a block for ParallelCluster.

The fields are those that slurmctld 22.05 prints for a cloud node, plus InstanceId, which later releases print.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node. `address`: empty without a machine; then it is the node's name."""

    name: str
    partition: str
    state: str = "IDLE+CLOUD+POWERED_DOWN"
    address: str = ""
    instance: str = "(null)"
    started: str = "None"


def block(node: Node) -> str:
    """A node as `scontrol show nodes` prints it."""
    address = node.address or node.name
    lines = (
        f"NodeName={node.name} Arch=x86_64 CoresPerSocket=1 ",
        "CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=0.00",
        "AvailableFeatures=train,c7i.large",
        "ActiveFeatures=train,c7i.large",
        "Gres=(null)",
        f"NodeAddr={address} NodeHostName={node.name} ",
        "RealMemory=3891 AllocMem=0 FreeMem=N/A Sockets=1 Boards=1",
        f"State={node.state} ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
        f"Partitions={node.partition} ",
        f"BootTime={node.started} SlurmdStartTime={node.started}",
        "LastBusyTime=Unknown",
        f"InstanceId={node.instance}",
        "CfgTRES=cpu=2,mem=3891M,billing=2",
        "AllocTRES=",
        "CapWatts=n/a",
        "CurrentWatts=0 AveWatts=0",
        "ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s",
    )
    return "\n   ".join(lines) + "\n\n"


def line(node: Node) -> str:
    """A node as `scontrol --oneliner show nodes` prints it."""
    return " ".join(part.strip() for part in block(node).splitlines() if part.strip()) + " \n"


def text(nodes: Iterable[Node], *, oneliner: bool) -> str:
    """The output for all nodes."""
    return "".join(map(line if oneliner else block, nodes))
