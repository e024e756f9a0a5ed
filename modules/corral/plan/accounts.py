"""Plan Slurm's accounts from the spec: declared ones, those that queues name, and one for everybody else."""

from collections.abc import Container, Iterator, Mapping

from corral.model.accounts import EVERYBODY, AccountPlan, AccountsPlan, QosPlan
from corral.model.cluster import ClusterPlan
from corral.spec.models.accounts import AccountSpec, QosSpec
from corral.spec.models.cluster import ClusterSpecInput
from corral.spec.spec_errors import SpecError


def plan_accounts(spec: ClusterSpecInput) -> AccountsPlan:
    """Return the accounts, parents first; none if the spec has neither accounts nor people."""
    of_queues = {account for queue in spec.queues for account in queue.accounts}
    is_enforced = bool(spec.accounts or spec.qos or of_queues)
    if not is_enforced and not (spec.access.users or spec.access.directory):
        return AccountsPlan()
    preempted = {name for qos in spec.qos.values() for name in qos.preempts}
    declared = {EVERYBODY: AccountSpec(), **{name: AccountSpec() for name in sorted(of_queues)}, **spec.accounts}
    return AccountsPlan(
        accounts=tuple(
            AccountPlan(name=name, parent=one.parent, shares=one.shares, qos=one.qos)
            for name, one in _parents_first(declared)
        ),
        qos=tuple(_qos(name, one, preempted) for name, one in sorted(spec.qos.items())),
        enforced=is_enforced,
    )


def _qos(name: str, qos: QosSpec, preempted: Container[str]) -> QosPlan:
    limits = qos.model_dump(exclude={"preempts", "grace"})
    grace_s = int(qos.grace.total_seconds()) if name in preempted else 0
    return QosPlan(name=name, **limits, preempts=tuple(sorted(qos.preempts)), grace_s=grace_s)


def check_accounts(plan: ClusterPlan, *, file: str) -> tuple[SpecError, ...]:
    """Return an error for each limit of GPUs in a cluster without any: Slurm counts only devices that it has."""
    if any(queue.node.gres and queue.node.gres.name == "gpu" for queue in plan.queues):
        return ()
    return tuple(
        SpecError(file=file, path=f"qos.{qos.name}.{key}", message="no queue has GPUs to limit", fix="remove it")
        for qos in plan.accounts.qos
        for key in ("gpus", "gpus_per_user", "gpu_hours")
        if getattr(qos, key) is not None
    )


def _parents_first(accounts: Mapping[str, AccountSpec]) -> Iterator[tuple[str, AccountSpec]]:
    """Yield the accounts by depth, then by name. The spec's rules exclude cycles."""

    def depth(name: str | None) -> int:
        return 0 if name is None else 1 + depth(accounts[name].parent)

    yield from sorted(accounts.items(), key=lambda item: (depth(item[0]), item[0]))
