"""Bringing an environment up: its base, then its cluster; each previewed and confirmed, or done at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corral.engine.belongings import lay_out
from corral.engine.differences import difference_lines
from corral.engine.ended import refuse_ended
from corral.engine.errors import WRONG_INPUT, EngineError
from corral.engine.former_names import lost_line, without_file
from corral.engine.printers import counts_text
from corral.engine.progress import Begun, Deed
from corral.engine.shrinking import Shrinking, refuse_to_strand
from corral.engine.stack import PREVIEWING, Stack, StackResult, outputs, result
from corral.engine.starting import require_start
from corral.engine.tally import Tally
from corral.engine.workplace import BASE, CLUSTER, Workplace, ensure_secrets, made_whole
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render.slurm import check_own_keys
from corral.spec.files import Environment

UP = ("up", "--yes", "--skip-preview", "--refresh")
PREVIEW = ("preview", "--refresh")
Ask = Callable[[str], bool]
State = Mapping[str, Any] | None  # an exported state; None where there is no stack


@dataclass(frozen=True, slots=True, kw_only=True)
class UpResult:
    """What became of the stacks, by `base` and `cluster`. In a preview the numbers say what would be done."""

    stacks: Mapping[str, StackResult] = field(default_factory=dict)

    def to_document(self) -> dict[str, object]:
        """The result as `--json` shows it."""
        return {"schema": "corral.up/1", **{name: one.to_document() for name, one in self.stacks.items()}}


def up(
    place: Workplace, environment: Environment, *, ask: Ask | None, end_machines: bool = False, check: bool = True
) -> UpResult:
    """What was done. `ask` decides before each stack that would change; without it everything is done at once.

    `check`: whether the account is asked first if it can start this; an adopted network always is.
    Raises EngineError, before anything is changed, where the cluster's hour has passed, and where something that runs
    would lose its placement group or its subnet; with `end_machines` the machines of such groups are ended instead.
    """
    with place.stack(CLUSTER, environment.cluster.name) as cluster:
        with place.stack(BASE, environment.base.name) as below:
            below_now, cluster_now = made_whole(below), made_whole(cluster)
            refuse_ended(cluster, cluster_now, environment.cluster)
            plans = _plans(place, environment)
            refuse_to_strand(Shrinking(*plans, below, cluster, below_now, cluster_now), end_machines=end_machines)
            _tell_of_former_names(place, [(below, below_now), (cluster, cluster_now)])
            lay_out(place, below, environment, *plans)
            is_up = bool(outputs(cluster_now))
            require_start(below, *plans, in_box=place.in_box, is_up=is_up, ground_alone=not check)
            done_below = _bring_up(below, below_now, ask)
        return UpResult(stacks={"base": done_below, "cluster": _bring_up(cluster, cluster_now, ask)})


def preview(place: Workplace, environment: Environment) -> UpResult:
    """What would be done. Nothing is changed, and stacks that do not exist are gone again afterwards.

    Raises EngineError, after all was shown, where an up would refuse this.
    """
    with place.stack(CLUSTER, environment.cluster.name) as cluster:
        with place.stack(BASE, environment.base.name) as below:
            below_now, cluster_now = below.state(), cluster.state()
            _tell_of_former_names(place, [(below, below_now), (cluster, cluster_now)])
            would = {"base": result(_look_ahead(below, below_now))}
        if outputs(below_now):
            would["cluster"] = result(_look_ahead(cluster, cluster_now))
        else:
            place.printer.say(f"{cluster.title}: can be previewed when {below.title} is up")
        plans = _plans(place, environment)
        refuse_ended(cluster, cluster_now, environment.cluster)
        refuse_to_strand(Shrinking(*plans, below, cluster, below_now, cluster_now))
        if not place.in_box:  # where an up makes what stands for the user's own VPC
            require_start(below, *plans, in_box=False, is_up=True, ground_alone=True)
        return UpResult(stacks=would)


def plan_lines(tally: Tally) -> list[str]:
    """What would be done, a line for each resource, its differences below it."""
    lines = []
    for one in tally.planned:
        lines.append(f"  {one.deed.verb:<9} {one.subject.type}  {one.subject.name}")
        lines += [f"            {line}" for line in _differences(one)]
    return lines


def refuse_unasked() -> EngineError:
    """The error for a question where nobody can answer."""
    return EngineError("nobody can be asked here, as this is no terminal", ("add --yes to go ahead",), WRONG_INPUT)


def _plans(place: Workplace, environment: Environment) -> tuple[BasePlan, ClusterPlan]:
    """Both plans as the programs will have them. Raises ReleaseError for keys that the cluster's Slurm lacks."""
    ground, image = plan_base(environment.base), place.image_profile
    cluster = plan_cluster(environment.cluster, ground, catalogue=environment.catalogue, image_profile=image)
    check_own_keys(cluster)
    return ground, cluster


def _bring_up(stack: Stack, state: State, ask: Ask | None) -> StackResult:
    if state is None:
        _make_stack(stack)
    if ask is not None:
        would = stack.update(PREVIEWING, PREVIEW)
        show_plan(stack, would)
        if would.changes and not ask(f"{stack.title}: do this?"):
            raise EngineError(f"{stack.title}: nothing was changed")
    return result(stack.update("bringing up", UP))


def _make_stack(stack: Stack) -> None:
    ensure_secrets(stack)
    stack.create()


def _tell_of_former_names(place: Workplace, states: Sequence[tuple[Stack, State]]) -> None:
    """Says which stacks live without a file, where one of these is yet to be made: it may be theirs, renamed."""
    new = [stack for stack, state in states if state is None]
    if lost := without_file(new):
        place.printer.say(f"{new[-1].title}: {lost_line(lost, new[-1].name, in_box=place.in_box)}")


def _look_ahead(stack: Stack, state: State) -> Tally:
    if state is None:
        _make_stack(stack)
    try:
        tally = stack.update(PREVIEWING, PREVIEW)
    finally:
        if state is None:
            stack.remove()
    show_plan(stack, tally)
    return tally


def show_plan(stack: Stack, tally: Tally) -> None:
    """Shows what would be done."""
    for line in plan_lines(tally):
        stack.printer.say(line)
    if not tally.changes:
        stack.printer.say(f"{stack.title}: nothing to do ({counts_text(tally)})")


def _differences(one: Begun) -> list[str]:
    return difference_lines(one.differences) if one.deed in (Deed.UPDATED, Deed.REPLACED) else []
