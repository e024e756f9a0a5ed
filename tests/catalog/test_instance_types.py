"""Every instance type against AWS's data, field by field."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aws_dumps
import pytest

from corral.catalog.accelerators.kernel_modules import gpu_architecture
from corral.catalog.aws.images import image_profiles
from corral.catalog.aws.instance_types import (
    InstanceType,
    Vendor,
    excluded_types,
    find_instance_type,
    instance_types,
    type_hint,
)
from corral.catalog.loader.suggestions import UnknownName

# Fields that AWS's answer does not have; their sources are in the head of instances.toml.
NOT_IN_THE_ANSWER = ("sockets", "source")
# Errors in AWS's data: type, field, AWS's value, the right one, and why.
WRONG_IN_THE_ANSWER = (
    ("trn2.3xlarge", "accelerator.memory_mib", 524288, 98304, "AWS Neuron documentation: 96 GiB a chip"),
    ("trn2.48xlarge", "accelerator.memory_mib", 524288, 98304, "AWS Neuron documentation: 96 GiB a chip, 1,536 in all"),
)
# Types whose network cards do not add up to the machine's NetworkPerformance, in Gbps: the sum, and what is right.
CARDS_THAT_DO_NOT_ADD_UP = {
    "g6e.24xlarge": (400.0, 200.0),  # each card can carry all
    "g6e.48xlarge": (1600.0, 400.0),  # likewise
    "p6-b200.48xlarge": (1600.0, 3200.0),  # AWS states 3200 for the machine; its 8 cards then carry 400 each
    "p6-b300.48xlarge": (6750.0, 6400.0),  # 16 cards with EFA; the ENA card comes on top
    "trn2.3xlarge": (50.0, 200.0),  # a sixteenth of trn2.48xlarge, whose 3200 are not in doubt
}
LINKS = {
    "p3dn.24xlarge": ("NVLink 2", 300),
    "p4d.24xlarge": ("NVLink 3", 600),
    "p4de.24xlarge": ("NVLink 3", 600),
    "p5.48xlarge": ("NVLink 4", 900),
    "p5e.48xlarge": ("NVLink 4", 900),
    "p5en.48xlarge": ("NVLink 4", 900),
    "p6-b200.48xlarge": ("NVLink 5", 1800),
    "p6-b300.48xlarge": ("NVLink 5", 1800),
    "trn1.32xlarge": ("NeuronLink-v2", 384),
    "trn1n.32xlarge": ("NeuronLink-v2", 768),
    "trn2.48xlarge": ("NeuronLink-v3", 1280),
}
# Types of our families that the catalog leaves out, each with its reason.
BARE_METAL = "bare metal is left out, which boots too slowly for a queue that grows and shrinks"
TOO_SMALL = "sizes of 2 GiB or less are left out, in which neither a head nor a node runs"
LEFT_OUT = {
    "c7i.metal-24xl": BARE_METAL,
    "c7i.metal-48xl": BARE_METAL,
    "m6i.metal": BARE_METAL,
    "m7i.metal-24xl": BARE_METAL,
    "m7i.metal-48xl": BARE_METAL,
    "r7i.metal-24xl": BARE_METAL,
    "r7i.metal-48xl": BARE_METAL,
    "t3.micro": TOO_SMALL,
    "t3.nano": TOO_SMALL,
    "t3.small": TOO_SMALL,
}


def values_of_aws(name: str) -> dict[str, Any]:
    """The row that DescribeInstanceTypes gives for this type, right or wrong."""
    answer = aws_dumps.described(name)
    network, processor, ebs = answer["NetworkInfo"], answer["VCpuInfo"], answer["EbsInfo"]["EbsOptimizedInfo"]
    disks = answer.get("InstanceStorageInfo", {}).get("Disks", [])
    return {
        "name": answer["InstanceType"],
        "family": name.split(".")[0],
        "architecture": answer["ProcessorInfo"]["SupportedArchitectures"][-1],
        "vcpus": processor["DefaultVCpus"],
        "cores": processor["DefaultCores"],
        "threads_per_core": processor["DefaultThreadsPerCore"],
        "memory_mib": answer["MemoryInfo"]["SizeInMiB"],
        "accelerator": accelerator_of_aws(name),
        "network_cards": tuple(
            {
                "index": card["NetworkCardIndex"],
                "interface_types": tuple(card["InterfaceTypes"]),
                "maximum_interfaces": card["MaximumNetworkInterfaces"],
            }
            for card in network["NetworkCards"]
        ),
        "network_gbps": stated_gbps(name),
        "network_baseline_gbps": sum(card["BaselineBandwidthInGbps"] for card in network["NetworkCards"])
        if network["NetworkPerformance"].startswith("Up to")
        else stated_gbps(name),
        "efa_maximum": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "nvme_count": sum(disk["Count"] for disk in disks),
        "nvme_gb_each": disks[0]["SizeInGB"] if disks else 0,
        "ebs_gbps": ebs["MaximumBandwidthInMbps"] / 1000,
        "ebs_baseline_gbps": ebs["BaselineBandwidthInMbps"] / 1000,
        "markets": tuple(answer["SupportedUsageClasses"]),
    }


def accelerator_of_aws(name: str) -> dict[str, Any] | None:
    """AWS's figures of a GPU or a Neuron device, and this file's of their link."""
    answer, (link, gb_per_s) = aws_dumps.described(name), LINKS.get(name, (None, 0))
    devices = [("nvidia", gpu) for gpu in answer.get("GpuInfo", {}).get("Gpus", [])]
    devices += [("neuron", chip) for chip in answer.get("NeuronInfo", {}).get("NeuronDevices", [])]
    for vendor, device in devices:
        return {
            "name": device["Name"].lower(),
            "product": device["Name"],
            "vendor": vendor,
            "count": device["Count"],
            "memory_mib": device["MemoryInfo"]["SizeInMiB"],
            "link": link,
            "link_gb_per_s": gb_per_s,
        }
    return None


def stated_gbps(name: str) -> float:
    """NetworkPerformance as a number: `3200 Gigabit`, `16x 100 Gigabit`, `Up to 12.5 Gigabit`."""
    *factors, gbps = re.findall(r"[\d.]+", aws_dumps.described(name)["NetworkInfo"]["NetworkPerformance"])
    return float(factors[0] if factors else 1) * float(gbps)


def flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The row with `accelerator.count` for what lies deeper."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


@pytest.mark.parametrize("name", instance_types())
def test_a_row_is_what_aws_states_but_for_what_it_has_wrong(name: str) -> None:
    row, of_aws = flat(asdict(instance_types()[name])), flat(values_of_aws(name))
    differences = [
        (name, field, of_aws.get(field), row[field])
        for field in row
        if field not in NOT_IN_THE_ANSWER and row[field] != of_aws.get(field)
    ]
    assert differences == [tuple(wrong[:4]) for wrong in WRONG_IN_THE_ANSWER if wrong[0] == name]


def test_cards_add_up_to_the_machine_but_for_these() -> None:
    sums = {
        name: sum(card["PeakBandwidthInGbps"] for card in aws_dumps.described(name)["NetworkInfo"]["NetworkCards"])
        for name in instance_types()
    }
    odd = {n: (gbps, instance_types()[n].network_gbps) for n, gbps in sums.items()}
    assert {n: both for n, both in odd.items() if both[0] != both[1]} == CARDS_THAT_DO_NOT_ADD_UP


@pytest.mark.parametrize("name", instance_types())
def test_a_type_has_disks_of_one_size_and_one_kind_of_accelerator(name: str) -> None:
    answer = aws_dumps.described(name)
    devices = [*answer.get("GpuInfo", {}).get("Gpus", []), *answer.get("NeuronInfo", {}).get("NeuronDevices", [])]
    disks = answer.get("InstanceStorageInfo", {}).get("Disks", [])
    assert [len(kind) > 1 for kind in (devices, disks)] == [False, False]


@pytest.mark.parametrize("name", instance_types())
def test_cores_divide_among_sockets_and_threads_make_vcpus(name: str) -> None:
    row = instance_types()[name]
    assert (row.cores % row.sockets, row.cores * row.threads_per_core) == (0, row.vcpus)


def test_every_family_is_complete_but_for_the_types_left_out() -> None:
    families = {row.family for row in instance_types().values()}
    described = {name for name in aws_dumps.all_described() if name.partition(".")[0] in families}
    assert described - set(instance_types()) == set(LEFT_OUT)


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_type_is_left_out_for_the_reason_that_is_given(name: str) -> None:
    answer = aws_dumps.described(name)
    reason = BARE_METAL if answer["BareMetal"] else TOO_SMALL if answer["MemoryInfo"]["SizeInMiB"] <= 2048 else ""
    assert LEFT_OUT[name] == reason


def test_the_catalog_states_why_types_are_left_out() -> None:
    assert excluded_types() == LEFT_OUT


def test_every_type_boots_every_image_profile() -> None:
    kinds = {row.architecture for row in instance_types().values()}
    assert kinds | {profile.architecture for profile in image_profiles().values()} == {"x86_64"}


def test_every_accelerator_has_an_image_with_its_driver() -> None:
    vendors = {row.accelerator.vendor for row in instance_types().values() if row.accelerator}
    assert (
        vendors - {vendor for image in image_profiles().values() if not image.box for vendor in image.drivers} == set()
    )


def test_every_nvidia_gpu_has_an_architecture() -> None:
    gpus = {row.accelerator.product for row in instance_types().values() if row.accelerator}
    assert {product for product in gpus if gpu_architecture(product) is None} == {"Trainium", "Trainium2"}


def test_a_p4d_has_four_cards_that_all_carry_efa() -> None:
    row = find_instance_type("p4d.24xlarge")
    assert [(card.index, card.interface_types) for card in row.network_cards] == [
        (0, ("interface", "efa", "efa-only")),
        (1, ("interface", "efa", "efa-only")),
        (2, ("interface", "efa", "efa-only")),
        (3, ("interface", "efa", "efa-only")),
    ]


def test_the_first_card_of_a_p6_b300_is_ena_alone() -> None:
    row = find_instance_type("p6-b300.48xlarge")
    assert (row.network_cards[0].interface_types, len(row.network_cards), row.efa_maximum) == (("interface",), 17, 16)


def test_a_p5_has_32_cards() -> None:
    row = find_instance_type("p5.48xlarge")
    assert ([card.index for card in row.network_cards], row.efa_maximum) == (list(range(32)), 32)


def test_every_type_with_efa_takes_interfaces_without_an_address() -> None:
    def takes_efa_only(row: InstanceType) -> bool:
        return any("efa-only" in card.interface_types for card in row.network_cards)

    types = instance_types().values()
    assert [row.name for row in types if takes_efa_only(row) != (row.efa_maximum > 0)] == []


def test_neuron_devices_are_reported_from_gpus() -> None:
    neuron = [r.name for r in instance_types().values() if r.accelerator and r.accelerator.vendor is Vendor.NEURON]
    assert neuron == ["trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge", "trn2.3xlarge", "trn2.48xlarge"]


def test_capacity_blocks_are_sold_of() -> None:
    assert [row.name for row in instance_types().values() if "capacity-block" in row.markets] == [
        "p4d.24xlarge",
        "p4de.24xlarge",
        "p5.48xlarge",
        "p5.4xlarge",
        "p5e.48xlarge",
        "p5en.48xlarge",
        "p6-b200.48xlarge",
        "p6-b300.48xlarge",
        "trn1.32xlarge",
        "trn2.3xlarge",
        "trn2.48xlarge",
    ]


def test_types_are_sorted_by_name() -> None:
    assert list(instance_types()) == sorted(instance_types())


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("p4d.24xl", "did you mean 'p4d.24xlarge'?"),
        ("p5.48large", "did you mean 'p5.48xlarge'?"),
        ("P5.48XLARGE", "did you mean 'p5.48xlarge'?"),
        ("m7i.2xlage", "did you mean 'm7i.2xlarge'?"),
        ("h100", "H100 is in p5.48xlarge, p5.4xlarge"),
        ("8xH100", "H100 is in p5.48xlarge, p5.4xlarge"),
        ("a100-80gb", "A100 is in p4d.24xlarge, p4de.24xlarge"),
        ("b300", "B300 is in p6-b300.48xlarge"),
        ("Trainium2", "Trainium2 is in trn2.3xlarge, trn2.48xlarge"),
        ("p5.49xlarge", "did you mean 'p5.48xlarge' or 'p5.4xlarge'?"),
        ("p6.48xlarge", "did you mean 'p5.48xlarge'?"),
        ("g5.9xlarge", "did you mean 'g5.2xlarge', 'g5.4xlarge' or 'g5.8xlarge'?"),
        ("t3.small", f"{TOO_SMALL} - its nearest sizes are t3.medium and t3.large"),
        ("T3.nano", f"{TOO_SMALL} - its nearest sizes are t3.medium and t3.large"),
        ("c7i.metal-24xl", f"{BARE_METAL} - its nearest sizes are c7i.24xlarge and c7i.16xlarge"),
        ("m6i.metal", f"{BARE_METAL} - its nearest sizes are m6i.32xlarge and m6i.24xlarge"),
        ("r7i.metal", "its nearest sizes are r7i.48xlarge and r7i.24xlarge"),
        ("p3dn.small", "p3dn has p3dn.24xlarge"),
        ("t3.tiny", "t3 has t3.2xlarge, t3.large, t3.medium, t3.xlarge"),
        ("p5", "p5 is a family, which has p5.48xlarge, p5.4xlarge"),
        (
            "quantum.9",
            "available families are c7i, g5, g6, g6e, m6i, m7i, p3dn, p4d, p4de, p5, p5e, p5en, p6-b200,"
            " p6-b300, r7i, t3,"
            " trn1, trn1n, trn2",
        ),
    ],
)
def test_an_unknown_type_is_answered_with(name: str, hint: str) -> None:
    assert type_hint(name, instance_types()) == hint


def test_a_type_that_is_not_found_is_reported_with_the_hint() -> None:
    with pytest.raises(UnknownName) as caught:
        find_instance_type("p4d.24xl")
    assert (str(caught.value), caught.value.nearest[:2]) == (
        "'p4d.24xl' is not in the catalog - did you mean 'p4d.24xlarge'?",
        ("p4d.24xlarge", "p4de.24xlarge"),
    )


def test_the_page_names_every_type_that_is_left_out() -> None:
    page = (Path(__file__).parents[2] / "docs" / "catalog.md").read_text()
    listed = page.partition("**Left out**")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([^`]+)`", listed)) == set(LEFT_OUT)
