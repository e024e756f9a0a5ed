"""Rates, sizes and costs of storage compared with AWS's figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from training_shapes import LLAMA3_405B

from corral.catalog.accelerators.accelerators import accelerators
from corral.catalog.aws.instance_types import instance_types
from corral.catalog.aws.lustre import LustreDeployment, find_lustre_deployment, lustre_choices
from corral.catalog.aws.storage import find_checkpoint_state, find_host_copy, host_copies
from corral.catalog.loader.suggestions import UnknownName
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.data_loading import read_bytes_per_token, text_bytes, tokenizer_hours, tokenizer_servers
from corral.forecast.lustre_size import legal_size, lustre_for
from corral.forecast.storage_speed import (
    GIB,
    Bottleneck,
    Direction,
    Interface,
    LustreChoice,
    StorageClients,
    efs_rate,
    interface_of,
    lustre_rate,
)
from corral.spec.models.run import LoaderSpec

MB, GB, TIB = 10**6, 10**9, 2**40
MANY = StorageClients(nodes=2048, network_gbps=3200, interface=Interface.EFA)
LLAMA3_405B_BYTES = LLAMA3_405B.parameters * 14


def persistent(throughput: int) -> LustreDeployment:
    return find_lustre_deployment("PERSISTENT_2", throughput_mbps_per_tib=throughput)


def test_unknown_state_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="did you mean 'mixed-adam'"):
        find_checkpoint_state("mixed-adm")


def test_machines_without_a_known_copy_to_the_host_have_none() -> None:
    assert find_host_copy("trn1") is None


def test_families_of_copies_are_in_the_catalog() -> None:
    families = {machine.family for machine in instance_types().values()}
    assert {family for copy in host_copies() for family in copy.families} <= families


@pytest.mark.parametrize(
    ("way", "in_memory", "mb_per_s", "limit"),
    [
        (Direction.READ, False, 200 * 1200 / 1024, Bottleneck.DISKS),
        (Direction.WRITE, False, 100 * 1200 / 1024, Bottleneck.DISKS),
        (Direction.READ, True, 200 * 1200 / 1024, Bottleneck.SERVERS),
    ],
)
def test_rate_of_the_smallest_scratch(way: Direction, in_memory: bool, mb_per_s: float, limit: Bottleneck) -> None:
    system = LustreChoice(deployment=find_lustre_deployment("SCRATCH_2"), size_gib=1200)
    rate = lustre_rate(system, StorageClients(nodes=2, network_gbps=100), way, in_memory=in_memory)
    assert (rate.bytes_per_s / MB, rate.limit) == (pytest.approx(mb_per_s), limit)


def test_files_in_server_memory_are_read_at_the_network_rate() -> None:
    system = LustreChoice(deployment=persistent(125), size_gib=10_240 - 640)  # 4 servers of 2400 GiB
    rate = lustre_rate(system, StorageClients(nodes=100, network_gbps=100), Direction.READ, in_memory=True)
    assert (rate.bytes_per_s / MB, rate.limit) == (pytest.approx(320 * 9.375), Bottleneck.SERVERS)


@pytest.mark.parametrize(
    ("interface", "efa", "gbps"),
    [
        (Interface.PLAIN, False, 100),
        (Interface.EFA, False, 100),
        (Interface.EFA, True, 700),
        (Interface.PLAIN, True, 50),  # ten servers of 9,600 GiB, 5 Gbit/s each
    ],
)
def test_maximum_rate_of_one_node_on_96_000_gib(interface: Interface, efa: bool, gbps: float) -> None:
    deployment = persistent(500 if efa else 1000)
    system = LustreChoice(deployment=deployment, size_gib=96_000, efa=efa)
    rate = lustre_rate(system, StorageClients(nodes=1, network_gbps=3200, interface=interface), Direction.WRITE)
    assert rate.bytes_per_s == pytest.approx(min(gbps / 8 * GB, deployment.disk_write_mbps_per_tib * 93.75 * MB))


def test_servers_with_slow_network_need_a_larger_file_system() -> None:
    slow = replace(persistent(1000), network_baseline_mbps_per_tib=100)
    found = lustre_for(60 * GB, 60, slow, MANY)
    assert (found.system.size_gib, found.rate.limit) == (12_000, Bottleneck.SERVERS)  # 10 TiB are 10,240 GiB


def test_a_small_network_is_the_limit_of_its_nodes() -> None:
    system = LustreChoice(deployment=persistent(1000), size_gib=96_000)
    rate = lustre_rate(system, StorageClients(nodes=2, network_gbps=10), Direction.WRITE)
    assert (rate.bytes_per_s, rate.limit) == (pytest.approx(2.5 * GB), Bottleneck.NODES)


@pytest.mark.parametrize(
    ("name", "interface"),
    [
        ("p5.48xlarge", Interface.EFA),
        ("p4d.24xlarge", Interface.PLAIN),
        ("trn2.48xlarge", Interface.PLAIN),
        ("p6-b300.48xlarge", Interface.EFA),
        ("g5.xlarge", Interface.PLAIN),
    ],
)
def test_interface_to_a_file_system_with_efa(name: str, interface: Interface) -> None:
    machine = instance_types()[name]
    assert interface_of(machine.family, machine.efa_maximum) is interface


def test_llama_3_405b_in_a_minute_needs_98_400_gib() -> None:
    found = lustre_for(LLAMA3_405B_BYTES, 60, persistent(1000), MANY)
    assert (found.system.size_gib, round(found.write_s, 1), found.meets_target) == (98_400, 59.1, True)


def test_size_with_efa_is_a_multiple_of_4800() -> None:
    assert lustre_for(LLAMA3_405B_BYTES, 60, persistent(1000), MANY, efa=True).system.size_gib == 100_800


def test_one_node_without_efa_needs_eighteen_servers_for_90_gbps() -> None:
    found = lustre_for(112 * GB, 10, persistent(1000), StorageClients(nodes=1, network_gbps=3200))
    assert (found.system.servers, found.rate.limit, found.meets_target) == (18, Bottleneck.NODES, True)


def test_no_size_is_enough_if_nodes_are_the_limit() -> None:
    found = lustre_for(112 * GB, 5, persistent(1000), StorageClients(nodes=1, network_gbps=3200))
    assert (found.meets_target, found.rate.limit, found.write_s) == (False, Bottleneck.NODES, pytest.approx(8.96))


def test_stored_data_may_need_more_than_the_rate() -> None:
    found = lustre_for(GB, 60, persistent(125), MANY, stored_bytes=5000 * GIB)
    assert found.system.size_gib == 7200


def test_small_checkpoint_needs_the_smallest_size() -> None:
    assert lustre_for(GB, 60, persistent(125), MANY).system.size_gib == 1200


def test_efa_on_a_deployment_without_it_is_an_error() -> None:
    with pytest.raises(ValueError, match="SCRATCH_2 has no EFA"):
        lustre_for(GB, 60, find_lustre_deployment("SCRATCH_2"), MANY, efa=True)


@settings(deadline=None)
@given(
    st.sampled_from(lustre_choices()),
    st.floats(1e9, 1e14),
    st.floats(1, 3600),
    st.integers(1, 4096),
    st.sampled_from([10.0, 100.0, 3200.0]),
)
def test_size_is_valid_and_the_smallest_that_is_enough(
    deployment: LustreDeployment, size_bytes: float, within_s: float, nodes: int, network_gbps: float
) -> None:
    clients = StorageClients(nodes=nodes, network_gbps=network_gbps)
    found = lustre_for(size_bytes, within_s, deployment, clients)
    size_gib = found.system.size_gib
    smaller = [size for size in deployment.nearest_sizes(size_gib) if size < size_gib]
    slower = [
        lustre_rate(LustreChoice(deployment=deployment, size_gib=size), clients, Direction.WRITE) for size in smaller
    ]
    enough = [rate.seconds(size_bytes) <= within_s for rate in slower]
    assert (deployment.allows(size_gib), found.meets_target or found.rate.limit is Bottleneck.NODES, any(enough)) == (
        True,
        True,
        False,
    )


@pytest.mark.parametrize(("requested", "legal"), [(1, 1200), (1200, 1200), (1201, 2400), (2401, 4800)])
def test_sizes_are_rounded_up_to_what_aws_offers(requested: int, legal: int) -> None:
    assert legal_size(requested, persistent(125)) == legal


@pytest.mark.parametrize(
    ("region", "nodes", "way", "mib_per_s", "limit"),
    [
        ("us-east-1", 2, Direction.WRITE, 3000, Bottleneck.NODES),
        ("us-east-1", 16, Direction.WRITE, 5 * 1024, Bottleneck.SERVICE),
        ("us-east-1", 100, Direction.READ, 60 * 1024, Bottleneck.SERVICE),
        ("sa-east-1", 16, Direction.WRITE, 1024, Bottleneck.SERVICE),
        ("sa-east-1", 16, Direction.READ, 10 * 1024, Bottleneck.SERVICE),
    ],
)
def test_rate_of_efs(region: str, nodes: int, way: Direction, mib_per_s: float, limit: Bottleneck) -> None:
    rate = efs_rate(region, StorageClients(nodes=nodes, network_gbps=100), way)
    assert (rate.bytes_per_s / 2**20, rate.limit) == (pytest.approx(mib_per_s), limit)


def test_a_small_network_is_the_limit_of_efs() -> None:
    rate = efs_rate("us-east-1", StorageClients(nodes=2, network_gbps=8), Direction.READ)
    assert (rate.bytes_per_s, rate.limit) == (2 * GB, Bottleneck.NODES)


def test_98_400_gib_at_60_cents_cost_59_040_usd_a_month() -> None:
    price = catalog_prices("us-east-1").service(persistent(1000).price_name)
    assert price is not None and round(98_400 * price.usd, 2) == 59_040


def test_16384_gpus_at_150_tokens_read_ten_mb_a_second() -> None:
    assert 16_384 * 150 * read_bytes_per_token(None, 128_256) / MB == pytest.approx(9.8, abs=0.05)


@pytest.mark.parametrize(("vocabulary", "size"), [(50_257, 2), (65_536, 2), (65_537, 4)])
def test_token_has_two_bytes_if_the_vocabulary_fits(vocabulary: int, size: int) -> None:
    assert read_bytes_per_token(None, vocabulary) == size


def test_run_file_overrides_bytes_per_token() -> None:
    assert read_bytes_per_token(LoaderSpec(bytes_per_token=3.5), 128_256) == 3.5


def test_run_that_tokenizes_reads_text() -> None:
    assert read_bytes_per_token(LoaderSpec(tokenize="while-training"), 50_257) == 4


def test_a_trillion_tokens_are_4_tb_of_text_and_22_hours_of_a_server() -> None:
    # 4e12 bytes at 50 MB/s: 80,000 s.
    assert (text_bytes(1e12), tokenizer_hours(1e12)) == (4e12, pytest.approx(22.2, abs=0.03))


def test_one_server_tokenizes_12_5_million_tokens_a_second() -> None:
    assert tokenizer_servers(12.5e6) == pytest.approx(1)


def test_accelerators_with_a_copy_to_the_host_are_known() -> None:
    rented = {family for model in accelerators().values() for family in model.on_aws}
    assert {"p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300"} <= rented & {
        family for copy in host_copies() for family in copy.families
    }
