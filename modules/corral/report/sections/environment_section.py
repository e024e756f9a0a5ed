"""The planned environment: a diagram, its queues, the network of a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from corral.catalog.aws.instance_types import instance_types
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.report.diagrams.boxes import drawing
from corral.report.diagrams.environment_diagram import environment_boxes
from corral.report.diagrams.nic_diagram import node_box
from corral.report.plan.plan_view import interface_rows
from corral.report.sections.section import Picture, Section, Table, picture


def environment_section(base: BasePlan, cluster: ClusterPlan) -> Section:
    """Network, machines and file systems as a diagram and a table."""
    boxes = environment_boxes(base, cluster)
    rows = (
        ("VPC", str(base.vpc_cidr) if base.vpc_cidr else f"existing: {base.adopted_vpc}"),
        *((zone.zone_id, f"private subnet {zone.private}") for zone in base.zones),
        *((("NAT gateway", f"public subnet {base.public.cidr} in {base.public.zone_id}"),) if base.public else ()),
        ("head", f"{cluster.head.instance_type} in {cluster.head.zone_id} at {cluster.head.address}"),
        *_login_rows(cluster),
        *((("/home", "EFS; retained"),) if base.home else ()),
        *(
            (system.mount, f"Lustre {system.deployment}, {system.size_gib:,} GiB in {system.zone_id}")
            for system in cluster.lustre
        ),
    )
    title = f"Network, machines and file systems of {cluster.name}"
    return Section(
        anchor="environment",
        title="Planned resources",
        lead="A queue appears in each zone in which its nodes may start. Squares are nodes; filled ones are always on.",
        pictures=(picture(lambda width: drawing(title, boxes, width)),),
        tables=(
            Table(caption="Network and file systems", columns=("resource", "description"), rows=rows),
            _queues(cluster),
        ),
    )


def _login_rows(cluster: ClusterPlan) -> Iterator[tuple[str, str]]:
    if login := cluster.login:
        yield from ((name, f"{login.instance_type} in {zone}") for name, zone in login.zones.items())
        if balancer := login.load_balancer:
            yield "load balancer", f"{balancer.scheme}, ssh from {', '.join(map(str, balancer.allow))}"


def nic_section(cluster: ClusterPlan) -> Section:
    """The network interfaces of a node, for each distinct kind of node."""
    first = [next(same) for _, same in groupby(sorted(cluster.queues, key=_network), key=_network)]
    kinds = sorted(first, key=lambda queue: queue.name)
    return Section(
        anchor="nics",
        title="Network cards of a node",
        lead="Each accelerator is shown with an equal share of the EFA cards; the PCI topology decides which.",
        pictures=tuple(map(_node, kinds)),
        tables=tuple(_interfaces(queue) for queue in kinds),
    )


def _node(queue: QueuePlan) -> Picture:
    title = f"Network cards of a node of queue {queue.name}"
    box = node_box(queue, instance_types().get(queue.instance_type))
    return picture(lambda width: drawing(title, (box,), width))


def _network(queue: QueuePlan) -> tuple[str, Sequence[tuple[int, int, str]]]:
    return queue.instance_type, [(nic.card, nic.device, nic.interface_type.value) for nic in queue.nics]


def _interfaces(queue: QueuePlan) -> Table:
    return Table(
        caption=f"{queue.instance_type}, queue {queue.name}",
        columns=("cards", ">device", "network interface"),
        rows=tuple(interface_rows(queue)),
    )


def _queues(cluster: ClusterPlan) -> Table:
    rows = tuple(
        (
            queue.name,
            f"up to {queue.max_nodes}, {queue.min_nodes or 'none'} always on",
            queue.instance_type,
            ", ".join(f"{offer.market.value} {offer.zone_id}" for offer in queue.offers),
            f"{len(queue.nics)} on {len({nic.card for nic in queue.nics})} cards{', EFA' if queue.efa else ''}",
        )
        for queue in cluster.queues
    )
    columns = ("queue", "nodes", "instance type", "tried in this order", "network interfaces of a node")
    return Table(caption="Queues", columns=columns, rows=rows)
