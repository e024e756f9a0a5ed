"""Subnets: each zone number has a fixed block, so adding or removing zones moves none."""

from ipaddress import IPv4Network
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from corral.plan.subnets import plan_public, plan_zones

CIDR = IPv4Network("10.64.0.0/16")
ZONES = st.lists(st.integers(1, 7), min_size=1, max_size=7, unique=True)
CIDRS = st.builds(
    lambda second, prefix: IPv4Network(f"10.{second}.0.0/{prefix}"), st.integers(0, 255), st.integers(16, 22)
)


def test_a_zone_takes_the_block_of_its_number() -> None:
    zones = plan_zones(CIDR, ("use1-az4", "use1-az1"))
    assert [(z.zone_id, str(z.private), str(z.heads)) for z in zones] == [
        ("use1-az4", "10.64.96.0/19", "10.64.96.0/26"),
        ("use1-az1", "10.64.0.0/19", "10.64.0.0/26"),
    ]


def test_the_public_subnet_lies_in_the_last_block() -> None:
    assert str(plan_public(CIDR, "use1-az1").cidr) == "10.64.224.0/26"


@given(CIDRS, ZONES)
def test_subnets_never_overlap_and_lie_in_the_vpc(cidr: IPv4Network, numbers: list[int]) -> None:
    zones = plan_zones(cidr, [f"use1-az{number}" for number in numbers])
    subnets = [*(zone.private for zone in zones), plan_public(cidr, "use1-az1").cidr]
    overlaps = [pair for pair in combinations(subnets, 2) if pair[0].overlaps(pair[1])]
    assert (overlaps, [s for s in subnets if not s.subnet_of(cidr)]) == ([], [])


@given(ZONES, ZONES)
def test_a_zone_stays_where_it_is_when_others_come_and_go(before: list[int], after: list[int]) -> None:
    subnets = [{z.zone_id: z.private for z in plan_zones(CIDR, [f"use1-az{n}" for n in ns])} for ns in (before, after)]
    assert [zone for zone in subnets[0] if subnets[1].get(zone, subnets[0][zone]) != subnets[0][zone]] == []
