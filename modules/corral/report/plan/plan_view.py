"""The plan of an environment on a terminal: network, head, queues, file systems, lifetime, guards, quotas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from corral.forecast.cost.cost_model import Item
from corral.forecast.required_quotas import quotas_needed
from corral.forecast.warnings import PlanWarning
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, ImagePlan, QueuePlan
from corral.model.enums import InterfaceType
from corral.model.lustre import LustrePlan
from corral.model.tags import BASE_TAG
from corral.plan.addresses import free_addresses, max_addresses
from corral.report.formatting import count, duration, usd
from corral.report.plan.quota_view import QUOTA_COLUMNS, quota_requests, quota_rows
from corral.report.tables import facts, heading, lines, table
from corral.spec.models.queues import QueueSpec

_INTERFACES = {
    InterfaceType.ENA: "ENA (IP)",
    InterfaceType.EFA: "EFA with ENA (IP)",
    InterfaceType.EFA_ONLY: "EFA only (no address)",
}


def plan_view(
    base: BasePlan, cluster: ClusterPlan, warnings: Sequence[PlanWarning] = (), retained: Sequence[Item] = ()
) -> Iterator[RenderableType]:
    """All resources from the outside in, then warnings. `retained`: the retained items of the cost."""
    yield heading(cluster.name, f"on base {base.name}, {cluster.region}")
    yield facts(_machines(cluster))
    yield heading("Network", str(base.vpc_cidr) if base.vpc_cidr else f"existing: {base.adopted_vpc}")
    yield _zones(base, cluster)
    yield Text()
    yield facts(_ways(base))
    for queue in cluster.queues:
        yield from _queue(queue, cluster.image)
    yield heading("File systems")
    yield facts(_file_systems(base, cluster))
    yield heading("Lifetime and budget")
    yield facts(_guards(base, cluster, retained))
    yield from _quotas(base, cluster)
    if warnings:
        yield heading("Warnings")
        yield facts((warning.about, warning.text) for warning in warnings)


def _machines(cluster: ClusterPlan) -> Iterator[tuple[str, str]]:
    head, image = cluster.head, cluster.image
    size = f"{head.vcpus} vCPUs, {head.memory_mib // 1024} GiB"
    yield "head", f"{head.host_name}: {head.instance_type} ({size}) in {head.zone_id} at {head.address}"
    yield "", f"root {head.root_gib} GiB; state {head.state_gib} GiB, retained with its address when it is replaced"
    if login := cluster.login:
        size = f"{login.vcpus} vCPUs, {login.memory_mib // 1024} GiB"
        for name, zone in login.zones.items():
            yield "login", f"{name}: {login.instance_type} ({size}) in {zone}, root {login.root_gib} GiB"
        if balancer := login.load_balancer:
            yield "", f"{balancer.scheme} load balancer for ssh from {', '.join(map(str, balancer.allow))}"
    yield from _image(image)
    yield "names", f"*.{cluster.dns_zone}"


def _image(image: ImagePlan) -> Iterator[tuple[str, str]]:
    yield "image", f"{image.profile}: {image.system}, Python {image.python}, Slurm {image.slurm_version}"
    yield "", image.image_id or f"newest of {image.parameter} at the first `corral up`, then pinned"


def _zones(base: BasePlan, cluster: ClusterPlan) -> RenderableType:
    rows = [
        (
            zone.zone_id,
            str(zone.private),
            str(zone.heads) if zone.heads else "-",
            count(free_addresses(zone)),
            count(max_addresses(cluster, zone)),
        )
        for zone in base.zones
    ]
    return table(("zone", "private subnet", "reserved for heads", ">free addresses", ">maximum use"), rows)


def _ways(base: BasePlan) -> Iterator[tuple[str, str]]:
    if base.public is None:
        yield "out", "through the existing VPC's own routes; no inbound access"
        return
    yield (
        "out",
        f"NAT gateway in {base.public.zone_id}, {base.public.cidr}; S3 by a gateway endpoint; no inbound access",
    )
    if base.interface_endpoints:
        yield "endpoints", ", ".join(base.interface_endpoints)


def _queue(queue: QueuePlan, image: ImagePlan) -> Iterator[RenderableType]:
    """One queue. `image`: the cluster's image, which is not repeated."""
    yield heading(f"Queue {queue.name}", f"{queue.instance_type}, {queue.node_names}")
    yield facts(_queue_facts(queue, image))
    offers = [
        (
            str(number),
            offer.market.value,
            offer.zone_id,
            _limit(offer.max_price_usd_per_hour),
            offer.placement_group or offer.reserved_group or "-",
            offer.reservation or "",
        )
        for number, offer in enumerate(queue.offers, start=1)
    ]
    yield Text()
    columns = (">order", "market", "zone", ">limit USD/h", "placement group", "reservation")
    if any(offer.reservation for offer in queue.offers):
        yield table(columns, offers)
    else:
        yield table(columns[:-1], [row[:-1] for row in offers])
    yield Text()
    yield table((">cards", ">device", "network interface"), interface_rows(queue))


def interface_rows(queue: QueuePlan) -> list[tuple[str, str, str]]:
    """The interfaces; consecutive cards with the same interface share a row."""
    kinds = groupby(
        enumerate(queue.nics), lambda item: (item[1].card - item[0], item[1].device, item[1].interface_type)
    )
    rows = []
    for (_, device, kind), group in kinds:
        cards = [nic.card for _, nic in group]
        span = str(cards[0]) if len(cards) == 1 else f"{cards[0]}-{cards[-1]}"
        rows.append((span, str(device), _INTERFACES[kind]))
    return rows


def _queue_facts(queue: QueuePlan, image: ImagePlan) -> Iterator[tuple[str, str]]:
    node = queue.node
    always = f"{queue.min_nodes} always on" if queue.min_nodes else "none always on"
    default = "; the default queue" if queue.is_default else ""
    yield (
        "nodes",
        f"up to {queue.max_nodes}, {always}; an idle one terminates after {duration(queue.suspend_after_s)}{default}",
    )
    yield (
        "node",
        (
            f"Sockets={node.sockets} CoresPerSocket={node.cores_per_socket} ThreadsPerCore={node.threads_per_core}"
            f" RealMemory={node.real_memory_mib}"
        ),
    )
    gpus = f"{node.gres.name}:{node.gres.type}:{node.gres.count}" if node.gres else "no accelerators"
    yield "", f"{gpus}; {queue.nvme_count} NVMe disks; EFA {'on' if queue.efa else 'off'}"
    yield "jobs", f"end after {duration(queue.time_limit_s)}" if queue.time_limit_s else "have no time limit"
    if queue.image is not None and queue.image != image:
        yield from _image(queue.image)
    if own := "; ".join(_own_settings(queue)):
        yield "set", own


def _own_settings(queue: QueuePlan) -> Iterator[str]:
    """The settings of the queue that differ from the defaults."""
    if queue.root_gib != QueueSpec.model_fields["root_gib"].default:
        yield f"root {queue.root_gib} GiB"
    if queue.nvme_count and queue.nvme_mount != QueueSpec.model_fields["nvme"].default:
        yield f"NVMe disks on {queue.nvme_mount}" if queue.nvme_mount else "NVMe disks not mounted"
    if queue.exclusive:
        yield "jobs take whole nodes"
    if queue.weight is not None:
        yield f"weight {queue.weight}"
    yield from (f"{key}={value}" for key, value in queue.extra.items())


def _file_systems(base: BasePlan, cluster: ClusterPlan) -> Iterator[tuple[str, str]]:
    if base.home:
        yield "/home", f"EFS, {base.home.throughput} throughput; retained"
    for system in cluster.lustre:
        yield (
            system.mount,
            f"Lustre {system.deployment}, {count(system.size_gib)} GiB in {system.zone_id};"
            f" {'retained' if system.retained else 'deleted with it'}",
        )
        yield from (("", text) for text in _links(system))
    yield "bucket", f"artefacts and checkpoints, below {cluster.prefix}; retained"


def _links(system: LustrePlan) -> Iterator[str]:
    for link in system.data:
        yield f"{link.path} is {link.s3} (in: {', '.join(link.imports) or '-'}; out: {', '.join(link.exports) or '-'})"


def _guards(base: BasePlan, cluster: ClusterPlan, retained: Sequence[Item]) -> Iterator[tuple[str, str]]:
    lifetime = cluster.lifetime
    yield (
        "ends",
        f"{duration(lifetime.ttl_s)} after the first `corral up`" if lifetime.ttl_s else "never (no lifetime.ttl)",
    )
    yield "idle", f"ends after {duration(lifetime.idle_s)} without a job" if lifetime.idle_s else "no limit"
    budget = base.budget
    alerts = f"{count(budget.usd_per_month)} USD a month, alerts to {', '.join(budget.notify)}" if budget else "none"
    yield "budget", alerts
    if budget:
        yield "", f"counts only once the tag {BASE_TAG} is activated as a cost allocation tag (billing console)"
    whole = ["bucket", "key", *(["home"] if base.home else []), *(f"Lustre {system.name}" for system in base.lustre)]
    network = ", with the network of Lustre" if base.lustre else ""
    yield "retained", f"{', '.join(whole)}{network}, by every `corral down`"
    yield from (("", _retained_cost(item)) for item in retained if item.what.startswith("Lustre "))


def _quotas(base: BasePlan, cluster: ClusterPlan) -> Iterator[RenderableType]:
    needs = quotas_needed(base, cluster)
    shown = [need for need in needs if need.quota.market or need.beyond_new]
    others = len(needs) - len(shown)
    yield heading("Quotas", "needed with all nodes running")
    yield table(QUOTA_COLUMNS, quota_rows(shown))
    yield Text()
    yield lines([quota_requests(needs), f"{others} more are within the defaults of a new account; --json lists them."])


def _retained_cost(item: Item) -> str:
    cost = "at an unknown price" if item.usd_per_month is None else f"{usd(item.usd_per_month)} USD a month"
    return f"{item.named}: {cost}, up or down"


def _limit(usd_per_hour: float | None) -> str:
    return "-" if usd_per_hour is None else f"{usd_per_hour:.2f}"
