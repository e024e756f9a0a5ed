"""Taking an environment down: its cluster; on request its base without what holds data; by name also the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from corral.engine.errors import REFUSED, EngineError
from corral.engine.projects import base_of
from corral.engine.stack import PREVIEWING, Stack, StackResult, outputs, resources, result
from corral.engine.up import Ask, show_plan
from corral.engine.workplace import BASE, CLUSTER, Workplace, account_of, made_whole

if TYPE_CHECKING:
    from corral.inventory.kept import KeptThing

DESTROY = ("destroy", "--yes", "--skip-preview", "--refresh")
PREVIEW = ("destroy", "--preview-only", "--refresh")
UNPROTECTED = ("--exclude-protected",)
_LAST = ("aws:s3/", "aws:kms/", "aws:efs/fileSystem")  # of what is kept, what is deleted after its stack
REFERENCE = "pulumi:pulumi:StackReference"


class Jobs(Protocol):
    """The jobs of a cluster that is to go. Both raise EngineError where it must stay for them."""

    def look(self, cluster: Stack) -> None:
        """Says what would be lost, before anybody is asked."""
        ...

    def end(self, cluster: Stack) -> None:
        """Lets no job run any more, right before the first machine ends."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DownResult:
    """What became of the stacks, by `cluster` and `base`, and of the base's data; what was not there is missing."""

    stacks: Mapping[str, StackResult] = field(default_factory=dict)
    kept: tuple[KeptThing, ...] = ()
    erased: tuple[KeptThing, ...] = ()

    def to_document(self) -> dict[str, object]:
        """The result as `--json` shows it."""
        data = {"kept": [asdict(one) for one in self.kept], "erased": [asdict(one) for one in self.erased]}
        stacks = {name: one.to_document() for name, one in self.stacks.items()}
        return {"schema": "corral.down/1", **stacks, **data}


def down(
    place: Workplace,
    environment: str,
    *,
    ask: Ask | None,
    with_base: bool = False,
    delete_data: str | None = None,
    jobs: Jobs | None = None,
) -> DownResult:
    """What was done. `ask` decides before each stack; `delete_data` must be the base's name, and means its data too.
    Without `jobs` nobody asks whether there are any.

    Raises EngineError where another cluster stands on the base that is to go.
    """
    base = base_of(place.stacks, environment)
    if delete_data is not None and delete_data != base:
        raise EngineError(
            f"--delete-data {delete_data}: the base of {environment} is '{base}'",
            (f"data is deleted only by its base's name: --delete-data {base}",),
            REFUSED,
        )
    with place.stack(CLUSTER, environment) as cluster:
        if not with_base and delete_data is None:
            return DownResult(stacks=_named("cluster", _take_cluster_down(cluster, ask, jobs)))
        with place.stack(BASE, base) as below:
            _require_alone(place, cluster, base)
            stacks = _named("cluster", _take_cluster_down(cluster, ask, jobs))
            _require_gone(cluster, below)
            if delete_data is not None:
                return _erase(below, stacks, ask)
            stacks |= _named("base", _take_down(below, ask, UNPROTECTED))
            return DownResult(stacks=stacks, kept=_kept(below))


def stands_on(state: Mapping[str, Any] | None, base: str) -> bool:
    """True if the cluster with this exported state refers to the base."""
    if not resources(state):
        return False
    references = [one for one in resources(state) if one["type"] == REFERENCE]
    named = [str((one.get("inputs") or {}).get("name", "")).rpartition("/")[2] for one in references]
    return base in (*named, outputs(state).get("base"))


def _named(name: str, done: StackResult | None) -> dict[str, StackResult]:
    return {} if done is None else {name: done}


def _require_alone(place: Workplace, cluster: Stack, base: str) -> None:
    others = [name for name in cluster.neighbours() if name != cluster.name]
    there = [name for name in others if stands_on(place.without_lock(cluster, CLUSTER, name).state(), base)]
    if there:
        names = ", ".join(there)
        hints = tuple(f"first: corral down {name}{place.account_option}" for name in there)
        raise EngineError(f"base {base} stays: other clusters stand on it: {names}", hints, REFUSED)


def _require_gone(cluster: Stack, base: Stack) -> None:
    """Raises EngineError while anything of the cluster stands on the base, whatever the engine said of its end."""
    if left := resources(cluster.state()):
        hint = f"the same command again takes the rest of {cluster.title} down first"
        raise EngineError(f"{base.title} stays: {len(left)} resources of {cluster.title} are left", (hint,), REFUSED)


def _take_cluster_down(stack: Stack, ask: Ask | None, jobs: Jobs | None) -> StackResult | None:
    def first(stack: Stack) -> None:
        if jobs is not None:
            jobs.end(stack)
        _end_machines(stack)

    return _take_down(stack, ask, first=first, look=jobs.look if jobs else None)


def _take_down(
    stack: Stack,
    ask: Ask | None,
    options: tuple[str, ...] = (),
    first: Callable[[Stack], None] | None = None,
    look: Callable[[Stack], None] | None = None,
) -> StackResult | None:
    state = made_whole(stack)
    if state is None:
        stack.printer.say(f"{stack.title}: is not up, nothing to take down")
        return None
    done = StackResult()
    if resources(state):
        if look is not None:
            look(stack)
        if ask is not None:
            would = stack.update(PREVIEWING, (*PREVIEW, *options))
            show_plan(stack, would)
            _confirm(stack, ask, "take this down?")
        if first is not None:
            first(stack)
        done = result(stack.update("taking down", (*DESTROY, *options)))
    if not resources(stack.state()):
        stack.remove()
    return done


def _end_machines(stack: Stack) -> None:
    """Ends what the head launched. Its interfaces would hold the cluster's security group, and it would cost on."""
    from corral.inventory.machines import end_machines, launched_machines

    account = account_of(stack)
    if running := len(launched_machines(account, stack.name)):
        stack.printer.say(f"{stack.title}: ending {running} launched machines")
    try:
        end_machines(account, stack.name)
    except TimeoutError as error:
        raise EngineError(
            f"{stack.title}: {error}", (f"try again in some minutes: corral down {stack.name}{stack.account_option}",)
        ) from None


def _erase(stack: Stack, stacks: Mapping[str, StackResult], ask: Ask | None) -> DownResult:
    """Takes the base down with everything that it kept.

    Bucket, home and key go last: what fails before them, keeps them. Lustre and the network that it stands in go with
    the rest, since neither can go without the other.
    """
    from corral.inventory.kept import delete_kept

    erased = _kept(stack)
    for one in erased:
        stack.printer.say(f"  delete    {one.kind}  {one.name}  {one.id}  {one.size}".rstrip())
    if ask is not None:
        _confirm(stack, ask, "delete this, and all data in it, for good?")
    stack.printer.say(f"{stack.title}: the stack goes first; what it leaves of this is erased after it")
    if state := made_whole(stack):
        freed = [_freed(one) for one in state["deployment"].get("resources") or []]
        stack.write_state({**state, "deployment": {**state["deployment"], "resources": freed}})
    done = _take_down(stack, None)
    delete_kept(account_of(stack), stack.name)
    for one in erased:
        stack.printer.say(f"  erased    {one.kind}  {one.name}  {one.id}")
    return DownResult(stacks={**stacks, **_named("base", done)}, erased=erased)


def _freed(resource: Mapping[str, Any]) -> dict[str, Any]:
    """The resource as one that a destroy takes: unprotected, and really deleted unless it is deleted afterwards."""
    stays = str(resource["type"]).startswith(_LAST)
    return {**resource, "protect": False, "retainOnDelete": bool(resource.get("retainOnDelete")) and stays}


def _kept(stack: Stack) -> tuple[KeptThing, ...]:
    from corral.inventory.kept import kept_things

    return kept_things(account_of(stack), stack.name)


def _confirm(stack: Stack, ask: Callable[[str], bool], question: str) -> None:
    if not ask(f"{stack.title}: {question}"):
        raise EngineError(f"{stack.title}: nothing was changed")
