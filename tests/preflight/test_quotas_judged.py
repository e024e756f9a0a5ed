"""Service quotas: what the environment takes at its largest, and what is said where that is more than there is."""

from __future__ import annotations

from dataclasses import replace

from judging import bad, dev, on_demand, train

from corral.preflight.findings import Finding
from corral.preflight.quotas import Facts, judge, things_needed, vcpus_needed

STANDARD, P, P4_SPOT, P5_SPOT = "L-1216C47A", "L-417A185B", "L-7212CCBC", "L-C4BD4855"
ROOM = {STANDARD: 100.0, P: 400.0, P4_SPOT: 400.0}


def found(**used: float) -> list[Finding]:
    """What is said of `dev` where so much is allowed, by code with _ for -."""
    return list(judge(dev(), Facts(allowed={**ROOM, **{code.replace("_", "-"): one for code, one in used.items()}})))


def test_dev_takes_96_vcpus_for_each_node_in_both_markets_and_8_for_its_head() -> None:
    assert vcpus_needed(dev()) == {STANDARD: 8, P: 384, P4_SPOT: 384}


def test_what_is_reserved_takes_nothing_more() -> None:
    assert vcpus_needed(train()) == {STANDARD: 16, P5_SPOT: 3072}


def test_dev_takes_an_address_a_vpc_a_gateway_a_home_and_1200_gib_of_scratch() -> None:
    assert things_needed(dev()) == {
        "L-0263D0A3": 1,
        "L-F678F1CE": 1,
        "L-FE5A380F": 1,
        "L-848C634D": 1,
        "L-DF5E4CA3": 21,
        "L-BB24F6E5": 21,
        "L-7A658B76": 1000 / 1024,
        "L-AD2FC696": 1200,
        "L-C48231E5": 1,
    }


def test_room_for_all_is_ok() -> None:
    assert bad(found()) == []


def test_a_market_without_room_is_a_warning_where_another_has_some() -> None:
    assert bad(found(L_7212CCBC=0)) == [
        "warn All P4, P3 and P2 Spot Instance Requests: 0 vCPUs, 0 used by others; up to 384 wanted for queue train"
    ]


def test_room_for_some_of_the_nodes_is_a_warning() -> None:
    (finding,) = (one for one in found(L_417A185B=200, L_7212CCBC=0) if "On-Demand P" in one.about)
    assert (finding.verdict, finding.fix.rpartition(" ")[2]) == ("warn", "384")


def test_a_queue_of_which_not_one_node_fits_anywhere_is_a_failure() -> None:
    verdicts = [one.verdict for one in found(L_417A185B=95, L_7212CCBC=95)]
    assert verdicts == ["ok", "fail", "fail"]


def test_a_head_that_does_not_fit_is_a_failure() -> None:
    assert bad(found(L_1216C47A=7)) == [
        "fail Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances: 7 vCPUs, 0 used by others;"
        " up to 8 wanted for the head"
    ]


def test_what_others_use_counts() -> None:
    facts = Facts(allowed=ROOM, used={P: 17.0})
    assert bad(judge(on_demand(dev()), facts)) == [
        "warn Running On-Demand P instances: 400 vCPUs, 17 used by others; up to 384 wanted for queue train"
    ]


def test_a_queue_with_reserved_capacity_starts_without_room_in_other_markets() -> None:
    facts = Facts(allowed={STANDARD: 100.0, P5_SPOT: 0.0})
    assert [line.split()[0] for line in bad(judge(train(), facts))] == ["warn"]


def test_a_file_system_that_does_not_fit_is_a_failure() -> None:
    facts = Facts(allowed={**ROOM, "L-AD2FC696": 1199.0})
    assert bad(judge(dev(), facts)) == [
        "fail Lustre Scratch storage capacity: 1,199 GiB, 0 used by others; up to 1,200 wanted"
    ]


def test_interfaces_for_some_of_the_nodes_are_a_warning() -> None:
    facts = replace(Facts(allowed={**ROOM, "L-DF5E4CA3": 5000.0}), used={"L-DF5E4CA3": 4990.0})
    assert bad(judge(dev(), facts)) == [
        "warn Network interfaces per Region: 5,000 interfaces, 4,990 used by others; up to 21 wanted"
    ]
