"""The network of a declared run: what it is taken to be, what its gradients take on it, what goes wrong in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from corral.catalog.collectives import MeasuredCurve
from corral.catalog.fabric import FabricDesign, assumed_fabric
from corral.forecast.fabric.all_reduce import Algorithm, AllReduce, all_reduces, sweep
from corral.forecast.fabric.bisection import bisection_gbps
from corral.forecast.fabric.faults import LostCard, TwoLeaves, lost_card, over_two_leaves
from corral.forecast.fabric.plan import Fabric, Switches, count_switches, plan_fabric, ports_of
from corral.forecast.training.exchange import gradient_bytes
from corral.forecast.training.job import Job
from corral.forecast.training.network import Group
from corral.forecast.training.speed import forecast_speed
from corral.spec.run import RunSpec

TAPERED = 4.0  # of the network that a job over two leaves is shown on beside the assumed one


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowed:
    """The run on a slower network: the hierarchical all-reduce of its gradients, and the part of its speed it keeps.

    `all_reduce_s` is None where one rank has the whole batch.
    """

    all_reduce_s: float | None
    speed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOutlook:
    """`gradients`: an all-reduce of what a rank has, among its data ranks in `group`, by algorithm; empty for one rank.

    Of a `mixture` without its experts, of which fewer ranks have copies.
    `lost` multiplies what the network takes; `spread` and `kept_apart` are the run with it. `curves`: all ranks of the
    run by size; `measured` is what was measured on `measured.ranks` ranks. Rates are one way.
    """

    design: FabricDesign
    fabric: Fabric
    switches: Switches
    bisection_gbps: float
    group: Group
    gradients: tuple[AllReduce, ...]
    mixture: bool
    lost: LostCard | None
    spread: Slowed | None
    kept_apart: Slowed | None
    two_leaves: TwoLeaves
    two_tapered_leaves: TwoLeaves
    curves: tuple[tuple[AllReduce, ...], ...]
    measured: MeasuredCurve


def network_outlook(run: RunSpec, job: Job) -> NetworkOutlook | None:
    """None for a run on one node, which has no network between nodes."""
    if run.nodes < 2 or run.machine.accelerator is None:
        return None
    machine, design = job.machine, assumed_fabric()
    cards = run.machine.efa_maximum if run.efa else len(run.machine.network_cards)
    fabric = plan_fabric(run.nodes, cards, run.machine.network_gbps / cards, design)
    group = machine.group(job.layout.dp * job.layout.cp, job.layout.tp)
    lost = lost_card(cards, run.machine.accelerator.count)
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
        kept_apart=_slowed(job, group, lost.kept_apart) if lost else None,
        two_leaves=over_two_leaves(run.nodes, design.leaf_taper),
        two_tapered_leaves=over_two_leaves(run.nodes, TAPERED),
        curves=sweep(machine, machine.group(run.accelerators, 1)),
        measured=machine.curve,
    )


def _slowed(job: Job, group: Group, times: float) -> Slowed:
    """The run where the network of every node is so many times slower, since all wait for the one that is."""
    slower = replace(job.machine, network_gbps=job.machine.network_gbps / times)
    found = {one.algorithm: one.seconds for one in all_reduces(gradient_bytes(job), slower, group)}
    alone, now = (forecast_speed(replace(job, machine=machine)).tokens_per_s for machine in (job.machine, slower))
    return Slowed(all_reduce_s=found.get(Algorithm.HIERARCHICAL), speed=now / alone)
