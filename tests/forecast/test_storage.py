"""Sizes of checkpoints against published ones; rates, sizes and costs of storage against AWS's figures, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from training_shapes import LLAMA3_405B

from corral.catalog.accelerators import accelerators
from corral.catalog.instances import instance_types
from corral.catalog.lustre import LustreDeployment, find_lustre_deployment, lustre_choices
from corral.catalog.names import UnknownName
from corral.catalog.storage import find_checkpoint_state, find_host_copy, host_copies
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.checkpoints import CheckpointSize, asynchronous, host_copy_s, synchronous
from corral.forecast.loading import read_bytes_per_token, text_bytes, tokenizer_hours, tokenizer_servers
from corral.forecast.lustre_size import legal_size, lustre_for
from corral.forecast.storage import (
    GIB,
    Clients,
    Interface,
    Limit,
    LustreChoice,
    Rate,
    Way,
    efs_month,
    efs_rate,
    interface_of,
    lustre_month,
    lustre_rate,
    s3_month,
    s3_rate,
)
from corral.spec.run import LoaderSpec
from worked_example import RoundPrices

MB, GB, TIB = 10**6, 10**9, 2**40
PRICES = catalogue_prices("us-east-1")
MANY = Clients(nodes=2048, network_gbps=3200, interface=Interface.EFA)
LLAMA3_405B_BYTES = LLAMA3_405B.parameters * 14


def persistent(throughput: int) -> LustreDeployment:
    return find_lustre_deployment("PERSISTENT_2", throughput_mbps_per_tib=throughput)


def size_of(parameters: float, state: str) -> float:
    return CheckpointSize(parameters=parameters, state=find_checkpoint_state(state)).size_bytes


def test_a_checkpoint_of_bloom_has_the_published_2_3_tib() -> None:
    assert size_of(176.25e9, "mixed-adam") / TIB == pytest.approx(2.3, rel=0.03)


def test_the_weights_of_bloom_have_the_published_329_gib() -> None:
    assert size_of(176.25e9, "weights") / GIB == pytest.approx(329, rel=0.003)


def test_a_checkpoint_of_mt_nlg_takes_the_published_42_minutes_at_20_gbps() -> None:
    rate = Rate(bytes_per_s=20e9 / 8, limit=Limit.NODES)
    assert rate.seconds(size_of(530e9, "optimizer-only")) / 60 == pytest.approx(42, rel=0.01)


def test_each_gpu_of_llama_3_has_347_mb_of_a_checkpoint() -> None:
    size = CheckpointSize(parameters=LLAMA3_405B.parameters, state=find_checkpoint_state("mixed-adam"))
    assert round(size.bytes_per_writer(16_384) / MB) == 347


def test_what_is_not_sharded_has_one_writer() -> None:
    size = CheckpointSize(parameters=8e9, state=find_checkpoint_state("mixed-adam"))
    assert size.bytes_per_writer(1) == 112 * GB


def test_each_copy_of_the_model_reads_all_of_it() -> None:
    size = CheckpointSize(parameters=8e9, state=find_checkpoint_state("weights"), copies=4)
    assert (size.size_bytes, size.restored_bytes) == (16 * GB, 64 * GB)


def test_an_unknown_state_names_those_that_there_are() -> None:
    with pytest.raises(UnknownName, match="did you mean 'mixed-adam'"):
        find_checkpoint_state("mixed-adm")


def test_an_asynchronous_checkpoint_stalls_for_the_copy_to_the_host_alone() -> None:
    copy = find_host_copy("p5")
    assert copy is not None
    saved = asynchronous(host_copy_s(14 * GB, copy), 100)
    assert (saved.stall_s, saved.durable_s, saved.behind_s) == (
        pytest.approx(0.28),
        pytest.approx(100.28),
        pytest.approx(100),
    )


def test_a_synchronous_checkpoint_stalls_until_it_is_written() -> None:
    assert (synchronous(100).stall_s, synchronous(100).behind_s) == (100, 0)


def test_machines_without_a_known_copy_to_the_host_have_none() -> None:
    assert find_host_copy("trn1") is None


def test_families_of_copies_are_in_the_catalogue() -> None:
    families = {machine.family for machine in instance_types().values()}
    assert {family for copy in host_copies() for family in copy.families} <= families


@pytest.mark.parametrize(
    ("way", "in_memory", "mb_per_s", "limit"),
    [
        (Way.READ, False, 200 * 1200 / 1024, Limit.DISKS),
        (Way.WRITE, False, 100 * 1200 / 1024, Limit.DISKS),
        (Way.READ, True, 200 * 1200 / 1024, Limit.SERVERS),
    ],
)
def test_the_smallest_scratch_gives(way: Way, in_memory: bool, mb_per_s: float, limit: Limit) -> None:
    system = LustreChoice(deployment=find_lustre_deployment("SCRATCH_2"), size_gib=1200)
    rate = lustre_rate(system, Clients(nodes=2, network_gbps=100), way, in_memory=in_memory)
    assert (rate.bytes_per_s / MB, rate.limit) == (pytest.approx(mb_per_s), limit)


def test_what_is_in_the_servers_memory_is_read_at_their_network_s_rate() -> None:
    system = LustreChoice(deployment=persistent(125), size_gib=10_240 - 640)  # 4 servers of 2400 GiB
    rate = lustre_rate(system, Clients(nodes=100, network_gbps=100), Way.READ, in_memory=True)
    assert (rate.bytes_per_s / MB, rate.limit) == (pytest.approx(320 * 9.375), Limit.SERVERS)


@pytest.mark.parametrize(
    ("interface", "efa", "gbps"),
    [
        (Interface.PLAIN, False, 100),
        (Interface.EFA, False, 100),
        (Interface.EFA, True, 700),
        (Interface.GDS, True, 1200),
        (Interface.PLAIN, True, 50),  # ten servers of 9,600 GiB, 5 Gbit/s each
    ],
)
def test_one_node_has_of_96_000_gib_at_most(interface: Interface, efa: bool, gbps: float) -> None:
    deployment = persistent(500 if efa else 1000)
    system = LustreChoice(deployment=deployment, size_gib=96_000, efa=efa)
    rate = lustre_rate(system, Clients(nodes=1, network_gbps=3200, interface=interface), Way.WRITE)
    assert rate.bytes_per_s == pytest.approx(min(gbps / 8 * GB, deployment.disk_write_mbps_per_tib * 93.75 * MB))


def test_servers_with_less_network_than_disks_want_a_larger_file_system() -> None:
    slow = replace(persistent(1000), network_baseline_mbps_per_tib=100)
    found = lustre_for(60 * GB, 60, slow, MANY)
    assert (found.system.size_gib, found.rate.limit) == (12_000, Limit.SERVERS)  # 10 TiB are 10,240 GiB


def test_a_small_network_is_the_limit_of_its_nodes() -> None:
    system = LustreChoice(deployment=persistent(1000), size_gib=96_000)
    rate = lustre_rate(system, Clients(nodes=2, network_gbps=10), Way.WRITE)
    assert (rate.bytes_per_s, rate.limit) == (pytest.approx(2.5 * GB), Limit.NODES)


@pytest.mark.parametrize(
    ("name", "gpu_direct", "interface"),
    [
        ("p5.48xlarge", True, Interface.GDS),
        ("p5.48xlarge", False, Interface.EFA),
        ("p4d.24xlarge", True, Interface.EFA),
        ("trn2.48xlarge", False, Interface.PLAIN),
        ("g5.xlarge", True, Interface.PLAIN),
    ],
)
def test_machines_reach_a_file_system_with_efa_by(name: str, gpu_direct: bool, interface: Interface) -> None:
    machine = instance_types()[name]
    assert interface_of(machine.family, machine.efa_maximum, gpu_direct=gpu_direct) is interface


def test_llama_3_s_405b_in_a_minute_wants_95_tib_which_aws_offers_as_98_400_gib() -> None:
    found = lustre_for(LLAMA3_405B_BYTES, 60, persistent(1000), MANY)
    assert (found.system.size_gib, round(found.write_s, 1), found.within_wish) == (98_400, 59.1, True)


def test_with_efa_it_is_the_next_multiple_of_4800() -> None:
    assert lustre_for(LLAMA3_405B_BYTES, 60, persistent(1000), MANY, efa=True).system.size_gib == 100_800


def test_one_node_without_efa_needs_eighteen_servers_for_90_gbps() -> None:
    found = lustre_for(112 * GB, 10, persistent(1000), Clients(nodes=1, network_gbps=3200))
    assert (found.system.servers, found.rate.limit, found.within_wish) == (18, Limit.NODES, True)


def test_no_size_is_enough_for_nodes_that_cannot_give_more() -> None:
    found = lustre_for(112 * GB, 5, persistent(1000), Clients(nodes=1, network_gbps=3200))
    assert (found.within_wish, found.rate.limit, found.write_s) == (False, Limit.NODES, pytest.approx(8.96))


def test_what_is_stored_may_want_more_than_the_rate() -> None:
    found = lustre_for(GB, 60, persistent(125), MANY, stored_bytes=5000 * GIB)
    assert found.system.size_gib == 7200


def test_a_little_wants_the_smallest() -> None:
    assert lustre_for(GB, 60, persistent(125), MANY).system.size_gib == 1200


def test_efa_that_a_deployment_lacks_is_refused() -> None:
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
def test_a_size_is_legal_and_the_smallest_that_is_enough(
    deployment: LustreDeployment, size_bytes: float, within_s: float, nodes: int, network_gbps: float
) -> None:
    clients = Clients(nodes=nodes, network_gbps=network_gbps)
    found = lustre_for(size_bytes, within_s, deployment, clients)
    size_gib = found.system.size_gib
    smaller = [size for size in deployment.nearest_sizes(size_gib) if size < size_gib]
    slower = [lustre_rate(LustreChoice(deployment=deployment, size_gib=size), clients, Way.WRITE) for size in smaller]
    enough = [rate.seconds(size_bytes) <= within_s for rate in slower]
    assert (deployment.allows(size_gib), found.within_wish or found.rate.limit is Limit.NODES, any(enough)) == (
        True,
        True,
        False,
    )


@pytest.mark.parametrize(("wished", "legal"), [(1, 1200), (1200, 1200), (1201, 2400), (2401, 4800)])
def test_sizes_are_rounded_up_to_what_aws_offers(wished: int, legal: int) -> None:
    assert legal_size(wished, persistent(125)) == legal


@pytest.mark.parametrize(
    ("region", "nodes", "way", "mib_per_s", "limit"),
    [
        ("us-east-1", 2, Way.WRITE, 3000, Limit.NODES),
        ("us-east-1", 16, Way.WRITE, 5 * 1024, Limit.SERVICE),
        ("us-east-1", 100, Way.READ, 60 * 1024, Limit.SERVICE),
        ("sa-east-1", 16, Way.WRITE, 1024, Limit.SERVICE),
        ("sa-east-1", 16, Way.READ, 10 * 1024, Limit.SERVICE),
    ],
)
def test_efs_gives(region: str, nodes: int, way: Way, mib_per_s: float, limit: Limit) -> None:
    rate = efs_rate(region, Clients(nodes=nodes, network_gbps=100), way)
    assert (rate.bytes_per_s / 2**20, rate.limit) == (pytest.approx(mib_per_s), limit)


@pytest.mark.parametrize(
    ("nodes", "connections", "way", "mb_per_s", "limit"),
    [
        (16, 10, Way.WRITE, 16 * 850, Limit.NODES),
        (1, 1000, Way.WRITE, 12_500, Limit.NODES),  # 100 Gbit/s, however wide the machine's own network
        (160, 1000, Way.WRITE, 3500 * 8, Limit.SERVICE),
        (160, 1000, Way.READ, 5500 * 8, Limit.SERVICE),
    ],
)
def test_s3_gives(nodes: int, connections: int, way: Way, mb_per_s: float, limit: Limit) -> None:
    rate = s3_rate(Clients(nodes=nodes, network_gbps=3200), way, connections=connections, part_bytes=8 * MB)
    assert (rate.bytes_per_s / MB, rate.limit) == (pytest.approx(mb_per_s), limit)


def test_a_small_network_is_the_limit_of_efs() -> None:
    rate = efs_rate("us-east-1", Clients(nodes=2, network_gbps=8), Way.READ)
    assert (rate.bytes_per_s, rate.limit) == (2 * GB, Limit.NODES)


def test_two_prefixes_of_s3_take_twice_the_requests() -> None:
    many = Clients(nodes=1000, network_gbps=100)
    rate = s3_rate(many, Way.WRITE, connections=1000, part_bytes=8 * MB, prefixes=2)
    assert rate.bytes_per_s == pytest.approx(56 * GB)


def test_98_400_gib_at_60_cents_cost_59_040_usd_a_month() -> None:
    month = lustre_month(LustreChoice(deployment=persistent(1000), size_gib=98_400), PRICES).usd_per_month
    assert month is not None and round(month.high, 2) == 59_040


@pytest.mark.parametrize(("what", "usd"), [(efs_month, 300), (s3_month, 23)])
def test_a_thousand_gib_cost_a_month(what: object, usd: float) -> None:
    month = what(1000 * GIB, PRICES).usd_per_month  # type: ignore[operator]
    assert month is not None and round(month.high, 2) == usd


def test_storage_without_a_price_has_none() -> None:
    deployment = find_lustre_deployment("PERSISTENT_1", throughput_mbps_per_tib=50)
    assert lustre_month(LustreChoice(deployment=deployment, size_gib=1200), RoundPrices()).usd_per_hour is None


def test_16384_gpus_at_150_tokens_read_ten_mb_a_second() -> None:
    assert 16_384 * 150 * read_bytes_per_token(None, 128_256) / MB == pytest.approx(9.8, abs=0.05)


@pytest.mark.parametrize(("vocabulary", "size"), [(50_257, 2), (65_536, 2), (65_537, 4)])
def test_a_token_takes_two_bytes_where_the_vocabulary_fits(vocabulary: int, size: int) -> None:
    assert read_bytes_per_token(None, vocabulary) == size


def test_what_the_run_file_says_of_a_token_is_taken() -> None:
    assert read_bytes_per_token(LoaderSpec(bytes_per_token=3.5), 128_256) == 3.5


def test_a_run_that_makes_tokens_meanwhile_reads_text() -> None:
    assert read_bytes_per_token(LoaderSpec(tokenize="while-training"), 50_257) == 4


def test_a_trillion_tokens_are_4_tb_of_text_and_22_hours_of_a_server() -> None:
    # 4e12 bytes at 50 MB/s: 80,000 s.
    assert (text_bytes(1e12), tokenizer_hours(1e12)) == (4e12, pytest.approx(22.2, abs=0.03))


def test_one_server_makes_tokens_for_12_5_million_a_second() -> None:
    assert tokenizer_servers(12.5e6) == pytest.approx(1)


def test_accelerators_with_a_copy_to_the_host_are_known() -> None:
    rented = {family for model in accelerators().values() for family in model.on_aws}
    assert {"p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300"} <= rented & {
        family for copy in host_copies() for family in copy.families
    }
