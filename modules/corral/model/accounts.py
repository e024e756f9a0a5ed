"""Slurm's accounts and QOS that a cluster declares. In cluster.json, and as text for people and for diffs.

The text is a file of the manifest, so the preview of `corral up` shows what changes, and its change makes the head act.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

EVERYBODY = "everybody"  # the account of people without another
NORMAL_QOS = "normal"  # Slurm's own, which every account may use unless it declares others
_HEADER = "# Managed by corral: do not edit. Accounts and QOS of the environment's file, which the agent sets in Slurm."


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPlan:
    """An account. `parent`: None below Slurm's root. `shares`: of its parent's fair share.

    `qos`: what its jobs may use, the default first; empty for what its parent may use.
    """

    name: str
    parent: str | None = None
    shares: int = 1
    qos: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QosPlan:
    """A quality of service: priority and limits; None for no limit.

    `gpus`, `cpus`: of all its running jobs; `..._per_user`: of each person's. `gpu_hours`: of all its jobs ever.
    `preempts`: the QOS whose running jobs make room for its own, sorted. `grace_s`: how long its jobs may save before
    they make room; 0 if no QOS preempts it.
    """

    name: str
    priority: int = 0
    gpus: int | None = None
    cpus: int | None = None
    gpus_per_user: int | None = None
    cpus_per_user: int | None = None
    jobs_per_user: int | None = None
    gpu_hours: int | None = None
    preempts: tuple[str, ...] = ()
    grace_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsPlan:
    """All accounts, parents first, and all QOS. `enforced`: whether Slurm refuses jobs that have no account.

    Without accounts, corral leaves slurmdbd's alone.
    """

    accounts: tuple[AccountPlan, ...] = ()
    qos: tuple[QosPlan, ...] = ()
    enforced: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The names of the accounts."""
        return frozenset(account.name for account in self.accounts)

    @property
    def preempts(self) -> bool:
        """Whether jobs of one QOS make room for those of another."""
        return any(qos.preempts for qos in self.qos)

    @property
    def has_budgets(self) -> bool:
        """Whether some jobs have a limited number of GPU hours."""
        return any(qos.gpu_hours is not None for qos in self.qos)


def accounts_text(plan: AccountsPlan, users: dict[str, str]) -> str:
    """The text of the file. `users`: the account of each person."""
    return "\n".join((_HEADER, *_lines(plan, users))) + "\n"


def _text(value: object) -> object:
    return ",".join(value) if isinstance(value, tuple) else value


def _lines(plan: AccountsPlan, users: dict[str, str]) -> Iterator[str]:
    for qos in plan.qos:
        settings = ((one.name, _text(getattr(qos, one.name))) for one in fields(qos))
        yield " ".join((f"qos {qos.name}", *(f"{key}={value}" for key, value in settings if key != "name" and value)))
    for account in plan.accounts:
        parts = [f"account {account.name}", f"parent={account.parent or 'root'}", f"shares={account.shares}"]
        yield " ".join((*parts, *([f"qos={','.join(account.qos)}"] if account.qos else [])))
    yield from (f"user {name} account={account}" for name, account in sorted(users.items()))
