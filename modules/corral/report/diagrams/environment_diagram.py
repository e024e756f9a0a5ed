"""An environment as boxes: the region, its network by zone with machines and file systems, and the internet."""

from __future__ import annotations

from collections.abc import Iterator

from corral.model.base import BasePlan, ZonePlan
from corral.model.cluster import ClusterPlan, HeadPlan, LoginPlan, QueuePlan
from corral.model.lustre import LustrePlan
from corral.report.diagrams.boxes import DiagramBox, Squares


def environment_boxes(base: BasePlan, cluster: ClusterPlan) -> tuple[DiagramBox, ...]:
    """The internet, then the region with everything in it."""
    region = DiagramBox(
        kind="region", title=f"Region {cluster.region}", rows=((_network(base, cluster),), _regional(base, cluster))
    )
    return (_outside(base), region)


def _outside(base: BasePlan) -> DiagramBox:
    way = "through the NAT gateway" if base.public else "by the existing VPC's own routes"
    return DiagramBox(kind="outside", title="Internet", lines=(f"▲ machines reach it {way}; no inbound access",))


def _network(base: BasePlan, cluster: ClusterPlan) -> DiagramBox:
    title = f"VPC {base.vpc_cidr}" if base.vpc_cidr else f"VPC {base.adopted_vpc}, existing"
    zones = tuple(_zone(zone, base, cluster) for zone in base.zones)
    return DiagramBox(kind="vpc", title=title, rows=(tuple(_doors(base)), zones))


def _doors(base: BasePlan) -> Iterator[DiagramBox]:
    """The gateways between the private subnets and everything else."""
    if base.public:
        where = f"public subnet {base.public.cidr}, {base.public.zone_id}"
        yield DiagramBox(kind="public", title="NAT gateway", lines=(where,))
        yield DiagramBox(kind="door", title="Gateway endpoint", lines=("S3, without the NAT gateway",))
    if base.interface_endpoints:
        names = ", ".join(base.interface_endpoints)
        yield DiagramBox(kind="door", title="Interface endpoints in each zone", lines=(names,))


def _zone(zone: ZonePlan, base: BasePlan, cluster: ClusterPlan) -> DiagramBox:
    name = f"{zone.subnet}, existing," if zone.subnet else "private subnet"
    head = (_head(cluster.head),) if cluster.head.zone_id == zone.zone_id else ()
    logins = tuple(_logins(cluster.login, zone)) if cluster.login else ()
    queues = tuple(_queue(queue, zone) for queue in cluster.queues if _may_run(queue, zone))
    systems = tuple(_lustre(system) for system in cluster.lustre if system.zone_id == zone.zone_id)
    home = (DiagramBox(kind="home", title="/home", lines=("mount target",)),) if base.home else ()
    return DiagramBox(
        kind="zone",
        title=f"Zone {zone.zone_id}",
        lines=(f"{name} {zone.private}",),
        rows=((*head, *logins), queues, systems, home),
        least=210.0,
    )


def _head(head: HeadPlan) -> DiagramBox:
    lines = (head.instance_type, str(head.address), f"{head.state_gib} GiB of state, retained when it is replaced")
    return DiagramBox(kind="head", title=f"Head {head.host_name}", lines=lines)


def _logins(login: LoginPlan, zone: ZonePlan) -> Iterator[DiagramBox]:
    names = [name for name, where in login.zones.items() if where == zone.zone_id]
    if names:
        yield DiagramBox(kind="head", title="Login nodes", lines=(login.instance_type, ", ".join(names)))


def _may_run(queue: QueuePlan, zone: ZonePlan) -> bool:
    return any(offer.zone_id == zone.zone_id for offer in queue.offers)


def _queue(queue: QueuePlan, zone: ZonePlan) -> DiagramBox:
    gres, here = queue.node.gres, [offer for offer in queue.offers if offer.zone_id == zone.zone_id]
    order = {offer.key: number for number, offer in enumerate(queue.offers, start=1)}
    markets = ", ".join(f"{order[offer.key]}.\N{NO-BREAK SPACE}{offer.market.value}" for offer in here)
    group = " in a placement group" if any(offer.placement_group or offer.reserved_group for offer in here) else ""
    squares = Squares(count=queue.max_nodes, filled=queue.min_nodes)
    return DiagramBox(
        kind="queue",
        title=f"Queue {queue.name}",
        lines=(
            f"{queue.instance_type}{f', {gres.count} {gres.type}' if gres else ''}",
            f"up to {queue.max_nodes:,}, {queue.min_nodes or 'none'} always on",
            f"{'EFA' if queue.efa else 'no EFA'}{group}",
            f"tried: {markets}",
            *([f"one square: {squares.each} nodes"] if squares.each > 1 else []),
        ),
        squares=squares,
    )


def _lustre(system: LustrePlan) -> DiagramBox:
    lines = (
        f"{system.size_gib:,} GiB, {system.deployment}",
        f"mounted at {system.mount}; {'retained' if system.retained else 'deleted with the cluster'}",
        *(f"{link.path} is {link.s3}" for link in system.data),
    )
    return DiagramBox(kind="system", title=f"Lustre {system.name}", lines=lines)


def _regional(base: BasePlan, cluster: ClusterPlan) -> tuple[DiagramBox, ...]:
    """Regional resources outside of the VPC."""
    home = base.home
    return (
        DiagramBox(
            kind="system", title="Bucket", lines=(f"artefacts and checkpoints, below {cluster.prefix}; retained",)
        ),
        *(
            (DiagramBox(kind="home", title="EFS", lines=(f"/home, {home.throughput} throughput; retained",)),)
            if home
            else ()
        ),
    )
