"""Creates or updates an environment: its base, then its cluster, each after a preview and a confirmation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corral.engine.engine_errors import WRONG_INPUT, EngineError
from corral.engine.lifecycle.backend_check import states_as_data
from corral.engine.lifecycle.ending_head import await_ended_head, report_ending_head
from corral.engine.lifecycle.expiry_check import check_expiry
from corral.engine.lifecycle.external_resources import create_stand_ins
from corral.engine.lifecycle.kept_guard import refuse_unproven_data
from corral.engine.lifecycle.preflight_gate import require_startable
from corral.engine.lifecycle.removal_guard import EnvironmentChange, refuse_removals_in_use
from corral.engine.lifecycle.renamed_stacks import renamed_stacks_line, stacks_without_file
from corral.engine.lifecycle.session import BASE, CLUSTER, EngineSession, ensure_secrets, recover_stack
from corral.engine.progress.engine_events import Operation, StepStarted
from corral.engine.progress.progress_counter import ProgressCounter
from corral.engine.progress.progress_display import counts_text
from corral.engine.progress.property_diff import diff_lines
from corral.engine.pulumi.stack import PREVIEWING, Stack, StackResult, outputs, stack_result
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.environment import Environment
from corral.stacks.admission import plan_admitted

UP = ("up", "--yes", "--skip-preview", "--refresh")
PREVIEW = ("preview", "--refresh")
Confirm = Callable[[str], bool]
State = Mapping[str, Any] | None  # an exported state; None if the stack does not exist


@dataclass(frozen=True, slots=True, kw_only=True)
class UpResult:
    """The results by stack (`base`, `cluster`). After a preview, the counts say what would be done."""

    stacks: Mapping[str, StackResult] = field(default_factory=dict)

    def to_document(self) -> dict[str, object]:
        """The result as `--json` shows it."""
        return {"schema": "corral.up/1", **{name: one.to_document() for name, one in self.stacks.items()}}


def up(
    session: EngineSession,
    environment: Environment,
    *,
    confirm: Confirm | None,
    terminate_instances: bool = False,
    check: bool = True,
) -> UpResult:
    """Deploys both stacks. Returns the results.

    `confirm` is called before each stack that would change; None skips it. `check`: run the preflight checks; those of
    an existing VPC always run. Before any change, raises AdmissionError if the cluster has expired, and EngineError if
    a placement group or subnet in use would be deleted, or data to adopt is not the base's own; `terminate_instances`
    terminates the instances of such groups.
    """
    with session.stack(CLUSTER, environment.cluster.name) as cluster:
        with session.stack(BASE, environment.base.name) as below:
            below_now, cluster_now = recover_stack(below), recover_stack(cluster)
            check_expiry(cluster, cluster_now, environment.cluster)
            plans = _plans(session, environment)
            refuse_removals_in_use(
                EnvironmentChange(*plans, below, cluster, below_now, cluster_now),
                terminate_instances=terminate_instances,
            )
            refuse_unproven_data(below, below_now)
            _report_renamed_stacks(session, [(below, below_now), (cluster, cluster_now)])
            create_stand_ins(session, below, environment, *plans)
            is_up = bool(outputs(cluster_now))
            require_startable(below, *plans, is_up=is_up, network_only=not check)
            done_below = _deploy(below, below_now, confirm)
        await_ended_head(cluster, cluster_now)
        return UpResult(stacks={"base": done_below, "cluster": _deploy(cluster, cluster_now, confirm)})


def preview(session: EngineSession, environment: Environment) -> UpResult:
    """Shows what `up` would do. Changes nothing; removes the stacks that it had to create for it.

    Raises AdmissionError if the cluster has expired, and EngineError, after showing everything, if `up` would refuse.
    """
    with session.stack(CLUSTER, environment.cluster.name) as cluster:
        with session.stack(BASE, environment.base.name) as below:
            below_now, cluster_now = below.state(), cluster.state()
            check_expiry(cluster, cluster_now, environment.cluster)
            plans = _plans(session, environment)
            _report_renamed_stacks(session, [(below, below_now), (cluster, cluster_now)])
            would = {"base": stack_result(_preview_stack(below, below_now))}
        report_ending_head(cluster, cluster_now)
        if outputs(below_now):
            would["cluster"] = stack_result(_preview_stack(cluster, cluster_now))
        else:
            session.display.write(f"{cluster.title} can be previewed once {below.title} is up")
        refuse_removals_in_use(EnvironmentChange(*plans, below, cluster, below_now, cluster_now))
        if not session.in_box:  # there, `up` creates a stand-in for the user's VPC
            require_startable(below, *plans, is_up=True, network_only=True)
        return UpResult(stacks=would)


def plan_lines(counter: ProgressCounter) -> list[str]:
    """The planned changes: a line for each resource, followed by its property diff."""
    lines = []
    for one in counter.planned:
        lines.append(f"  {one.operation.verb:<9} {one.resource.type}  {one.resource.name}")
        lines += [f"            {line}" for line in _differences(one)]
    return lines


def no_terminal_error() -> EngineError:
    """The error for a confirmation without a terminal."""
    return EngineError(
        "cannot ask for confirmation without a terminal", ("add --yes to skip the confirmation",), WRONG_INPUT
    )


def _plans(session: EngineSession, environment: Environment) -> tuple[BasePlan, ClusterPlan]:
    """Both plans, as the Pulumi programs compute them. Raises ReleaseError as they do, and SpecErrors."""
    if errors := states_as_data(session.engine.environment["PULUMI_BACKEND_URL"], environment):
        raise SpecErrors(errors)
    planned = plan_admitted(environment, session.image_profile)
    return planned.base, planned.cluster


def _deploy(stack: Stack, state: State, confirm: Confirm | None) -> StackResult:
    if state is None:
        _make_stack(stack)
    if confirm is not None:
        would = stack.update(PREVIEWING, PREVIEW)
        show_plan(stack, would)
        if would.changes and not confirm(f"{stack.title}: apply these changes?"):
            raise EngineError(f"{stack.title}: nothing was changed")
    return stack_result(stack.update("deploying", UP))


def _make_stack(stack: Stack) -> None:
    ensure_secrets(stack)
    stack.create()


def _report_renamed_stacks(session: EngineSession, states: Sequence[tuple[Stack, State]]) -> None:
    """Warns about stacks without a file if a stack is new: it may be one of them, renamed."""
    new = [stack for stack, state in states if state is None]
    if lost := stacks_without_file(new):
        session.display.write(f"{new[-1].title}: {renamed_stacks_line(lost, new[-1].name, in_box=session.in_box)}")


def _preview_stack(stack: Stack, state: State) -> ProgressCounter:
    if state is None:
        _make_stack(stack)
    try:
        counter = stack.update(PREVIEWING, PREVIEW)
    finally:
        if state is None:
            stack.remove()
    show_plan(stack, counter)
    return counter


def show_plan(stack: Stack, counter: ProgressCounter) -> None:
    """Prints the planned changes."""
    for line in plan_lines(counter):
        stack.display.write(line)
    if not counter.changes:
        stack.display.write(f"{stack.title}: nothing to do ({counts_text(counter)})")


def _differences(one: StepStarted) -> list[str]:
    return diff_lines(one.diff) if one.operation in (Operation.UPDATED, Operation.REPLACED) else []
