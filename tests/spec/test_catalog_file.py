"""A project's own catalog.toml: what it adds, what it replaces, and every mistake in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.catalog.aws.instance_types import Accelerator, NetworkCard, Vendor, instance_types
from corral.catalog.aws.prices import CapacityBlockPrice, InstancePrice, Trust, instance_price
from corral.catalog.loader.data_files import read_toml
from corral.catalog.project_catalog import shipped_catalog
from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.catalog_file import parse_catalog, project_catalog

OWN = """
[instances."p9.48xlarge"]
architecture = "x86_64"
vcpus = 192
cores = 96
threads_per_core = 2
sockets = 2
memory_mib = 4194304
accelerator = { vendor = "nvidia", product = "R 100", name = "r100", count = 8, memory_mib = 294912 }
network_cards = [
  { first = 0, last = 0, interface_types = ["interface"], maximum_interfaces = 4 },
  { first = 1, last = 2, interface_types = ["interface", "efa", "efa-only"], maximum_interfaces = 2 },
]
network_gbps = 800
efa_maximum = 2
markets = ["on-demand", "capacity-block"]

[prices."p9.48xlarge".us-east-1]
on_demand = 200
capacity_block = 120.5
as_of = 2026-11-21
source = "our contract"
"""
ROW = OWN.partition("\n[prices")[0]


def mistakes(text: str) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        parse_catalog(text)
    return str(caught.value).splitlines()


def test_a_project_without_a_file_has_what_is_shipped(tmp_path: Path) -> None:
    assert project_catalog(tmp_path) is shipped_catalog()


def test_an_own_type_stands_among_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text(OWN)
    assert list(project_catalog(tmp_path).instance_types) == sorted([*instance_types(), "p9.48xlarge"])


def test_an_own_type_is_what_its_row_states() -> None:
    own = parse_catalog(OWN).instance_type("p9.48xlarge")
    assert (own.family, own.network_baseline_gbps, own.nvme_count, own.ebs_gbps, own.source) == (
        "p9",
        800.0,
        0,
        None,
        "catalog.toml",
    )


def test_an_own_accelerator_may_have_a_name_for_slurm() -> None:
    assert parse_catalog(OWN).instance_type("p9.48xlarge").accelerator == Accelerator(
        name="r100", product="R 100", vendor=Vendor.NVIDIA, count=8, memory_mib=294912, link=None, link_gb_per_s=0
    )


def test_equal_cards_of_an_own_type_are_spread_out() -> None:
    cards = parse_catalog(OWN).instance_type("p9.48xlarge").network_cards
    efa = ("interface", "efa", "efa-only")
    assert cards == (
        NetworkCard(index=0, interface_types=("interface",), maximum_interfaces=4),
        NetworkCard(index=1, interface_types=efa, maximum_interfaces=2),
        NetworkCard(index=2, interface_types=efa, maximum_interfaces=2),
    )


def test_an_own_row_replaces_the_shipped_one_and_is_named() -> None:
    catalog = parse_catalog(ROW.replace("p9.48xlarge", "p5.48xlarge"))
    assert (catalog.replaced, catalog.instance_type("p5.48xlarge").network_gbps) == (("p5.48xlarge",), 800.0)


def test_the_shipped_types_stay_as_they_are() -> None:
    parse_catalog(ROW.replace("p9.48xlarge", "p5.48xlarge"))
    assert instance_types()["p5.48xlarge"].network_gbps == 3200.0


def test_an_own_price_is_found_and_trusted_as_own() -> None:
    assert parse_catalog(OWN).instance_price("p9.48xlarge", "us-east-1") == InstancePrice(
        on_demand_usd_per_hour=200.0,
        spot_min_usd_per_hour=None,
        spot_max_usd_per_hour=None,
        as_of="2026-11-21",
        source="our contract",
        trust=Trust.USER,
    )


def test_an_own_capacity_block_price_is_found() -> None:
    assert parse_catalog(OWN).capacity_block_price("p9.48xlarge", "us-east-1") == CapacityBlockPrice(
        usd_per_hour=120.5, as_of="2026-11-21", source="our contract", trust=Trust.USER
    )


def test_other_prices_are_the_shipped_ones() -> None:
    own = parse_catalog(OWN)
    assert own.instance_price("p5.48xlarge", "us-east-1") == instance_price("p5.48xlarge", "us-east-1")


def test_an_own_price_may_be_of_a_shipped_type() -> None:
    own = parse_catalog('[prices."p5.48xlarge".us-east-1]\non_demand = 30\nas_of = 2026-11-21\n')
    price = own.instance_price("p5.48xlarge", "us-east-1")
    assert price and (price.on_demand_usd_per_hour, price.spot_min_usd_per_hour) == (30.0, None)


def test_an_own_price_may_be_that_of_spot_alone() -> None:
    spot = "spot_min = 10\nspot_max = 20\nas_of = 2026-11-21\n"
    price = parse_catalog(f'[prices."p5.48xlarge".us-east-1]\n{spot}').instance_price("p5.48xlarge", "us-east-1")
    assert price and (price.spot_min_usd_per_hour, price.spot_max_usd_per_hour) == (10.0, 20.0)


def test_a_price_of_capacity_blocks_alone_leaves_the_others() -> None:
    own = parse_catalog('[prices."p5.48xlarge".us-east-1]\ncapacity_block = 30\nas_of = 2026-11-21\n')
    price = own.instance_price("p5.48xlarge", "us-east-1")
    assert price and price.on_demand_usd_per_hour == 55.04


def test_an_unknown_type_is_answered_with_own_ones_too() -> None:
    with pytest.raises(Exception, match=r"'p9.48xl' is not in the catalog - did you mean 'p9.48xlarge'\?"):
        parse_catalog(OWN).instance_type("p9.48xl")


def test_every_shipped_row_can_be_copied() -> None:
    rows = read_toml("instances.toml")["instances"]
    texts = [_as_toml(name, row) for name, row in rows.items()]
    assert parse_catalog("".join(texts)).replaced == tuple(instance_types())


def _as_toml(name: str, row: dict[str, object]) -> str:
    return f'[instances."{name}"]\n' + "".join(f"{key} = {_value(value)}\n" for key, value in row.items())


def _value(value: object) -> str:
    match value:
        case dict():
            return "{ " + ", ".join(f"{key} = {_value(held)}" for key, held in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case str():
            return f'"{value}"'
        case _:
            return str(value)


def test_every_mistake_is_reported_at_once_in_the_order_of_the_file() -> None:
    wrong = ROW.replace("cores = 96", 'cores = "96"').replace("vcpus", "vcpu").replace('"nvidia"', '"nvidea"')
    wrong = wrong.replace('"capacity-block"]', '"on-demand"]')
    assert mistakes(wrong) == [
        "catalog.toml: instances.\"p9.48xlarge\".vcpu: unknown field - did you mean 'vcpus'?",
        "catalog.toml: instances.\"p9.48xlarge\".cores: expected a whole number, found '96'",
        "catalog.toml: instances.\"p9.48xlarge\".accelerator.vendor: invalid value 'nvidea'; did you mean 'nvidia'?",
        "catalog.toml: instances.\"p9.48xlarge\".markets[1]: 'on-demand' is listed twice - keep one",
        'catalog.toml: instances."p9.48xlarge".vcpus: is missing - cores times threads_per_core',
    ]


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ("vcpus = 192", "vcpus = 96", "vcpus: 96 is not cores 96 x threads_per_core 2"),
        ("sockets = 2", "sockets = 5", "sockets: 96 cores cannot be divided among 5 sockets"),
        ("sockets = 2", "sockets = 0", "sockets: 0 is too small - use 1 or more"),
        ("sockets = 2", "sockets = true", "sockets: expected a whole number, found true"),
        ("efa_maximum = 2", "efa_maximum = 3", "efa_maximum: 3 does not fit 2 network cards with EFA"),
        ("efa_maximum = 2", "efa_maximum = 0", "efa_maximum: 0 does not fit 2 network cards with EFA"),
        ("first = 1,", "first = 2,", "network_cards[1]: has cards 2 to 2 - list the cards in order, next card 1"),
        ("last = 2,", "last = 256,", "network_cards[1].last: 256 is too large - use 255 or less"),
        (
            '= ["interface"], maximum_interfaces = 4',
            '= ["interface", "efa-only"], maximum_interfaces = 1',
            "network_cards[0].maximum_interfaces: 1 is too few - card 0 carries IP and EFA-only",
        ),
        (
            '= ["interface"],',
            '= ["efa"],',
            "network_cards[0].interface_types: lacks 'interface' - card 0 always carries IP",
        ),
        (
            '["interface"],',
            '["ena"],',
            "network_cards[0].interface_types[0]: invalid value 'ena'; did you mean 'efa'?",
        ),
        ("network_gbps = 800", "network_gbps = 0", "network_gbps: 0 is too small - use more than 0"),
        ("network_gbps = 800", "network_gbps = inf", "network_gbps: expected a number, found inf"),
        (
            "network_gbps = 800",
            "network_gbps = 800\nnetwork_baseline_gbps = 900",
            "network_baseline_gbps: 900 is more than network_gbps 800",
        ),
        (
            "network_gbps = 800",
            "network_gbps = 800\nebs_baseline_gbps = 9",
            "ebs_gbps: is missing - ebs_baseline_gbps requires it",
        ),
        ('"capacity-block"]', '"on-demand"]', "markets[1]: 'on-demand' is listed twice - keep one"),
        (
            '"capacity-block"]',
            '"reserved"]',
            "markets[1]: invalid value 'reserved'; expected one of on-demand, spot, capacity-block",
        ),
        ('markets = ["on-demand", "capacity-block"]', "markets = []", "markets: is empty - add at least 1"),
        ('"x86_64"', '"x86"', "architecture: invalid value 'x86'; did you mean 'x86_64'?"),
        ('name = "r100"', 'name = "r:100"', "accelerator.name: invalid value 'r:100'; write it like h100"),
        (', name = "r100"', "", "accelerator.name: is missing - Slurm does not accept the name 'r 100'"),
        ("count = 8", 'count = 8, link = "NVLink 6"', "accelerator.link_gb_per_s: is missing - link requires it"),
        ("memory_mib = 4194304", "memory_mib = 4194304\nnvme = 8", "nvme: expected fields (count, gb_each), found 8"),
    ],
)
def test_a_row_that_is_wrong_is_answered_with(right: str, wrong: str, expected: str) -> None:
    assert mistakes(ROW.replace(right, wrong)) == [f'catalog.toml: instances."p9.48xlarge".{expected}']


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        ("as_of = 2026-11-21", "us-east-1: has no price - set one of on_demand, spot_min, spot_max, capacity_block"),
        ("on_demand = 5", "us-east-1.as_of: is missing - date of these prices"),
        (
            'on_demand = 5\nas_of = "today"',
            "us-east-1.as_of: 'today' is not a date - write it like 2026-11-21",
        ),
        (
            "spot_min = 5\nas_of = 2026-11-21",
            "us-east-1.spot_max: is missing - spot_min requires it; both may be equal",
        ),
        ("spot_min = 5\nspot_max = 4\nas_of = 2026-11-21", "us-east-1.spot_min: 5 is more than spot_max 4"),
        ("on_demand = -5\nas_of = 2026-11-21", "us-east-1.on_demand: -5 is too small - use more than 0"),
    ],
)
def test_a_price_that_is_wrong_is_answered_with(price: str, expected: str) -> None:
    assert mistakes(f'[prices."p5.48xlarge".us-east-1]\n{price}\n') == [
        f'catalog.toml: prices."p5.48xlarge".{expected}'
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[stuff]", "stuff: unknown field - expected one of instances, prices"),
        ("[instance.p]", "instance: unknown field - did you mean 'instances'?"),
        ("instances = 5", "instances: expected fields, found 5"),
        ("[prices.x]", "prices.x: is not in the catalog - add it under instances"),
        (
            '[prices."p5.48xlarge".us-esat-1]\non_demand = 5\nas_of = 2026-11-21',
            "prices.\"p5.48xlarge\".us-esat-1: invalid value 'us-esat-1'; did you mean 'us-east-1'?",
        ),
        ("[instances", "is not TOML: Expected ']' at the end of a table declaration (at end of document)"),
    ],
)
def test_a_file_that_is_wrong_is_answered_with(text: str, expected: str) -> None:
    assert mistakes(text)[0] == f"catalog.toml: {expected}"


def test_a_file_that_is_no_text_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecErrors, match=r"^catalog\.toml: is not UTF-8 text$"):
        project_catalog(tmp_path)


def test_a_file_that_cannot_be_read_states_why(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").mkdir()
    with pytest.raises(SpecErrors, match=r"^catalog\.toml: cannot be read: Is a directory$"):
        project_catalog(tmp_path)
