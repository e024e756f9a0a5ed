"""Service quotas: what is said where the environment takes more at its largest than there is."""

from __future__ import annotations

from dataclasses import replace

from judging import bad, dev, on_demand, train

from corral.preflight.findings import Finding
from corral.preflight.quotas import Facts, judge

STANDARD, P, P4_SPOT, P5_SPOT = "L-1216C47A", "L-417A185B", "L-7212CCBC", "L-C4BD4855"
ROOM = {STANDARD: 100.0, P: 400.0, P4_SPOT: 400.0}


def found(**used: float) -> list[Finding]:
    """What is said of `dev` where so much is allowed, by code with _ for -."""
    return list(judge(dev(), Facts(allowed={**ROOM, **{code.replace("_", "-"): one for code, one in used.items()}})))


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


def test_a_quota_of_which_the_head_takes_nothing_is_a_warning_however_much_others_use() -> None:
    facts = Facts(allowed={**ROOM, P: 0.0}, used={P: 3072.0})
    assert bad(judge(dev(), facts)) == [
        "warn Running On-Demand P instances: 0 vCPUs, 3,072 used by others; up to 384 wanted for queue train"
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
