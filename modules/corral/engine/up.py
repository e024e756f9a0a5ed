"""Bringing an environment up: its base, then its cluster; each previewed and confirmed, or done at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from corral.engine.corpora import lay_out
from corral.engine.differences import difference_lines
from corral.engine.errors import WRONG_INPUT, EngineError
from corral.engine.printers import counts_text
from corral.engine.progress import Begun, Deed
from corral.engine.projects import base_of
from corral.engine.stack import PREVIEWING, Stack, StackResult, outputs, result
from corral.engine.tally import Tally
from corral.engine.workplace import BASE, CLUSTER, Workplace, ensure_secrets, made_whole

UP = ("up", "--yes", "--skip-preview", "--refresh")
PREVIEW = ("preview", "--refresh")
Ask = Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpResult:
    """What became of the stacks, by `base` and `cluster`. In a preview the numbers say what would be done."""

    stacks: Mapping[str, StackResult] = field(default_factory=dict)

    def to_document(self) -> dict[str, object]:
        """The result as `--json` shows it."""
        return {"schema": "corral.up/1", **{name: one.to_document() for name, one in self.stacks.items()}}


def up(place: Workplace, environment: str, *, ask: Ask | None) -> UpResult:
    """What was done. `ask` decides before each stack that would change; without it everything is done at once."""
    base = base_of(place.stacks, environment)
    with place.stack(CLUSTER, environment) as cluster:
        with place.stack(BASE, base) as below:
            done_below = _bring_up(below, ask)
        lay_out(place, cluster)
        return UpResult(stacks={"base": done_below, "cluster": _bring_up(cluster, ask)})


def preview(place: Workplace, environment: str) -> UpResult:
    """What would be done. Nothing is changed, and stacks that do not exist are gone again afterwards."""
    base = base_of(place.stacks, environment)
    with place.stack(CLUSTER, environment) as cluster:
        with place.stack(BASE, base) as below:
            would_below, is_there = _look_ahead(below)
        if not is_there:
            place.printer.say(f"{cluster.title}: can be previewed when {below.title} is up")
            return UpResult(stacks={"base": result(would_below)})
        return UpResult(stacks={"base": result(would_below), "cluster": result(_look_ahead(cluster)[0])})


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


def _bring_up(stack: Stack, ask: Ask | None) -> StackResult:
    if made_whole(stack) is None:
        ensure_secrets(stack)
        stack.create()
    if ask is not None:
        would = stack.update(PREVIEWING, PREVIEW)
        show_plan(stack, would)
        if would.changes and not ask(f"{stack.title}: do this?"):
            raise EngineError(f"{stack.title}: nothing was changed")
    return result(stack.update("bringing up", UP))


def _look_ahead(stack: Stack) -> tuple[Tally, bool]:
    """What an update would do, and whether the stack is up in some form."""
    state = stack.state()
    if state is None:
        ensure_secrets(stack)
        stack.create()
    try:
        tally = stack.update(PREVIEWING, PREVIEW)
    finally:
        if state is None:
            stack.remove()
    show_plan(stack, tally)
    return tally, bool(outputs(state))


def show_plan(stack: Stack, tally: Tally) -> None:
    """Shows what would be done."""
    for line in plan_lines(tally):
        stack.printer.say(line)
    if not tally.changes:
        stack.printer.say(f"{stack.title}: nothing to do ({counts_text(tally)})")


def _differences(one: Begun) -> list[str]:
    return difference_lines(one.differences) if one.deed in (Deed.UPDATED, Deed.REPLACED) else []
