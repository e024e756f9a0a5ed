"""FSx for Lustre: which deployments there are, their sizes, their metadata IOPS."""

from __future__ import annotations

import pytest

from corral.catalog.aws.lustre import find_lustre_deployment, lustre_choices, metadata_iops
from corral.catalog.loader.suggestions import UnknownName

TYPICAL = [1200, 2400, 3600, 4800, 6000, 7200, 9600, 19200, 38400]


def test_there_are_these_deployments() -> None:
    assert [row.name for row in lustre_choices()] == [
        "PERSISTENT_1 SSD 50",
        "PERSISTENT_1 SSD 100",
        "PERSISTENT_1 SSD 200",
        "PERSISTENT_1 HDD 12",
        "PERSISTENT_1 HDD 40",
        "PERSISTENT_2 SSD 125",
        "PERSISTENT_2 SSD 250",
        "PERSISTENT_2 SSD 500",
        "PERSISTENT_2 SSD 1000",
        "SCRATCH_2",
    ]


def test_a_name_is_what_can_be_chosen() -> None:
    chosen = [(row.deployment_type, row.storage, row.throughput_mbps_per_tib) for row in lustre_choices()]
    named = [" ".join(map(str, choice)) if choice[2] else choice[0] for choice in chosen]
    assert named == [row.name for row in lustre_choices()]


def test_only_scratch_2_needs_no_choice() -> None:
    assert [row.name for row in lustre_choices() if row.throughput_mbps_per_tib is None] == ["SCRATCH_2"]


@pytest.mark.parametrize(
    ("size_gib", "allowed", "near"),
    [
        (0, False, (1200,)),
        (100, False, (1200,)),
        (1200, True, (2400,)),
        (1500, False, (1200, 2400)),
        (2400, True, (1200, 4800)),
        (3600, False, (2400, 4800)),
        (4800, True, (2400, 7200)),
    ],
)
def test_ssd_comes_in_steps(size_gib: int, allowed: bool, near: tuple[int, ...]) -> None:
    deployment = find_lustre_deployment("SCRATCH_2")
    assert (deployment.allows(size_gib), deployment.nearest_sizes(size_gib)) == (allowed, near)


@pytest.mark.parametrize(
    ("throughput", "size_gib", "allowed", "near"),
    [
        (12, 1200, False, (6000,)),
        (12, 6000, True, (12000,)),
        (12, 7000, False, (6000, 12000)),
        (40, 1200, False, (1800,)),
        (40, 1800, True, (3600,)),
        (40, 6000, False, (5400, 7200)),
    ],
)
def test_hdd_comes_in_other_steps(throughput: int, size_gib: int, allowed: bool, near: tuple[int, ...]) -> None:
    deployment = find_lustre_deployment("PERSISTENT_1", storage="HDD", throughput_mbps_per_tib=throughput)
    assert (deployment.allows(size_gib), deployment.nearest_sizes(size_gib)) == (allowed, near)


@pytest.mark.parametrize(
    ("throughput", "sizes_gib"),
    [(125, [38400]), (250, [19200, 38400]), (500, [9600, 19200, 38400]), (1000, [4800, 9600, 19200, 38400])],
)
def test_with_efa_the_smallest_size_falls_as_the_throughput_rises(throughput: int, sizes_gib: list[int]) -> None:
    deployment = find_lustre_deployment("PERSISTENT_2", throughput_mbps_per_tib=throughput)
    assert [size for size in TYPICAL if deployment.allows(size, efa=True)] == sizes_gib


def test_nearest_sizes_with_efa() -> None:
    deployment = find_lustre_deployment("PERSISTENT_2", throughput_mbps_per_tib=500)
    assert deployment.nearest_sizes(12000, efa=True) == (9600, 19200)


def test_efa_that_a_deployment_lacks_is_no_size_question() -> None:
    with pytest.raises(ValueError, match="SCRATCH_2 has no EFA"):
        find_lustre_deployment("SCRATCH_2").allows(1200, efa=True)


def test_efa_and_metadata_iops_are_persistent_2s() -> None:
    assert [row.name for row in lustre_choices() if row.efa_step_gib and row.metadata] == [
        "PERSISTENT_2 SSD 125",
        "PERSISTENT_2 SSD 250",
        "PERSISTENT_2 SSD 500",
        "PERSISTENT_2 SSD 1000",
    ]


def test_no_burst_is_below_its_baseline() -> None:
    assert [
        row.name
        for row in lustre_choices()
        if row.network_burst_mbps_per_tib < row.network_baseline_mbps_per_tib
        or row.disk_read_burst_mbps_per_tib < row.disk_read_mbps_per_tib
        or row.disk_write_burst_mbps_per_tib < row.disk_write_mbps_per_tib
    ] == []


def test_a_persistent_disk_gives_what_was_requested() -> None:
    persistent = [row for row in lustre_choices() if row.throughput_mbps_per_tib]
    assert [row.name for row in persistent if row.disk_read_mbps_per_tib != row.throughput_mbps_per_tib] == []


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (
            ("PERSISTENT_3", "SSD", None),
            "'PERSISTENT_3' is not in the catalog - did you mean 'PERSISTENT_1' or 'PERSISTENT_2'?",
        ),
        (("SCRATCH_1", "SSD", None), "'SCRATCH_1' is not in the catalog - did you mean 'SCRATCH_2'?"),
        (("SCRATCH_2", "SSD", 200), "'SCRATCH_2 SSD 200' is not in the catalog - there is SCRATCH_2"),
        (
            ("PERSISTENT_2", "SSD", None),
            "'PERSISTENT_2 SSD' is not in the catalog - there are PERSISTENT_2 SSD 125, PERSISTENT_2 SSD 250,"
            " PERSISTENT_2 SSD 500, PERSISTENT_2 SSD 1000",
        ),
    ],
)
def test_a_deployment_that_does_not_exist_is_answered_with(chosen: tuple[str, str, int | None], message: str) -> None:
    deployment_type, storage, throughput = chosen
    with pytest.raises(UnknownName) as caught:
        find_lustre_deployment(deployment_type, storage=storage, throughput_mbps_per_tib=throughput)
    assert str(caught.value) == message


def test_metadata_iops_can_be_provisioned_in_these_numbers() -> None:
    provisioned = metadata_iops().provisioned
    assert (provisioned[:6], provisioned[-1], len(provisioned)) == ((1500, 3000, 6000, 12000, 24000, 36000), 192000, 19)


@pytest.mark.parametrize(
    ("size_gib", "iops"),
    [
        (1200, 1500),
        (2400, 3000),
        (4800, 6000),
        (9600, 6000),
        (12000, 12000),
        (45600, 12000),
        (48000, 24000),
        (69600, 24000),
        (72000, 36000),
        (1_000_000, 192000),
    ],
)
def test_a_size_includes_metadata_iops(size_gib: int, iops: int) -> None:
    assert metadata_iops().included(size_gib) == iops
