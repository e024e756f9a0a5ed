"""Write the catalog's data/instances.toml and data/offerings.csv from AWS responses that moto bundles.

moto bundles what DescribeInstanceTypes and DescribeInstanceTypeOfferings returned on AWS. The tables below add what the
API lacks or has wrong, with sources; tests/catalog compares the written rows with moto's and lists every difference.
After an update of moto, run `.venv/bin/python tools/catalog_data.py` and review the diff.
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

FAMILIES = (  # all sizes except bare metal, which boots too slowly for a queue, and TOO_SMALL
    *("p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "g5", "g6", "g6e"),
    *("trn1", "trn1n", "trn2", "m6i", "m7i", "c7i", "r7i", "t3"),
)
TOO_SMALL = ("t3.nano", "t3.micro", "t3.small")  # 0.5, 1 and 2 GiB: too little for a head or a node

# Not in the API. A type spans two sockets if it has more cores than one processor of its kind: 24 (p3dn, p4d, p4de),
# 32 (m6i, trn1, trn1n), 48 (all others). From memory of lscpu and of processor data sheets; not verified.
TWO_SOCKETS = (
    *("p3dn.24xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"),
    *("p6-b200.48xlarge", "p6-b300.48xlarge", "g5.48xlarge", "g6.48xlarge", "g6e.48xlarge"),
    *("trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "m6i.24xlarge", "m6i.32xlarge"),
    *("m7i.48xlarge", "c7i.48xlarge", "r7i.48xlarge"),
)
LINKS = {  # family: link between the accelerators of one machine, GB/s of each; a single accelerator has none
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
# The API has 524288 for each, 8 TiB in total for the largest type; the actual total is 1.5 TiB.
ACCELERATOR_MEMORY_MIB = {"trn2.3xlarge": 98304, "trn2.48xlarge": 98304}

HEAD = """\
# EC2 instance types. Written by tools/catalog_data.py; change it there.
#
# Source of all figures except those below: DescribeInstanceTypes, as bundled with moto {moto} (2026); tests/catalog
#   compares every row with it, field by field, and lists the differences.
# sockets: not in EC2's API. From memory of lscpu and of processor data sheets: NOT VERIFIED.
# link, link_gb_per_s: the link between the accelerators of a machine and the bandwidth of each, as its vendor quotes it
#   (of NVLink both directions together). p4d to p6: NVIDIA's 600, 900, 1800 GB/s, second-hand. p3dn: from memory: NOT
#   VERIFIED. trn1, trn1n: AWS Neuron documentation, "Amazon EC2 Trn1/Trn1n Architecture" (384, 768 GiB/s). trn2: the
#   same, "Trainium2 Architecture" (1.28 TB/s). A single accelerator has no link.
# trn2, accelerator.memory_mib: the API says 512 GiB a chip; AWS Neuron documentation, "Trainium2 Architecture" and
#   "Amazon EC2 Trn2 Architecture", say 96 GiB a chip, and 1,536 GiB in all of trn2.48xlarge.
# network_cards: equal cards share one entry, first to last.
# network_gbps: of the whole machine, from NetworkPerformance; if that says "Up to", network_baseline_gbps is the sum of
#   the cards' baselines. The cards' own figures do not always add up to it (p6-b200, p6-b300, g6e,
#   trn2.3xlarge).
# ebs_gbps: the peak; ebs_baseline_gbps is present if it is lower.
"""
OFFERINGS_HEAD = """\
# The zones that offer each instance type, by the number at the end of their id (use1-az4 is 4).
# source: DescribeInstanceTypeOfferings by zone id, as bundled with moto {moto} (2026); tests/catalog compares each row.
# A snapshot: AWS keeps adding zones, and an offered type may have no capacity. Written by tools/catalog_data.py.
instance_type,region,zones
"""


def main() -> None:
    """Write both files."""
    for name, text in texts().items():
        (DATA / name).write_text(text)


def texts() -> Mapping[str, str]:
    """The text of both files by name."""
    responses, moto = read("instance_types.json.gz"), version("moto")
    names = sorted(name for name in responses if is_listed(name, responses[name]))
    rows = "".join(f"\n{row(name, responses[name])}" for name in names)
    lines = "".join(f"{line}\n" for line in sorted(offerings(frozenset(names))))
    return {
        "instances.toml": HEAD.format(moto=moto) + rows,
        "offerings.csv": OFFERINGS_HEAD.format(moto=moto) + lines,
    }


def is_listed(name: str, response: Mapping[str, Any]) -> bool:
    """Whether the catalog lists this type."""
    return name.partition(".")[0] in FAMILIES and name not in TOO_SMALL and not response["BareMetal"]


def row(name: str, response: Mapping[str, Any]) -> str:
    """The type's table in instances.toml."""
    cpu, network = response["VCpuInfo"], response["NetworkInfo"]
    lines = [
        f"[instances.{json.dumps(name)}]",
        f"architecture = {json.dumps(response['ProcessorInfo']['SupportedArchitectures'][-1])}",
        f"vcpus = {cpu['DefaultVCpus']}",
        f"cores = {cpu['DefaultCores']}",
        f"threads_per_core = {cpu['DefaultThreadsPerCore']}",
        f"sockets = {2 if name in TWO_SOCKETS else 1}",
        f"memory_mib = {response['MemoryInfo']['SizeInMiB']}",
        *accelerator(name, response),
        f"network_cards = [{', '.join(cards(network['NetworkCards']))}]",
        *bandwidth("network", *network_gbps(network)),
        f"efa_maximum = {network.get('EfaInfo', {}).get('MaximumEfaInterfaces', 0)}",
        *nvme(response.get("InstanceStorageInfo", {}).get("Disks", [])),
        *bandwidth("ebs", *ebs_gbps(response["EbsInfo"]["EbsOptimizedInfo"])),
        f"markets = {json.dumps(response['SupportedUsageClasses'])}",
    ]
    return "".join(f"{line}\n" for line in lines)


def accelerator(name: str, response: Mapping[str, Any]) -> Iterator[str]:
    """The line of the accelerators, if the type has any."""
    gpus, chips = response.get("GpuInfo", {}).get("Gpus", []), response.get("NeuronInfo", {}).get("NeuronDevices", [])
    for device in (*gpus, *chips):
        memory = ACCELERATOR_MEMORY_MIB.get(name, device["MemoryInfo"]["SizeInMiB"])
        link, gb_per_s = LINKS.get(name.partition(".")[0], (None, 0))
        link_fields = f', link = "{link}", link_gb_per_s = {gb_per_s}' if link and device["Count"] > 1 else ""
        yield (
            f'accelerator = {{ vendor = "{"nvidia" if gpus else "neuron"}", product = "{device["Name"]}",'
            f" count = {device['Count']}, memory_mib = {memory}{link_fields} }}"
        )


def cards(network_cards: list[Mapping[str, Any]]) -> Iterator[str]:
    """The network cards as inline tables; equal neighbours share one."""
    for (kinds, most), equal in groupby(network_cards, lambda c: (c["InterfaceTypes"], c["MaximumNetworkInterfaces"])):
        indexes = [card["NetworkCardIndex"] for card in equal]
        yield (
            f"{{ first = {indexes[0]}, last = {indexes[-1]},"
            f" interface_types = {json.dumps(kinds)}, maximum_interfaces = {most} }}"
        )


def network_gbps(network: Mapping[str, Any]) -> tuple[float, float]:
    """The machine's peak and baseline: `3200 Gigabit`, `4x 100 Gigabit`, `Up to 12.5 Gigabit`."""
    found = re.fullmatch(r"(Up to )?(?:(\d+)x )?([\d.]+) Gigabit", network["NetworkPerformance"])
    assert found, network["NetworkPerformance"]
    peak = int(found[2] or 1) * float(found[3])
    return peak, sum(card["BaselineBandwidthInGbps"] for card in network["NetworkCards"]) if found[1] else peak


def ebs_gbps(ebs: Mapping[str, Any]) -> tuple[float, float]:
    """The bandwidth to EBS volumes, peak and baseline."""
    return ebs["MaximumBandwidthInMbps"] / 1000, ebs["BaselineBandwidthInMbps"] / 1000


def bandwidth(what: str, peak: float, baseline: float) -> Iterator[str]:
    """The lines of a bandwidth, without a baseline that equals the peak."""
    yield f"{what}_gbps = {peak:g}"
    if baseline != peak:
        yield f"{what}_baseline_gbps = {baseline:g}"


def nvme(disks: list[Mapping[str, Any]]) -> Iterator[str]:
    """The line of the local disks, which are all equal, if the type has any."""
    for disk in disks:
        yield f"nvme = {{ count = {disk['Count']}, gb_each = {disk['SizeInGB']} }}"


def offerings(names: frozenset[str]) -> Iterator[str]:
    """A line for each type and region that offers it, without Local Zones (use1-atl2-az1)."""
    folder = "instance_type_offerings/availability-zone-id"
    for file in MOTO.joinpath(folder).iterdir():
        zones: dict[str, list[int]] = {}
        for offering in read(f"{folder}/{file.name}"):
            zone = re.fullmatch(r"[a-z]+\d+-az(\d+)", offering["Location"])
            if offering["InstanceType"] in names and zone:
                zones.setdefault(offering["InstanceType"], []).append(int(zone[1]))
        for name, numbers in zones.items():
            yield f"{name},{file.name.removesuffix('.json.gz')},{' '.join(map(str, sorted(numbers)))}"


def read(name: str) -> Any:
    """One of moto's files."""
    return json.loads(gzip.decompress(MOTO.joinpath(name).read_bytes()))


if __name__ == "__main__":
    main()
