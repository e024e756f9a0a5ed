"""Every row of the instance types against what AWS says, field by field."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import aws_dumps
import pytest

from corral.catalog.images import image_profiles
from corral.catalog.instances import find_instance_type, instance_types
from corral.catalog.names import UnknownName


def as_aws_says(name: str) -> dict[str, Any]:
    """The row that DescribeInstanceTypes gives for this type; sockets it does not know."""
    answer = aws_dumps.described(name)
    network, processor = answer["NetworkInfo"], answer["VCpuInfo"]
    gpus, disks = answer.get("GpuInfo", {}).get("Gpus", []), answer.get("InstanceStorageInfo", {}).get("Disks", [])
    return {
        "name": answer["InstanceType"],
        "family": name.split(".")[0],
        "architecture": answer["ProcessorInfo"]["SupportedArchitectures"][-1],
        "vcpus": processor["DefaultVCpus"],
        "cores": processor["DefaultCores"],
        "threads_per_core": processor["DefaultThreadsPerCore"],
        "memory_mib": answer["MemoryInfo"]["SizeInMiB"],
        "accelerator": next(
            (
                {
                    "name": gpu["Name"].lower(),
                    "product": gpu["Name"],
                    "count": gpu["Count"],
                    "memory_mib": gpu["MemoryInfo"]["SizeInMiB"],
                }
                for gpu in gpus
            ),
            None,
        ),
        "network_cards": tuple(
            {
                "index": card["NetworkCardIndex"],
                "interface_types": tuple(card["InterfaceTypes"]),
                "maximum_interfaces": card["MaximumNetworkInterfaces"],
            }
            for card in network["NetworkCards"]
        ),
        "network_gbps": sum(card["PeakBandwidthInGbps"] for card in network["NetworkCards"]),
        "efa_maximum": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "nvme_count": sum(disk["Count"] for disk in disks),
        "nvme_gb_each": disks[0]["SizeInGB"] if disks else 0,
        "markets": tuple(answer["SupportedUsageClasses"]),
    }


@pytest.mark.parametrize("name", instance_types())
def test_a_row_is_what_aws_says(name: str) -> None:
    row = asdict(instance_types()[name])
    del row["sockets"]
    assert row == as_aws_says(name)


@pytest.mark.parametrize("name", instance_types())
def test_a_type_has_disks_of_one_size_and_one_kind_of_accelerator(name: str) -> None:
    answer = aws_dumps.described(name)
    kinds = (answer.get("GpuInfo", {}).get("Gpus", []), answer.get("InstanceStorageInfo", {}).get("Disks", []))
    assert [len(kind) > 1 for kind in kinds] == [False, False]


@pytest.mark.parametrize("name", instance_types())
def test_cores_divide_among_sockets_and_threads_make_vcpus(name: str) -> None:
    row = instance_types()[name]
    assert (row.cores % row.sockets, row.cores * row.threads_per_core) == (0, row.vcpus)


def test_every_type_boots_every_image_profile() -> None:
    kinds = {row.architecture for row in instance_types().values()}
    assert kinds | {profile.architecture for profile in image_profiles().values()} == {"x86_64"}


def test_a_p4d_has_four_cards_that_all_carry_efa() -> None:
    row = find_instance_type("p4d.24xlarge")
    assert [(card.index, card.interface_types) for card in row.network_cards] == [
        (0, ("interface", "efa", "efa-only")),
        (1, ("interface", "efa", "efa-only")),
        (2, ("interface", "efa", "efa-only")),
        (3, ("interface", "efa", "efa-only")),
    ]


def test_types_are_sorted_by_name() -> None:
    assert list(instance_types()) == sorted(instance_types())


def test_an_unknown_type_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        find_instance_type("p4d.24xl")
    assert (str(caught.value), caught.value.nearest[:2]) == (
        "'p4d.24xl' is not in the catalogue - did you mean 'p4d.24xlarge'?",
        ("p4d.24xlarge", "p4de.24xlarge"),
    )
