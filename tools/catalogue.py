"""Writes what the catalogue takes from AWS's API, from moto's bundled answers: data/instances.toml, data/offerings.csv.

moto carries what DescribeInstanceTypes and DescribeInstanceTypeOfferings returned on AWS. What the API does not tell,
or tells wrongly, stands in the tables below with its source; tests/catalog compares the written rows with moto's, and
lists every difference. Run it as `.venv/bin/python tools/catalogue.py` after a new moto, then read the difference.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "modules" / "corral" / "catalog" / "data"
MOTO = files("moto.ec2").joinpath("resources")

FAMILIES = (  # every size but bare metal, which boots too slowly for a queue, and TOO_SMALL
    *("p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "g5", "g6", "g6e"),
    *("trn1", "trn1n", "trn2", "m6i", "m7i", "c7i", "r7i", "t3"),
)
TOO_SMALL = ("t3.nano", "t3.micro", "t3.small")  # 0.5, 1 and 2 GiB: neither a head nor a node runs in so little

# The API does not tell. A type spans two sockets where it has more cores than one processor of its kind: 24 (p3dn, p4d,
# p4de), 32 (m6i, trn1, trn1n), 48 (all others). From memory of lscpu and of processor data sheets; not verified.
TWO_SOCKETS = (
    *("p3dn.24xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"),
    *("p6-b200.48xlarge", "p6-b300.48xlarge", "g5.48xlarge", "g6.48xlarge", "g6e.48xlarge"),
    *("trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "m6i.24xlarge", "m6i.32xlarge"),
    *("m7i.48xlarge", "c7i.48xlarge", "r7i.48xlarge"),
)
LINKS = {  # family: what joins the accelerators of one machine, GB/s of one; a single accelerator has no link
    "p3dn": ("NVLink 2", 300),
    "p4d": ("NVLink 3", 600),
    "p4de": ("NVLink 3", 600),
    "p5": ("NVLink 4", 900),
    "p5e": ("NVLink 4", 900),
    "p5en": ("NVLink 4", 900),
    "p6-b200": ("NVLink 5", 1800),
    "p6-b300": ("NVLink 5", 1800),
    "trn1": ("NeuronLink-v2", 384),
    "trn1n": ("NeuronLink-v2", 768),
    "trn2": ("NeuronLink-v3", 1280),
}
# The API says 524288 of each: 8 TiB in all for the largest, where there are 1.5.
ACCELERATOR_MEMORY_MIB = {"trn2.3xlarge": 98304, "trn2.48xlarge": 98304}

HEAD = """\
# EC2 instance types. Written by tools/catalogue.py; change it there.
#
# Source of every figure but those below: DescribeInstanceTypes, as bundled with moto {moto} (2026); tests/catalog
#   compares every row with it, field by field, and lists what differs.
# sockets: EC2's API does not tell. From memory of lscpu and of processor data sheets: NOT VERIFIED.
# link, link_gb_per_s: what joins the accelerators of a machine, and the bandwidth of one, as its vendor quotes it (of
#   NVLink both directions together). p4d to p6: NVIDIA's 600, 900, 1800 GB/s, second-hand. p3dn: from memory: NOT
#   VERIFIED. trn1, trn1n: AWS Neuron documentation, "Amazon EC2 Trn1/Trn1n Architecture" (384, 768 GiB/s). trn2: the
#   same, "Trainium2 Architecture" (1.28 TB/s). One accelerator alone has no link.
# trn2, accelerator.memory_mib: the API says 512 GiB a chip; AWS Neuron documentation, "Trainium2 Architecture" and
#   "Amazon EC2 Trn2 Architecture", say 96 GiB a chip, and 1,536 GiB in all of trn2.48xlarge.
# network_cards: equal cards stand in one row, first to last.
# network_gbps: of the whole machine, from NetworkPerformance; where that says "Up to", network_baseline_gbps is the sum
#   of the cards' baselines. The cards' own figures do not always add up to it (p6-b200, p6-b300, g6e,
#   trn2.3xlarge).
# ebs_gbps: the most; ebs_baseline_gbps stands where it is less.
"""
OFFERINGS_HEAD = """\
# Where each instance type is offered: the zones of a region, by the number that ends their id (use1-az4 is 4).
# source: DescribeInstanceTypeOfferings by zone id, as bundled with moto {moto} (2026); tests/catalog compares each row.
# A snapshot: AWS adds zones all the time, and a type may be offered and yet not be had. By tools/catalogue.py.
instance_type,region,zones
"""


def main() -> None:
    """Writes both files."""
    for name, text in texts().items():
        (DATA / name).write_text(text)


def texts() -> Mapping[str, str]:
    """The files by name, as they should be."""
    answers, moto = read("instance_types.json.gz"), version("moto")
    names = sorted(name for name in answers if is_wanted(name, answers[name]))
    rows = "".join(f"\n{row(name, answers[name])}" for name in names)
    lines = "".join(f"{line}\n" for line in sorted(offerings(frozenset(names))))
    return {
        "instances.toml": HEAD.format(moto=moto) + rows,
        "offerings.csv": OFFERINGS_HEAD.format(moto=moto) + lines,
    }


def is_wanted(name: str, answer: Mapping[str, Any]) -> bool:
    """Whether the catalogue has this type."""
    return name.partition(".")[0] in FAMILIES and name not in TOO_SMALL and not answer["BareMetal"]


def row(name: str, answer: Mapping[str, Any]) -> str:
    """The type's table in instances.toml."""
    cpu, network = answer["VCpuInfo"], answer["NetworkInfo"]
    lines = [
        f"[instances.{json.dumps(name)}]",
        f"architecture = {json.dumps(answer['ProcessorInfo']['SupportedArchitectures'][-1])}",
        f"vcpus = {cpu['DefaultVCpus']}",
        f"cores = {cpu['DefaultCores']}",
        f"threads_per_core = {cpu['DefaultThreadsPerCore']}",
        f"sockets = {2 if name in TWO_SOCKETS else 1}",
        f"memory_mib = {answer['MemoryInfo']['SizeInMiB']}",
        *accelerator(name, answer),
        f"network_cards = [{', '.join(cards(network['NetworkCards']))}]",
        *bandwidth("network", *network_gbps(network)),
        f"efa_maximum = {network.get('EfaInfo', {}).get('MaximumEfaInterfaces', 0)}",
        *nvme(answer.get("InstanceStorageInfo", {}).get("Disks", [])),
        *bandwidth("ebs", *ebs_gbps(answer["EbsInfo"]["EbsOptimizedInfo"])),
        f"markets = {json.dumps(answer['SupportedUsageClasses'])}",
    ]
    return "".join(f"{line}\n" for line in lines)


def accelerator(name: str, answer: Mapping[str, Any]) -> Iterator[str]:
    """The line of the accelerators, if there are any."""
    gpus, chips = answer.get("GpuInfo", {}).get("Gpus", []), answer.get("NeuronInfo", {}).get("NeuronDevices", [])
    for device in (*gpus, *chips):
        memory = ACCELERATOR_MEMORY_MIB.get(name, device["MemoryInfo"]["SizeInMiB"])
        link, gb_per_s = LINKS.get(name.partition(".")[0], (None, 0))
        joined = f', link = "{link}", link_gb_per_s = {gb_per_s}' if link and device["Count"] > 1 else ""
        yield (
            f'accelerator = {{ vendor = "{"nvidia" if gpus else "neuron"}", product = "{device["Name"]}",'
            f" count = {device['Count']}, memory_mib = {memory}{joined} }}"
        )


def cards(network_cards: list[Mapping[str, Any]]) -> Iterator[str]:
    """The network cards as inline tables, equal neighbours in one."""
    for (kinds, most), equal in groupby(network_cards, lambda c: (c["InterfaceTypes"], c["MaximumNetworkInterfaces"])):
        indexes = [card["NetworkCardIndex"] for card in equal]
        yield (
            f"{{ first = {indexes[0]}, last = {indexes[-1]},"
            f" interface_types = {json.dumps(kinds)}, maximum_interfaces = {most} }}"
        )


def network_gbps(network: Mapping[str, Any]) -> tuple[float, float]:
    """The machine's peak and baseline: `3200 Gigabit`, `4x 100 Gigabit`, `Up to 12.5 Gigabit`."""
    said = re.fullmatch(r"(Up to )?(?:(\d+)x )?([\d.]+) Gigabit", network["NetworkPerformance"])
    assert said, network["NetworkPerformance"]
    peak = int(said[2] or 1) * float(said[3])
    return peak, sum(card["BaselineBandwidthInGbps"] for card in network["NetworkCards"]) if said[1] else peak


def ebs_gbps(ebs: Mapping[str, Any]) -> tuple[float, float]:
    """The bandwidth to volumes, peak and baseline."""
    return ebs["MaximumBandwidthInMbps"] / 1000, ebs["BaselineBandwidthInMbps"] / 1000


def bandwidth(what: str, peak: float, baseline: float) -> Iterator[str]:
    """The lines of a bandwidth; a baseline that is the peak is left out."""
    yield f"{what}_gbps = {peak:g}"
    if baseline != peak:
        yield f"{what}_baseline_gbps = {baseline:g}"


def nvme(disks: list[Mapping[str, Any]]) -> Iterator[str]:
    """The line of the local disks, which are all alike, if there are any."""
    for disk in disks:
        yield f"nvme = {{ count = {disk['Count']}, gb_each = {disk['SizeInGB']} }}"


def offerings(names: frozenset[str]) -> Iterator[str]:
    """A line for each type and region in which it is offered; Local Zones (use1-atl2-az1) are left out."""
    folder = "instance_type_offerings/availability-zone-id"
    for file in MOTO.joinpath(folder).iterdir():
        zones: dict[str, list[int]] = {}
        for offering in read(f"{folder}/{file.name}"):
            ordinary = re.fullmatch(r"[a-z]+\d+-az(\d+)", offering["Location"])
            if offering["InstanceType"] in names and ordinary:
                zones.setdefault(offering["InstanceType"], []).append(int(ordinary[1]))
        for name, numbers in zones.items():
            yield f"{name},{file.name.removesuffix('.json.gz')},{' '.join(map(str, sorted(numbers)))}"


def read(name: str) -> Any:
    """One of moto's files."""
    return json.loads(gzip.decompress(MOTO.joinpath(name).read_bytes()))


if __name__ == "__main__":
    main()
