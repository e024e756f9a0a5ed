"""What makes a row of a catalogue file right: the shape of each table, and how its figures must fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from corral.catalog.instances import Vendor
from corral.catalog.problems import Finding, Path
from corral.catalog.regions import regions
from corral.catalog.shapes import Key, Shape, items, positive, shown, table, tables, text, whole, word

_TYPE_NAME = text(r"[a-z0-9-]+\.[a-z0-9-]+", "p5.48xlarge")
_SLURM_TYPE = text(r"[a-z0-9_.-]+", "h100")  # in slurm.conf and in --gres=gpu:h100:8 a comma or a colon would end it


def _date(path: Path, value: Any) -> Iterator[Finding]:
    if not isinstance(value, date) or isinstance(value, datetime):
        yield Finding(path, f"expected a date, found {shown(value)} - write it like 2026-11-21, without quotes")


ACCELERATOR: Shape = {
    "vendor": Key(word(*(vendor.value for vendor in Vendor)), "nvidia or neuron: it decides the driver"),
    "product": Key(text(), "what its maker calls it, such as H100"),
    "name": Key(_SLURM_TYPE),
    "count": Key(whole(1), "how many the machine has"),
    "memory_mib": Key(whole(1), "the memory of one in MiB"),
    "link": Key(text()),
    "link_gb_per_s": Key(whole(1)),
}
NETWORK_CARDS: Shape = {
    "first": Key(whole(0), "the index of the first card of this kind"),
    "last": Key(whole(0), "the index of the last card of this kind"),
    "interface_types": Key(items(word("interface", "efa", "efa-only")), "what the card takes"),
    "maximum_interfaces": Key(whole(1), "how many interfaces one card takes"),
}
NVME: Shape = {
    "count": Key(whole(1), "how many local disks there are"),
    "gb_each": Key(whole(1), "the size of one in GB"),
}
INSTANCE: Shape = {
    "architecture": Key(word("x86_64", "arm64"), "x86_64 or arm64"),
    "vcpus": Key(whole(1), "cores times threads_per_core"),
    "cores": Key(whole(1), "of all sockets together"),
    "threads_per_core": Key(whole(1), "1 or 2"),
    "sockets": Key(whole(1), "as lscpu counts them"),
    "memory_mib": Key(whole(1), "as EC2 states it, in MiB"),
    "accelerator": Key(table(ACCELERATOR)),
    "network_cards": Key(items(table(NETWORK_CARDS)), "see NetworkInfo.NetworkCards of DescribeInstanceTypes"),
    "network_gbps": Key(positive, "the most that the machine moves, in Gbit/s"),
    "network_baseline_gbps": Key(positive),
    "efa_maximum": Key(whole(0), "EFA interfaces at most; 0 for none"),
    "nvme": Key(table(NVME)),
    "ebs_gbps": Key(positive),
    "ebs_baseline_gbps": Key(positive),
    "markets": Key(items(word("on-demand", "spot", "capacity-block")), "how EC2 sells it"),
    "source": Key(text()),
}
PRICE: Shape = {
    "on_demand": Key(positive),
    "spot_min": Key(positive),
    "spot_max": Key(positive),
    "capacity_block": Key(positive),
    "as_of": Key(_date, "the date of these prices"),
    "source": Key(text()),
}


def check_catalogue(content: Mapping[str, Any], known_types: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with a catalogue file whose prices may be of its own types and of these."""
    own = content.get("instances", {})
    types = {*known_types, *(own if isinstance(own, dict) else ())}

    def known_type(path: Path, name: str) -> Iterator[Finding]:
        if name not in types:
            yield Finding(path, "is not an instance type of the catalogue - add it under instances as well")

    prices = tables(known_type, tables(word(*regions()), table(PRICE)))
    yield from table({"instances": Key(tables(_TYPE_NAME, table(INSTANCE))), "prices": Key(prices)})((), content)
    for path, row in _rows(content, "instances", 1):
        yield from _where_whole(table(INSTANCE), _instance_fits, path, row)
    for path, row in _rows(content, "prices", 2):
        yield from _where_whole(table(PRICE), _price_fits, path, row)


def _rows(content: Any, section: str, depth: int) -> Iterator[tuple[Path, Any]]:
    """The tables that lie so deep below this section."""
    found: list[tuple[Path, Any]] = [((section,), content.get(section))]
    for _ in range(depth):
        found = [((*path, key), row) for path, held in found if isinstance(held, dict) for key, row in held.items()]
    yield from found


def _where_whole(
    shape: Callable[[Path, Any], Iterator[Finding]],
    fits: Callable[[Path, Mapping[str, Any]], Iterator[Finding]],
    path: Path,
    row: Any,
) -> Iterator[Finding]:
    """How the row's figures fit together, said only where each of them is right by itself."""
    if not any(shape(path, row)):
        yield from fits(path, row)


def _instance_fits(path: Path, row: Mapping[str, Any]) -> Iterator[Finding]:
    cores, sockets, threads = row["cores"], row["sockets"], row["threads_per_core"]
    if row["vcpus"] != cores * threads:
        yield Finding((*path, "vcpus"), f"{row['vcpus']} is not cores {cores} x threads_per_core {threads}")
    if cores % sockets:
        yield Finding((*path, "sockets"), f"{cores} cores do not divide among {sockets} sockets")
    for kind in ("network", "ebs"):
        yield from _baseline_fits(path, row, f"{kind}_gbps", f"{kind}_baseline_gbps")
    yield from _cards_fit(path, row)
    if "accelerator" in row:
        yield from _accelerator_fits((*path, "accelerator"), row["accelerator"])
    for number, market in enumerate(row["markets"]):
        if market in row["markets"][:number]:
            yield Finding((*path, "markets", number), f"{market!r} is listed twice - keep one")


def _baseline_fits(path: Path, row: Mapping[str, Any], peak: str, baseline: str) -> Iterator[Finding]:
    if baseline in row and peak not in row:
        yield Finding((*path, peak), f"is missing - {baseline} is given")
    elif baseline in row and row[baseline] > row[peak]:
        yield Finding((*path, baseline), f"{row[baseline]:g} is more than {peak} {row[peak]:g}")


def _cards_fit(path: Path, row: Mapping[str, Any]) -> Iterator[Finding]:
    following = 0
    for number, cards in enumerate(row["network_cards"]):
        if cards["first"] != following or cards["last"] < cards["first"]:
            yield Finding(
                (*path, "network_cards", number),
                f"has cards {cards['first']} to {cards['last']} - cards stand in order, the next one is {following}",
            )
            return
        following = cards["last"] + 1
    if "interface" not in row["network_cards"][0]["interface_types"]:
        yield Finding((*path, "network_cards", 0, "interface_types"), "lacks 'interface' - card 0 always carries IP")
    speaking = sum(
        cards["last"] - cards["first"] + 1
        for cards in row["network_cards"]
        if {"efa", "efa-only"} & set(cards["interface_types"])
    )
    if row["efa_maximum"] > speaking or (speaking and not row["efa_maximum"]):
        yield Finding((*path, "efa_maximum"), f"{row['efa_maximum']} does not fit {speaking} network cards with EFA")


def _accelerator_fits(path: Path, row: Mapping[str, Any]) -> Iterator[Finding]:
    for given, other in (("link", "link_gb_per_s"), ("link_gb_per_s", "link")):
        if given in row and other not in row:
            yield Finding((*path, other), f"is missing - {given} is given")
    if "name" not in row:  # then it follows from the product
        for _ in _SLURM_TYPE(path, row["product"].lower()):
            yield Finding((*path, "name"), f"is missing - Slurm cannot call a type {row['product'].lower()!r}")


def _price_fits(path: Path, row: Mapping[str, Any]) -> Iterator[Finding]:
    amounts = [key for key in PRICE if key not in ("as_of", "source")]
    if not any(amount in row for amount in amounts):
        yield Finding(path, f"has no price - give one of {', '.join(amounts)}")
    low, high = row.get("spot_min"), row.get("spot_max")
    if (low is None) is not (high is None):
        given, missing = ("spot_max", "spot_min") if low is None else ("spot_min", "spot_max")
        yield Finding((*path, missing), f"is missing - {given} is given; the two may be equal")
    elif low is not None and high is not None and low > high:
        yield Finding((*path, "spot_min"), f"{low:g} is more than spot_max {high:g}")
