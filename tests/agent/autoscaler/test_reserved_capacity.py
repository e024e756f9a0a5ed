"""When a launch waits for the capacity of a reservation or block, and when it goes to the next offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.offered import offer, with_efa, without_efa
from corral.agent.autoscaler.launch_planner import (
    LaunchOutcome,
    LaunchRequest,
    LaunchStep,
    Step,
    launch_requests,
    next_launch_step,
)
from corral.agent.autoscaler.reserved_capacity import ReservationUsage, renew_backoffs, usage_of
from corral.agent.cluster.launch_errors import LaunchErrorKind
from corral.agent.cluster.models import Instance, PowerRequest, ReservedCapacity, WaitingJob
from corral.agent.cluster.state import AutoscalerState, Backoff, record_served, unserved
from corral.model.cluster import QueuePlan
from corral.model.enums import Market
from corral.model.node_names import expand
from render.plans import dev

NOW = 1_790_000_000.0
SIXTEEN = "train-[1-16]"
BLOCK = replace(offer("block"), market=Market.CAPACITY_BLOCK, reservation="cr-1")
SPOT = replace(offer("spot"), market=Market.SPOT, zone_id="use1-az2")
NEAR = replace(offer("near"), market=Market.SPOT)  # in the block's zone


def queue(*offers: object) -> QueuePlan:
    return replace(with_efa(), max_nodes=20, offers=offers)


def request(missing: str, allocated: str = "", *, of: QueuePlan | None = None) -> LaunchRequest:
    job = WaitingJob(job_id=1, nodes=expand(missing), allocated_nodes=expand(allocated) if allocated else ())
    power = PowerRequest(key="1-1", verb="resume", nodes=expand(missing), requested_at=NOW, jobs=(job,))
    (launch,) = launch_requests(dev(of or queue(BLOCK, SPOT)), power)
    return launch


def machines(nodes: str, offer: str = "block", state: str = "running") -> tuple[Instance, ...]:
    return tuple(
        Instance(instance_id=f"i-{node}", node=node, state=state, address="", offer=offer) for node in expand(nodes)
    )


def refused(kind: LaunchErrorKind = LaunchErrorKind.RESERVED) -> AutoscalerState:
    """The block has refused a launch."""
    return AutoscalerState(backoffs={"block": Backoff(until=NOW + 60, refusals=1, kind=kind, reason="full")})


def step(
    launch: LaunchRequest,
    held: Sequence[Instance] = (),
    total: int = 16,
    free: int = 0,
    cleaning: int = 0,
    state: AutoscalerState | None = None,
    now: float = NOW,
) -> Step:
    usage = {"block": ReservationUsage(total=total, free=free, cleaning=cleaning)}
    return next_launch_step(launch, held, refused() if state is None else state, now, usage)


def offer_of(found: Step) -> str:
    assert isinstance(found, LaunchStep)
    return found.intent.offer


def test_a_replaced_machine_waits_for_its_capacity_in_the_block() -> None:
    found = step(request("train-16", "train-[1-15]"), machines("train-[1-15]"), cleaning=1)
    assert found == LaunchOutcome(instances=(), waiting=("train-16",))


def test_a_job_waits_in_its_block_for_capacity_that_others_use() -> None:
    found = step(request("train-16", "train-[1-15]"), machines("train-[1-15]"))
    assert found == LaunchOutcome(instances=(), waiting=("train-16",))


def test_a_job_does_not_leave_its_block_when_it_has_waited_in_vain() -> None:
    found = step(request("train-16", "train-[1-15]"), machines("train-[1-15]"), now=NOW + 600, state=_later())
    assert found == LaunchOutcome(instances=(), unavailable=("train-16",), reason="block: full")


def _later() -> AutoscalerState:
    return AutoscalerState(
        backoffs={"block": Backoff(until=NOW + 660, refusals=9, kind=LaunchErrorKind.RESERVED, reason="full")}
    )


@pytest.mark.parametrize("kind", [LaunchErrorKind.QUOTA, LaunchErrorKind.PERMISSION, LaunchErrorKind.REQUEST])
def test_a_job_does_not_leave_its_block_for_an_error_that_a_person_fixes(kind: LaunchErrorKind) -> None:
    found = step(request("train-16", "train-[1-15]"), machines("train-[1-15]"), state=refused(kind))
    assert found == LaunchOutcome(instances=(), waiting=("train-16",))


def test_a_job_that_no_block_can_hold_leaves_it() -> None:
    found = step(request("train-[17-18]", SIXTEEN), machines(SIXTEEN))
    assert isinstance(found, LaunchOutcome) and found.misplaced == expand(SIXTEEN)


def test_a_job_leaves_a_block_that_is_about_to_end() -> None:
    ending = refused(LaunchErrorKind.CAPACITY)
    found = step(request("train-16", "train-[1-15]"), machines("train-[1-15]"), state=ending)
    assert isinstance(found, LaunchOutcome) and found.misplaced == expand("train-[1-15]")


def test_a_new_job_waits_for_capacity_that_is_being_cleaned() -> None:
    assert step(request("train-[1-4]"), free=1, cleaning=3) == LaunchOutcome(
        instances=(), waiting=expand("train-[1-4]")
    )


def test_a_new_job_goes_to_the_next_offer_if_too_little_capacity_is_being_cleaned() -> None:
    assert offer_of(step(request("train-[1-4]"), cleaning=3)) == "spot"


def test_a_new_job_goes_to_the_next_offer_after_ten_minutes() -> None:
    assert offer_of(step(request("train-[1-4]"), cleaning=4, now=NOW + 600, state=_later())) == "spot"


def test_an_offer_before_the_block_is_used_at_once() -> None:
    assert offer_of(step(request("train-[1-4]", of=queue(SPOT, BLOCK)), cleaning=4)) == "spot"


def test_a_job_that_waits_in_vain_gets_its_last_node_from_the_same_zone() -> None:
    launch = request("train-16", "train-[1-15]", of=queue(BLOCK, NEAR, SPOT))
    assert offer_of(step(launch, machines("train-[1-15]"))) == "near"


def test_a_partial_launch_in_a_block_waits_for_the_rest() -> None:
    mine = machines("train-[1-3]")
    found = step(request("train-[1-4]"), mine, cleaning=1)
    assert found == LaunchOutcome(instances=mine, waiting=("train-4",))


def test_nodes_without_efa_wait_for_their_capacity_too() -> None:
    plan = replace(without_efa(), offers=(BLOCK, SPOT))
    assert step(request("cpu-1", of=plan), cleaning=1) == LaunchOutcome(instances=(), waiting=("cpu-1",))


def tried_again() -> AutoscalerState:
    """The block has refused a launch, and no longer backs off."""
    state = refused()
    return replace(state, backoffs={"block": replace(state.backoffs["block"], until=NOW)})


def test_a_job_launches_none_of_its_nodes_until_its_block_has_capacity_for_all() -> None:
    launch = request("cpu-[1-4]", of=replace(without_efa(), offers=(BLOCK, SPOT)))
    found = step(launch, free=1, cleaning=3, state=tried_again())
    assert found == LaunchOutcome(instances=(), waiting=expand("cpu-[1-4]"))


def test_nodes_of_several_jobs_take_the_capacity_that_is_free() -> None:
    jobs = tuple(WaitingJob(job_id=number, nodes=(f"cpu-{number}",)) for number in (1, 2))
    power = PowerRequest(key="1-1", verb="resume", nodes=("cpu-1", "cpu-2"), requested_at=NOW, jobs=jobs)
    (launch,) = launch_requests(dev(replace(without_efa(), offers=(BLOCK, SPOT))), power)
    assert offer_of(step(launch, free=1, cleaning=1, state=tried_again())) == "block"


def usage(shown: Sequence[Instance], state: AutoscalerState, total: int = 16, free: int = 0) -> ReservationUsage:
    held = {"cr-1": ReservedCapacity(total=total, free=free)}
    return usage_of({"block": "cr-1"}, held, (BLOCK, SPOT), shown, state, NOW)["block"]


def test_the_capacity_of_a_machine_that_shuts_down_is_being_cleaned() -> None:
    shown = (*machines("train-[1-15]"), *machines("train-16", state="shutting-down"))
    assert usage(shown, refused()) == ReservationUsage(total=16, free=0, cleaning=1)


def test_a_machine_that_ec2_still_shows_as_running_after_its_end_is_being_cleaned() -> None:
    state = replace(refused(), ended={"i-train-16": NOW - 5})
    assert usage(machines(SIXTEEN), state) == ReservationUsage(total=16, free=0, cleaning=1)


def test_capacity_is_not_awaited_a_quarter_of_an_hour_after_the_end_of_its_machine() -> None:
    shown = (*machines("train-[1-15]"), *machines("train-16", state="terminated"))
    state = replace(refused(), ended={"i-train-16": NOW - 900})
    assert usage(shown, state) == ReservationUsage(total=16, free=0, cleaning=0)


def test_capacity_that_has_another_machine_is_not_awaited() -> None:
    shown = (*machines(SIXTEEN), *machines("train-17", state="terminated"))
    state = replace(refused(), ended={"i-train-17": NOW - 300})
    assert usage(shown, state) == ReservationUsage(total=16, free=0, cleaning=0)


def test_machines_of_other_offers_do_not_use_the_block() -> None:
    shown = machines("train-[1-2]", "spot", "shutting-down")
    assert usage(shown, refused()) == ReservationUsage(total=16, free=0, cleaning=0)


@pytest.mark.parametrize(("free", "until"), [(0, NOW + 120), (1, NOW + 60)])
def test_a_block_backs_off_for_another_minute_only_while_it_has_no_free_capacity(free: int, until: float) -> None:
    held = {"block": ReservationUsage(total=16, free=free, cleaning=0)}
    assert renew_backoffs(refused(), held, NOW + 120, NOW + 60).backoffs["block"].until == until


def test_only_the_waiting_nodes_of_a_request_are_left() -> None:
    jobs = (WaitingJob(job_id=1, nodes=("train-1",)), WaitingJob(job_id=2, nodes=("train-2",)))
    both = PowerRequest(key="1-1", verb="resume", nodes=("train-1", "train-2"), requested_at=NOW, jobs=jobs)
    state = record_served(AutoscalerState(), both, frozenset({"train-2"}))
    left = unserved(state, both)
    assert (left.nodes, [job.nodes for job in left.jobs]) == (("train-2",), [(), ("train-2",)])
