"""The network of a declared run: its assumed topology, the all-reduce of the gradients, the effects of failures."""

from __future__ import annotations

from dataclasses import dataclass, replace

from corral.catalog.accelerators.fabric import FabricDesign, assumed_fabric
from corral.catalog.accelerators.measured_collectives import MeasuredCurve
from corral.forecast.fabric.all_reduce import Algorithm, AllReduce, all_reduce_curves, all_reduces
from corral.forecast.fabric.bisection import bisection_gbps
from corral.forecast.fabric.nic_failures import FailedCard, TwoLeaves, failed_card, over_two_leaves
from corral.forecast.fabric.topology import Fabric, Switches, count_switches, plan_fabric, ports_of
from corral.forecast.training.communication import gradient_bytes
from corral.forecast.training.interconnect import RankGroup
from corral.forecast.training.job import Job
from corral.forecast.training.speed import forecast_speed
from corral.spec.models.run import RunSpec

TAPERED = 4.0  # taper of a second example for a job under two leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowedRun:
    """The run on a slower network: the hierarchical all-reduce of its gradients, and its relative speed.

    `all_reduce_s`: None if one rank has the whole batch.
    """

    all_reduce_s: float | None
    speed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOutlook:
    """The network of a run. `gradients`: their all-reduce among the data ranks in `group`; empty for one rank.

    For a `mixture` of experts without the experts, which fewer ranks copy. `lost`: the factors of a failed card;
    `spread`, `pinned`: the run with them. `curves`: all ranks by message size. `measured`: the curve measured on
    `measured.ranks` ranks. Rates are one way.
    """

    design: FabricDesign
    fabric: Fabric
    switches: Switches
    bisection_gbps: float
    group: RankGroup
    gradients: tuple[AllReduce, ...]
    mixture: bool
    lost: FailedCard | None
    spread: SlowedRun | None
    pinned: SlowedRun | None
    two_leaves: TwoLeaves
    two_tapered_leaves: TwoLeaves
    curves: tuple[tuple[AllReduce, ...], ...]
    measured: MeasuredCurve


def network_outlook(run: RunSpec, job: Job) -> NetworkOutlook | None:
    """The network of the run; None on one node."""
    if run.nodes < 2 or run.machine.accelerator is None:
        return None
    machine, design = job.machine, assumed_fabric()
    cards = run.machine.efa_maximum if run.efa else len(run.machine.network_cards)
    fabric = plan_fabric(run.nodes, cards, run.machine.network_gbps / cards, design)
    group = machine.group(job.layout.dp * job.layout.cp, job.layout.tp)
    lost = failed_card(cards, run.machine.accelerator.count)
    return NetworkOutlook(
        design=design,
        fabric=fabric,
        switches=count_switches(fabric, ports_of(design, fabric.nic_gbps)),
        bisection_gbps=bisection_gbps(fabric),
        group=group,
        gradients=all_reduces(gradient_bytes(job), machine, group),
        mixture=job.shape.is_moe,
        lost=lost,
        spread=_slowed(job, group, lost.spread) if lost else None,
        pinned=_slowed(job, group, lost.pinned) if lost else None,
        two_leaves=over_two_leaves(run.nodes, design.leaf_taper),
        two_tapered_leaves=over_two_leaves(run.nodes, TAPERED),
        curves=all_reduce_curves(machine, machine.group(run.accelerators, 1)),
        measured=machine.curve,
    )


def _slowed(job: Job, group: RankGroup, times: float) -> SlowedRun:
    """The run with the network of all nodes slowed by this factor, since all wait for the slowest."""
    slower = replace(job.machine, network_gbps=job.machine.network_gbps / times)
    found = {one.algorithm: one.seconds for one in all_reduces(gradient_bytes(job), slower, group)}
    alone, now = (forecast_speed(replace(job, machine=machine)).tokens_per_s for machine in (job.machine, slower))
    return SlowedRun(all_reduce_s=found.get(Algorithm.HIERARCHICAL), speed=now / alone)
