"""Deletes an environment: its cluster; on request its base without the data; by the base's name also the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from corral.engine.engine_errors import REFUSED, EngineError
from corral.engine.lifecycle.ending_head import await_ended_head
from corral.engine.lifecycle.session import BASE, CLUSTER, EngineSession, recover_stack, stack_account
from corral.engine.lifecycle.up import Confirm, show_plan
from corral.engine.pulumi.projects import base_of
from corral.engine.pulumi.stack import PREVIEWING, Stack, StackResult, outputs, resources, stack_result
from corral.model.base import key_alias
from corral.model.tags import KEEP_TAG

if TYPE_CHECKING:
    from corral.inventory.retained_data import RetainedData, RetainedResource

DESTROY = ("destroy", "--yes", "--skip-preview", "--refresh")
PREVIEW = ("destroy", "--preview-only", "--refresh")
UNPROTECTED = ("--exclude-protected",)
_LAST = ("aws:s3/", "aws:kms/", "aws:efs/fileSystem")  # of the retained resources, those deleted after the stack
REFERENCE = "pulumi:pulumi:StackReference"


class JobDrain(Protocol):
    """Handles the jobs of a cluster to delete. Both methods raise EngineError if jobs prevent the deletion."""

    def check(self, cluster: Stack) -> None:
        """Reports what would be lost, before the confirmation."""
        ...

    def drain(self, cluster: Stack) -> None:
        """Stops all jobs, right before the first instance terminates."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DownResult:
    """The results by stack (`cluster`, `base`; absent if not deployed), and the base's data retained or deleted."""

    stacks: Mapping[str, StackResult] = field(default_factory=dict)
    retained: tuple[RetainedResource, ...] = ()
    deleted: tuple[RetainedResource, ...] = ()

    def to_document(self) -> dict[str, object]:
        """The result as `--json` shows it."""
        data = {"retained": [asdict(one) for one in self.retained], "deleted": [asdict(one) for one in self.deleted]}
        stacks = {name: one.to_document() for name, one in self.stacks.items()}
        return {"schema": "corral.down/2", **stacks, **data}


def down(
    session: EngineSession,
    environment: str,
    *,
    confirm: Confirm | None,
    with_base: bool = False,
    delete_data: str | None = None,
    jobs: JobDrain | None = None,
) -> DownResult:
    """Deletes the cluster, and on request its base. Returns the results.

    `confirm` is called before each stack; None skips it. `delete_data` must be the base's name and also deletes its
    data. Without `jobs`, running jobs are not checked. Raises EngineError if another cluster uses a base to delete.
    """
    base = base_of(session.stacks, environment)
    if delete_data is not None and delete_data != base:
        raise EngineError(
            f"--delete-data {delete_data}: the base of {environment} is '{base}'",
            (f"to delete its data, name the base: --delete-data {base}",),
            REFUSED,
        )
    with session.stack(CLUSTER, environment) as cluster:
        if not with_base and delete_data is None:
            return DownResult(stacks=_named("cluster", _destroy_cluster(cluster, confirm, jobs)))
        with session.stack(BASE, base) as below:
            _require_unshared(session, cluster, base)
            stacks = _named("cluster", _destroy_cluster(cluster, confirm, jobs))
            _require_empty(cluster, below)
            if delete_data is not None:
                return _destroy_with_data(below, stacks, confirm)
            stacks |= _named("base", _destroy(below, confirm, UNPROTECTED))
            return DownResult(stacks=stacks, retained=_retained(below).own)


def uses_base(state: Mapping[str, Any] | None, base: str) -> bool:
    """True if the cluster with this exported state uses the base."""
    if not resources(state):
        return False
    references = [one for one in resources(state) if one["type"] == REFERENCE]
    named = [str((one.get("inputs") or {}).get("name", "")).rpartition("/")[2] for one in references]
    return base in (*named, outputs(state).get("base"))


def _named(name: str, done: StackResult | None) -> dict[str, StackResult]:
    return {} if done is None else {name: done}


def _require_unshared(session: EngineSession, cluster: Stack, base: str) -> None:
    others = [name for name in cluster.all_names() if name != cluster.name]
    there = [name for name in others if uses_base(session.without_lock(cluster, CLUSTER, name).state(), base)]
    if there:
        names = ", ".join(there)
        hints = tuple(f"first: corral down {name}{session.account_option}" for name in there)
        raise EngineError(f"base {base} was not deleted: other clusters use it: {names}", hints, REFUSED)


def _require_empty(cluster: Stack, base: Stack) -> None:
    """Raises EngineError if resources of the cluster remain, whatever the engine reported."""
    if left := resources(cluster.state()):
        hint = f"run the same command again to delete the rest of {cluster.title}"
        raise EngineError(
            f"{base.title} was not deleted: {len(left)} resources of {cluster.title} remain", (hint,), REFUSED
        )


def _destroy_cluster(stack: Stack, confirm: Confirm | None, jobs: JobDrain | None) -> StackResult | None:
    def first(stack: Stack) -> None:
        if jobs is not None:
            jobs.drain(stack)
        _terminate_instances(stack)
        await_ended_head(stack, stack.state())

    return _destroy(stack, confirm, first=first, check=jobs.check if jobs else None)


def _destroy(
    stack: Stack,
    confirm: Confirm | None,
    options: tuple[str, ...] = (),
    first: Callable[[Stack], None] | None = None,
    check: Callable[[Stack], None] | None = None,
) -> StackResult | None:
    state = recover_stack(stack)
    if state is None:
        stack.display.write(f"{stack.title} is not up, nothing to delete")
        return None
    done = StackResult()
    if resources(state):
        if check is not None:
            check(stack)
        if confirm is not None:
            would = stack.update(PREVIEWING, (*PREVIEW, *options))
            show_plan(stack, would)
            _require_confirmed(stack, confirm, "delete this?")
        if first is not None:
            first(stack)
        done = stack_result(stack.update("deleting", (*DESTROY, *options)))
    if not resources(stack.state()):
        stack.remove()
    return done


def _terminate_instances(stack: Stack) -> None:
    """Terminates the instances that the head launched: they cost money and hold the cluster's security group."""
    from corral.inventory.compute_instances import list_compute_instances, terminate_compute_instances

    account = stack_account(stack)
    if running := len(list_compute_instances(account, stack.name)):
        stack.display.write(f"{stack.title}: terminating {running} launched instances")
    try:
        terminate_compute_instances(account, stack.name)
    except TimeoutError as error:
        raise EngineError(
            f"{stack.title}: {error}", (f"try again in some minutes: corral down {stack.name}{stack.account_option}",)
        ) from None


def _destroy_with_data(stack: Stack, stacks: Mapping[str, StackResult], confirm: Confirm | None) -> DownResult:
    """Deletes the base with all its data.

    Bucket, home and key are deleted last, so that an earlier failure retains them. Lustre is deleted with the network,
    since neither can be deleted without the other.
    """
    from corral.inventory.retained_data import delete_retained

    found = _retained(stack)
    erased = found.own
    for one in erased:
        stack.display.write(f"  delete    {one.kind}  {one.name}  {one.id}  {one.size}".rstrip())
    for line in _left_alone(stack, found):
        stack.display.write(line)
    if confirm is not None:
        _require_confirmed(stack, confirm, "permanently delete this and all data in it?")
    stack.display.write(f"{stack.title}: deleting the stack first, then the remaining data")
    if state := recover_stack(stack):
        freed = [_unprotected(one) for one in state["deployment"].get("resources") or []]
        stack.write_state({**state, "deployment": {**state["deployment"], "resources": freed}})
    done = _destroy(stack, None)
    delete_retained(stack_account(stack), stack.name, erased)
    for one in erased:
        stack.display.write(f"  deleted   {one.kind}  {one.name}  {one.id}")
    return DownResult(stacks={**stacks, **_named("base", done)}, deleted=erased)


def _unprotected(resource: Mapping[str, Any]) -> dict[str, Any]:
    """The resource without protection, and deleted by a destroy unless it is deleted afterwards."""
    stays = str(resource["type"]).startswith(_LAST)
    return {**resource, "protect": False, "retainOnDelete": bool(resource.get("retainOnDelete")) and stays}


def _retained(stack: Stack) -> RetainedData:
    from corral.inventory.retained_data import list_retained

    in_state = frozenset(str(one["id"]) for one in resources(stack.state()) if one.get("id"))
    return list_retained(stack_account(stack), stack.name, in_state)


def _left_alone(stack: Stack, found: RetainedData) -> Iterator[str]:
    """What has the tags of the base's data and is not deleted, and what to do about it."""
    for one, problem in found.unproven:
        yield f"  not deleted  {one.kind}  {one.id}: {problem}"
    if found.unproven:
        yield f"  tagged as data of {stack.title}, but not its own, as far as AWS shows: remove the tag {KEEP_TAG}"
        yield "  from what is not yours, and delete what is yours by hand, by its id; if its key is yours, again after"
        yield f"  aws kms create-alias --alias-name {key_alias(stack.name)} --target-key-id KEY"


def _require_confirmed(stack: Stack, confirm: Callable[[str], bool], question: str) -> None:
    if not confirm(f"{stack.title}: {question}"):
        raise EngineError(f"{stack.title}: nothing was changed")
