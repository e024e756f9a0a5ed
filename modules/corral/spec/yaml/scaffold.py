"""Make a new environment from a template, with another name, region, instance type or data.

The two files keep their comments and order; only values change. Pure: text in, text out, with remarks on values that
the user still has to fill in. Zones follow the catalog's snapshot of offerings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import product
from typing import TYPE_CHECKING, Any

from corral.catalog.aws.images import image_profiles
from corral.catalog.aws.instance_types import InstanceType, type_hint
from corral.catalog.aws.regions import regions
from corral.catalog.aws.zone_offerings import has_offerings, offered_zones
from corral.catalog.loader.suggestions import suggestion
from corral.catalog.project_catalog import Catalog
from corral.spec.loader import parse_base, parse_cluster, try_parse_base
from corral.spec.models.base import BaseSpec
from corral.spec.models.cluster import ClusterSpec
from corral.spec.models.queues import QueueSpec
from corral.spec.rules.cluster_rules import image_problem
from corral.spec.rules.lustre_rules import has_scratch
from corral.spec.rules.name_rules import name_problem, s3_problem
from corral.spec.rules.queue_rules import MAX_NODES
from corral.spec.spec_errors import SpecError
from corral.spec.validation_context import ValidationContext
from corral.spec.yaml.yaml_reader import read_yaml

if TYPE_CHECKING:
    from ruamel.yaml import YAML


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentTemplate:
    """An environment to start from: its two files, as text and as specs."""

    name: str
    base_text: str
    cluster_text: str
    base: BaseSpec
    cluster: ClusterSpec

    @property
    def queue(self) -> QueueSpec:
        """The first queue, to which the options apply."""
        return self.cluster.queues[0]

    @property
    def bucket(self) -> str | None:
        """The S3 URL that the first Lustre file system links to."""
        systems = (*self.base.storage.lustre, *self.cluster.storage.lustre)
        return next((link.s3 for system in systems for link in system.data), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaffoldOptions:
    """What differs from the template; None keeps its value."""

    name: str | None = None
    region: str | None = None
    instance_type: str | None = None
    max_nodes: int | None = None
    bucket: str | None = None
    notify: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaffold:
    """The two files of the new environment, and remarks on unavailable types and on values still to fill in."""

    name: str
    base_text: str
    cluster_text: str
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """Instances of one type, required in these zones of the template. `about`: the head or queue that requires them."""

    about: str
    instance_type: str
    zones: tuple[str, ...]


def read_template(name: str, base_text: str, cluster_text: str, catalog: Catalog) -> EnvironmentTemplate:
    """Parse the environment declared in these two texts. Raises SpecErrors."""
    texts = {"base": base_text, "cluster": cluster_text}
    config = {kind: read_yaml(text.encode())["config"] for kind, text in texts.items()}
    raw = {kind: config[kind][f"corral-{kind}:spec"] for kind in config}
    context = ValidationContext(region=config["base"]["aws:region"], catalog=catalog)
    base = parse_base(raw["base"], name=name, where=f"stacks/base/Pulumi.{name}.yaml", context=context)
    where = f"stacks/cluster/Pulumi.{name}.yaml"
    cluster = parse_cluster(raw["cluster"], name=name, where=where, context=replace(context, base=base))
    return EnvironmentTemplate(name=name, base_text=base_text, cluster_text=cluster_text, base=base, cluster=cluster)


def option_errors(
    wanted: ScaffoldOptions, shipped: EnvironmentTemplate | None, catalog: Catalog
) -> tuple[SpecError, ...]:
    """Return the errors in these options, with the option as path. Without a template, skip checks against it."""
    return (
        *_wrong_name(wanted.name),
        *_wrong_region(wanted.region),
        *_wrong_type(wanted.instance_type, shipped, catalog),
        *_wrong_count(wanted.max_nodes, shipped),
        *_wrong_bucket(wanted.bucket, shipped),
        *_wrong_notify(wanted.notify, shipped, catalog),
    )


def scaffold(shipped: EnvironmentTemplate, wanted: ScaffoldOptions, catalog: Catalog) -> Scaffold:
    """Return the files of the new environment. Check the options with `option_errors` first."""
    region, name = wanted.region or shipped.base.region, wanted.name or shipped.name
    machine = catalog.instance_type(wanted.instance_type or shipped.queue.instance_type)
    demands = _demands(shipped, machine.name)
    moves = _moves(shipped.base.network.zone_names, demands, region)
    base, cluster = (_moved(_yaml().load(text), moves) for text in (shipped.base_text, shipped.cluster_text))
    base["config"]["aws:region"] = cluster["config"]["aws:region"] = region
    base_spec, cluster_spec = base["config"]["corral-base:spec"], cluster["config"]["corral-cluster:spec"]
    cluster_spec["base"] = name
    _put_machines(cluster_spec["queues"][0], shipped, machine, wanted.max_nodes or shipped.queue.nodes.max)
    for link in (*_links(base_spec), *_links(cluster_spec)):
        if wanted.bucket and link["s3"] == shipped.bucket:
            link["s3"] = wanted.bucket
    if not has_scratch(region):
        _make_persistent(cluster_spec)
    if wanted.notify:
        base_spec["budget"]["notify"][:] = [wanted.notify]
    remarks = (*_not_offered(demands, moves, region), *_to_put_in(shipped, wanted, moves))
    return Scaffold(name=name, base_text=_text(base), cluster_text=_text(cluster), remarks=remarks)


def _wrong_name(name: str | None) -> Iterator[SpecError]:
    if name is not None and (problem := name_problem(name)):
        yield SpecError(file="", path="--name", message=problem.message, fix=problem.fix)


def _wrong_region(region: str | None) -> Iterator[SpecError]:
    if region is not None and region not in regions():
        yield SpecError(
            file="",
            path="--region",
            message=f"{region!r} is not in the catalog",
            fix=suggestion(region, regions()),
        )


def _wrong_type(name: str | None, shipped: EnvironmentTemplate | None, catalog: Catalog) -> Iterator[SpecError]:
    types = catalog.instance_types
    if name is None:
        return
    if name not in types:
        yield SpecError(
            file="", path="--instance-type", message=f"{name!r} is not in the catalog", fix=type_hint(name, types)
        )
        return
    machine = types[name]
    if not _images(machine):
        yield SpecError(
            file="", path="--instance-type", message=f"no image in the catalog supports {name}", fix="use another type"
        )
    markets = dict.fromkeys(pool.market.usage_class for pool in shipped.queue.capacity) if shipped else {}
    if shipped and (missing := [market for market in markets if market not in machine.markets]):
        sold = f"{name} is not sold as {', '.join(missing)}, which {shipped.name!r} uses"
        yield SpecError(file="", path="--instance-type", message=sold, fix="use another type, or another --like")


def _wrong_count(nodes: int | None, shipped: EnvironmentTemplate | None) -> Iterator[SpecError]:
    others = sum(queue.nodes.max for queue in shipped.cluster.queues[1:]) if shipped else 0
    least = max(shipped.queue.nodes.min, 1) if shipped else 1
    if nodes is not None and not least <= nodes <= MAX_NODES - others:
        yield SpecError(
            file="", path="--max-nodes", message=f"{nodes} is out of range", fix=f"use {least} to {MAX_NODES - others}"
        )


def _wrong_bucket(bucket: str | None, shipped: EnvironmentTemplate | None) -> Iterator[SpecError]:
    if bucket is None:
        return
    if problem := s3_problem(bucket):
        yield SpecError(file="", path="--bucket", message=problem.message, fix=problem.fix)
    if shipped and shipped.bucket is None:
        yield SpecError(
            file="",
            path="--bucket",
            message=f"{shipped.name!r} has no data from S3",
            fix="remove it, or use another --like",
        )


def _wrong_notify(mail: str | None, shipped: EnvironmentTemplate | None, catalog: Catalog) -> Iterator[SpecError]:
    if mail is None:
        return
    if shipped and shipped.base.budget is None:
        yield SpecError(
            file="", path="--notify", message=f"{shipped.name!r} has no budget", fix="remove it, or use another --like"
        )
    raw = {"network": {"zones": []}, "storage": {}, "budget": {"usd_per_month": 1, "notify": [mail]}}
    context = ValidationContext(region="us-east-1", catalog=catalog)
    for error in try_parse_base(raw, name="dev", where="", context=context).errors:
        if error.path.startswith("budget.notify"):
            yield SpecError(file="", path="--notify", message=error.message, fix=error.fix)


def _demands(shipped: EnvironmentTemplate, first_type: str) -> tuple[_Demand, ...]:
    """Return the required types and zones, the most important first."""
    everywhere = shipped.base.network.zone_names
    types = [first_type, *(queue.instance_type for queue in shipped.cluster.queues[1:])]
    queues = [
        _Demand(about=f"queue {queue.name}", instance_type=type_, zones=_zones_of(queue, everywhere))
        for queue, type_ in zip(shipped.cluster.queues, types, strict=True)
    ]
    head = shipped.cluster.head
    first = _Demand(about="the head", instance_type=head.instance_type, zones=(head.zone or everywhere[0],))
    spare = tuple(zone for zone in everywhere if not any(zone in queue.zones for queue in queues))
    return (*queues, first, _Demand(about="", instance_type=first_type, zones=spare))


def _zones_of(queue: QueueSpec, everywhere: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(zone for pool in queue.capacity for zone in pool.zones or everywhere))


def _moves(zones: Sequence[str], demands: Sequence[_Demand], region: str) -> Mapping[str, str]:
    """Map each of these zones to a zone of the region. Two zones can map to one if too few offer the required types.

    The best mapping leaves the fewest demands of the first queue unmet, then of the next; among equals it keeps the
    most zones distinct, then the most zones unchanged, then it uses the first zones.
    """
    offers = [set(offered_zones(demand.instance_type, region)) for demand in demands]

    def cost(choice: tuple[str, ...]) -> tuple[list[int], int, int]:
        to = dict(zip(zones, choice, strict=True))
        open_ = [
            sum(to[zone] not in offer for zone in demand.zones) for demand, offer in zip(demands, offers, strict=True)
        ]
        return open_, -len(set(choice)), sum(old != new for old, new in to.items())

    best = min(product(regions()[region].zones, repeat=len(zones)), key=cost)
    return dict(zip(zones, best, strict=True))


def _yaml() -> YAML:
    """Return a YAML reader and writer that keeps comments and the layout of the shipped files."""
    from ruamel.yaml import YAML  # here: the import takes 0.1 s, which `corral new --help` avoids

    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 1 << 16  # characters: never wrap a line
    return yaml


def _text(data: Any) -> str:
    written = StringIO()
    _yaml().dump(data, written)
    return written.getvalue()


def _moved(value: Any, moves: Mapping[str, str]) -> Any:
    """Replace every zone in the data, in place, and remove duplicates."""
    if isinstance(value, dict):
        for key, held in value.items():
            value[key] = _moved(held, moves)
    elif isinstance(value, list):
        for number, held in enumerate(value):
            value[number] = _moved(held, moves)
        zones = [held.get("zone") if isinstance(held, dict) else held for held in value]
        for number in reversed(range(len(value))):
            if zones[number] in moves.values() and zones[number] in zones[:number]:
                del value[number]
    return moves.get(value, value) if isinstance(value, str) else value


def _put_machines(queue: Any, shipped: EnvironmentTemplate, machine: InstanceType, nodes: int) -> None:
    """Set type and count of the first queue, and an image if the cluster's has no driver for the type."""
    queue["instance_type"], queue["nodes"]["max"] = machine.name, nodes
    for pool in queue["capacity"]:
        if pool.get("count") == shipped.queue.nodes.max:
            pool["count"] = nodes
    images = _images(machine)
    if "image" not in queue and shipped.cluster.image.profile not in images:
        queue.insert(list(queue).index("instance_type") + 1, "image", _yaml().load(f"{{profile: {images[0]}}}"))


def _make_persistent(spec: Any) -> None:
    """Replace SCRATCH deployments by the slowest persistent one of the same disks."""
    for system in spec.get("storage", {}).get("lustre", ()):
        if str(system.get("deployment", "SCRATCH_2")).startswith("SCRATCH"):
            system["deployment"] = "PERSISTENT_2"
            system.insert(list(system).index("deployment") + 1, "throughput", 125)


def _links(spec: Any) -> Iterator[Any]:
    """The S3 links of this spec's Lustre file systems."""
    for system in spec.get("storage", {}).get("lustre", ()):
        yield from system.get("data", ())


def _images(machine: InstanceType) -> tuple[str, ...]:
    rows = image_profiles().values()
    return tuple(row.name for row in rows if not row.box and image_problem(machine, row) is None)


def _not_offered(demands: Sequence[_Demand], moves: Mapping[str, str], region: str) -> Iterator[str]:
    if not has_offerings(region):
        yield f"region: which instance types {region} offers is unknown to the catalog - `corral check` queries AWS"
        return
    for demand in (one for one in demands if one.about):
        offered = offered_zones(demand.instance_type, region)
        zones = dict.fromkeys(moves[zone] for zone in demand.zones)
        missing = [zone for zone in zones if zone not in offered]
        if not offered:
            yield f"{demand.about}: {demand.instance_type} is not offered in {region} - {_elsewhere(demand)}"
        elif missing:
            there = f"{demand.instance_type} is not offered in {', '.join(missing)}"
            yield f"{demand.about}: {there} - available in {', '.join(offered)}"


def _elsewhere(demand: _Demand) -> str:
    there = [region for region in regions() if offered_zones(demand.instance_type, region)]
    return f"available in {', '.join(there)}" if there else "no region in the catalog offers it"


def _to_put_in(shipped: EnvironmentTemplate, wanted: ScaffoldOptions, moves: Mapping[str, str]) -> Iterator[str]:
    """Yield remarks on values of the template that are examples only."""
    if adopted := shipped.base.network.adopt:
        zones = ", ".join(dict.fromkeys(moves[subnet.zone] for subnet in adopted.subnets))
        yield f"network: set the id of your VPC, and the ids and ranges of its subnets in {zones}"
        yield f"the head: set a free address of the first subnet instead of {shipped.cluster.head.address}"
    for queue in shipped.cluster.queues:
        for pool in (one for one in queue.capacity if one.ids):
            own = f"your {pool.market!s} in {', '.join(moves[zone] for zone in pool.zones or ())}"
            yield f"queue {queue.name}: set the id of {own} instead of {', '.join(pool.ids)}"
    links = () if wanted.bucket or not shipped.bucket else (shipped.bucket,)
    for url in (*links, *(bucket.s3 for bucket in shipped.cluster.jobs.buckets)):
        yield f"set your own bucket instead of {url}"
    if shipped.base.budget and not wanted.notify and shipped.base.budget.notify:
        yield f"set your own email address instead of {', '.join(shipped.base.budget.notify)}"
