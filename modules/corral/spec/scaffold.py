"""A shipped environment made into a user's own: named anew, moved to another region, with other machines and data.

The two files are edited as text, so that their comments stay; those that say a fact are said anew. Nothing is read or
written here: text comes in, text goes out, with what the user has yet to put in. Which zones are taken is decided by
the catalogue's snapshot of offerings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from corral.catalog.images import image_profiles
from corral.catalog.instances import InstanceType, type_hint
from corral.catalog.names import suggestion
from corral.catalog.offerings import offered_zones
from corral.catalog.project import Catalogue
from corral.catalog.regions import regions
from corral.spec.base import BaseSpec
from corral.spec.cluster import ClusterSpec
from corral.spec.parse import parse_base, parse_cluster, read_base_wishes
from corral.spec.queues import QueueSpec
from corral.spec.rules_cluster import image_problem
from corral.spec.rules_names import name_problem, s3_problem
from corral.spec.rules_queues import MOST_NODES
from corral.spec.surroundings import Surroundings
from corral.spec.yaml_text import YamlError, read_yaml

_ZONE_LIST = re.compile(r"(?<=zones: \[)[^]]+(?=\])")
_SUBNET = re.compile(r"(?<=- \{zone: )[^,]+(?=,)")
_NOTIFY = re.compile(r"(?<=notify: \[)[^]]+(?=\])")
_SCHEMA_LINE = re.compile(r"\A# yaml-language-server: .*\n")  # its path is said anew by whoever writes the files
_WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """An environment to begin with: what its two files say, as text and as specs.

    The line by which editors find the schema is not part of the text.
    """

    name: str
    base_text: str
    cluster_text: str
    base: BaseSpec
    cluster: ClusterSpec

    @property
    def queue(self) -> QueueSpec:
        """The first queue, which the wishes are about."""
        return self.cluster.queues[0]

    @property
    def bucket(self) -> str | None:
        """Where the first Lustre file system has its data from."""
        systems = (*self.base.storage.lustre, *self.cluster.storage.lustre)
        return next((link.s3 for system in systems for link in system.data), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What shall differ from the shipped environment; None keeps what it has."""

    name: str | None = None
    region: str | None = None
    instance_type: str | None = None
    max_nodes: int | None = None
    bucket: str | None = None
    notify: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaffold:
    """The two files of the new environment, and in sentences what is not to be had or still to be put in."""

    name: str
    base_text: str
    cluster_text: str
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """Machines of one type that shall be had in these zones of the shipped base; `about` names who wants them."""

    about: str
    instance_type: str
    zones: tuple[str, ...]


def read_shipped(name: str, base_text: str, cluster_text: str, catalogue: Catalogue) -> Shipped:
    """The environment that these two texts declare. Raises SpecErrors."""
    base_text, cluster_text = (_SCHEMA_LINE.sub("", text) for text in (base_text, cluster_text))
    texts = {"base": base_text, "cluster": cluster_text}
    config = {kind: read_yaml(text.encode())["config"] for kind, text in texts.items()}
    raw = {kind: config[kind][f"corral-{kind}:spec"] for kind in config}
    around = Surroundings(region=config["base"]["aws:region"], catalogue=catalogue)
    base = parse_base(raw["base"], name=name, where=f"stacks/base/Pulumi.{name}.yaml", around=around)
    where = f"stacks/cluster/Pulumi.{name}.yaml"
    cluster = parse_cluster(raw["cluster"], name=name, where=where, around=replace(around, base=base))
    return Shipped(name=name, base_text=base_text, cluster_text=cluster_text, base=base, cluster=cluster)


def mistakes(wanted: Wanted, shipped: Shipped | None, catalogue: Catalogue) -> tuple[str, ...]:
    """What is wrong with these wishes, each with its option; without the shipped environment, as far as can be said."""
    return (
        *_wrong_name(wanted.name),
        *_wrong_region(wanted.region),
        *_wrong_type(wanted.instance_type, shipped, catalogue),
        *_wrong_count(wanted.max_nodes, shipped),
        *_wrong_bucket(wanted.bucket, shipped),
        *_wrong_notify(wanted.notify, shipped, catalogue),
    )


def scaffold(shipped: Shipped, wanted: Wanted, catalogue: Catalogue) -> Scaffold:
    """The files of the wanted environment. The wishes have been checked by `mistakes`."""
    region, name = wanted.region or shipped.base.region, wanted.name or shipped.name
    machine = catalogue.instance_type(wanted.instance_type or shipped.queue.instance_type)
    demands = _demands(shipped, machine.name)
    moves = _moves(shipped.base.network.zone_names, demands, region)
    base, cluster = _renamed(shipped.base_text, shipped, name), _renamed(shipped.cluster_text, shipped, name)
    base, cluster = (_moved(text, shipped.base.region, region, moves) for text in (base, cluster))
    base = _with_true_offers(base, shipped, machine, region, tuple(dict.fromkeys(moves.values())))
    cluster = _with_machines(cluster, shipped, machine, wanted.max_nodes or shipped.queue.nodes.max, catalogue)
    if wanted.bucket and shipped.bucket:
        base, cluster = (
            text.replace(f"s3: {shipped.bucket}\n", f"s3: {_value(wanted.bucket)}\n") for text in (base, cluster)
        )
    if wanted.notify:
        base = _NOTIFY.sub(lambda _: _value(wanted.notify or ""), base)
    remarks = (*_not_offered(demands, moves, region), *_to_put_in(shipped, wanted, moves))
    return Scaffold(name=name, base_text=base, cluster_text=cluster, remarks=remarks)


def _wrong_name(name: str | None) -> Iterator[str]:
    if name is not None and (message := name_problem(name)):
        yield f"--name: {message}"


def _wrong_region(region: str | None) -> Iterator[str]:
    if region is not None and region not in regions():
        yield f"--region: {region!r} is not in the catalogue - {suggestion(region, regions())}"


def _wrong_type(name: str | None, shipped: Shipped | None, catalogue: Catalogue) -> Iterator[str]:
    types = catalogue.instance_types
    if name is None:
        return
    if name not in types:
        yield f"--instance-type: {name!r} is not in the catalogue - {type_hint(name, types)}"
        return
    machine = types[name]
    if not _images(machine):
        yield f"--instance-type: no image of the catalogue is for {name} - use another type"
    markets = dict.fromkeys(pool.market.usage_class for pool in shipped.queue.capacity) if shipped else {}
    if shipped and (missing := [market for market in markets if market not in machine.markets]):
        sold = f"{name} is not sold as {', '.join(missing)}, of which {shipped.name!r} makes use"
        yield f"--instance-type: {sold} - it is as {', '.join(machine.markets)}; use another type, or another --like"


def _wrong_count(nodes: int | None, shipped: Shipped | None) -> Iterator[str]:
    others = sum(queue.nodes.max for queue in shipped.cluster.queues[1:]) if shipped else 0
    least = max(shipped.queue.nodes.min, 1) if shipped else 1
    if nodes is not None and not least <= nodes <= MOST_NODES - others:
        yield f"--max-nodes: {nodes} cannot be - use {least} to {MOST_NODES - others}"


def _wrong_bucket(bucket: str | None, shipped: Shipped | None) -> Iterator[str]:
    if bucket is None:
        return
    if message := s3_problem(bucket):
        yield f"--bucket: {message}"
    elif not bucket.isprintable():
        yield f"--bucket: {bucket!r} is not a place in S3 - write it like s3://bucket/prefix"
    if shipped and shipped.bucket is None:
        yield f"--bucket: {shipped.name!r} has no data from S3 - leave it out, or use another --like"


def _wrong_notify(mail: str | None, shipped: Shipped | None, catalogue: Catalogue) -> Iterator[str]:
    if mail is None:
        return
    if shipped and shipped.base.budget is None:
        yield f"--notify: {shipped.name!r} has no budget to tell of - leave it out, or use another --like"
    raw = {"network": {"zones": []}, "storage": {}, "budget": {"usd_per_month": 1, "notify": [mail]}}
    around = Surroundings(region="us-east-1", catalogue=catalogue)
    for error in read_base_wishes(raw, name="dev", where="", around=around).errors:
        if error.path.startswith("budget.notify"):
            yield f"--notify: {error.message}"


def _demands(shipped: Shipped, first_type: str) -> tuple[_Demand, ...]:
    """Who wants what where, the first queue first: where not all can be had together, the earlier one has it."""
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
    """For each of these zones one of the region. Two become one where too few offer what is wanted in them.

    Best is what leaves the fewest wishes of the first queue open, then of the next; then as many zones as before, then
    those that were there before, then the first ones.
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


def _renamed(text: str, shipped: Shipped, name: str) -> str:
    old, base = shipped.name, shipped.base.name
    text = text.replace(f" `{old}`", f" `{name}`", 1).replace(f"Pulumi.{base}.yaml", f"Pulumi.{name}.yaml")
    return re.sub(rf"^(    base: ){re.escape(base)}(?= |$)", lambda found: found[1] + _value(name), text, flags=re.M)


def _moved(text: str, old: str, region: str, moves: Mapping[str, str]) -> str:
    """The text with the region and every zone in it changed; what is there twice then is there once."""
    text = text.replace(f"aws:region: {old}\n", f"aws:region: {region}\n")
    text = _ZONE_LIST.sub(lambda found: ", ".join(dict.fromkeys(moves[one] for one in found[0].split(", "))), text)
    return "".join(_moved_subnets(text, moves))


def _moved_subnets(text: str, moves: Mapping[str, str]) -> Iterator[str]:
    seen: set[str] = set()
    for line in text.splitlines(keepends=True):
        found = _SUBNET.search(line)
        zone = moves[found[0]] if found else None
        if zone is None or zone not in seen:
            yield _SUBNET.sub(zone or "", line)
            seen |= {zone} if zone else set()


def _with_true_offers(text: str, shipped: Shipped, machine: InstanceType, region: str, zones: tuple[str, ...]) -> str:
    """The base's text, in which the comments about what is offered in its zones hold for its new ones."""
    text = text.replace(f"both offer {shipped.queue.instance_type}", _offer(machine.name, region, zones))
    return "".join(_without_false_offer(line, shipped, region) for line in text.splitlines(keepends=True))


def _offer(instance_type: str, region: str, zones: tuple[str, ...]) -> str:
    offered = offered_zones(instance_type, region)
    if not set(zones) <= set(offered):
        return f"{instance_type} is not offered in {region}" if not offered else f"not all offer {instance_type}"
    if len(zones) == 1:
        return f"this one offers {instance_type}"
    return f"{'both' if len(zones) == 2 else 'all'} offer {instance_type}"


def _without_false_offer(line: str, shipped: Shipped, region: str) -> str:
    """The subnet's line without `# Trainium is offered here` where none of the queues' Trainium is."""
    comment, zone = re.search(r" # (\w+) is offered here$", line.rstrip("\n")), _SUBNET.search(line)
    if comment is None or zone is None:
        return line
    types = [queue.instance_type for queue in shipped.cluster.queues if queue.name == comment[1].lower()]
    is_true = any(zone[0] in offered_zones(type_, region) for type_ in types)
    return line if is_true else line.replace(comment[0], "")


def _with_machines(text: str, shipped: Shipped, machine: InstanceType, nodes: int, catalogue: Catalogue) -> str:
    """The cluster's text with this many machines of this type in its first queue, and in its first line."""
    old = catalogue.instance_type(shipped.queue.instance_type)
    text = text.replace(_count(old, shipped.queue.nodes.max), _count(machine, nodes), 1)
    text = text.replace(f"- {_product(old)} to ", f"- {_product(machine)} to ", 1)
    before, queues, after = text.partition("    queues:\n")
    most = re.compile(rf"(?<=max: ){shipped.queue.nodes.max}(?=\}})")
    after = most.sub(str(nodes), after, count=1)
    after = after.replace(f"            count: {shipped.queue.nodes.max}\n", f"            count: {nodes}\n", 1)
    line = f"        instance_type: {machine.name}\n{_image_line(shipped, machine)}"
    return before + queues + after.replace(f"        instance_type: {old.name}\n", line, 1)


def _image_line(shipped: Shipped, machine: InstanceType) -> str:
    """A line that gives the queue an image of its own, where the cluster's has no driver for its machines."""
    images = _images(machine)
    is_own = shipped.queue.image is not None
    return "" if is_own or shipped.cluster.image.profile in images else f"        image: {{profile: {images[0]}}}\n"


def _images(machine: InstanceType) -> tuple[str, ...]:
    rows = image_profiles().values()
    return tuple(row.name for row in rows if not row.box and image_problem(machine, row) is None)


def _count(machine: InstanceType, nodes: int) -> str:
    number = _WORDS[nodes] if nodes < len(_WORDS) else f"{nodes:,}"
    what = f"{machine.accelerator.count} x {machine.accelerator.product}" if machine.accelerator else machine.name
    return f"{number} {what} {'machine' if nodes == 1 else 'machines'}"


def _product(machine: InstanceType) -> str:
    return machine.accelerator.product if machine.accelerator else machine.name


def _value(text: str) -> str:
    """The text as YAML, in quotes where YAML would read something else in it."""
    try:
        is_plain = read_yaml(f"[{text}]".encode()) == [text] == read_yaml(f"- {text} # end".encode())
    except YamlError:
        is_plain = False
    doubtful = text.lower() in ("y", "yes", "n", "no", "on", "off")  # truths to some readers of YAML
    return text if is_plain and not doubtful else "'" + text.replace("'", "''") + "'"


def _not_offered(demands: Sequence[_Demand], moves: Mapping[str, str], region: str) -> Iterator[str]:
    for demand in (one for one in demands if one.about):
        offered = offered_zones(demand.instance_type, region)
        zones = dict.fromkeys(moves[zone] for zone in demand.zones)
        missing = [zone for zone in zones if zone not in offered]
        if not offered:
            yield f"{demand.about}: {demand.instance_type} is not offered in {region} - {_elsewhere(demand)}"
        elif missing:
            there = f"{demand.instance_type} is not offered in {', '.join(missing)}"
            yield f"{demand.about}: {there} - in this region it is in {', '.join(offered)}"


def _elsewhere(demand: _Demand) -> str:
    there = [region for region in regions() if offered_zones(demand.instance_type, region)]
    return f"it is in {', '.join(there)}" if there else "nor in any other region, as far as is known"


def _to_put_in(shipped: Shipped, wanted: Wanted, moves: Mapping[str, str]) -> Iterator[str]:
    """What stands in the files as an example only."""
    if adopted := shipped.base.network.adopt:
        zones = ", ".join(dict.fromkeys(moves[subnet.zone] for subnet in adopted.subnets))
        yield f"network: put in the id of your own VPC, and the ids and ranges of its subnets in {zones}"
        yield f"the head: put in a free address of the first subnet for {shipped.cluster.head.address}"
    for queue in shipped.cluster.queues:
        for pool in (one for one in queue.capacity if one.ids):
            own = f"your own {pool.market!s} in {', '.join(moves[zone] for zone in pool.zones or ())}"
            yield f"queue {queue.name}: put in the id of {own} for {', '.join(pool.ids)}"
    links = () if wanted.bucket or not shipped.bucket else (shipped.bucket,)
    for place in (*links, *(bucket.s3 for bucket in shipped.cluster.jobs.buckets)):
        yield f"put in a bucket of your own for {place}"
    if shipped.base.budget and not wanted.notify and shipped.base.budget.notify:
        yield f"put in an address of your own for {', '.join(shipped.base.budget.notify)}"
