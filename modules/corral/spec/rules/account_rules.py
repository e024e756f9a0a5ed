"""Rules about Slurm's accounts and QOS: names that exist, no cycles, limits of devices that the cluster has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from corral.model.accounts import NORMAL_QOS
from corral.spec.models.cluster import ClusterSpecInput
from corral.spec.spec_errors import Loc, SpecFinding

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")  # slurmdbd stores names in lowercase
_SLURMS_OWN = ("root",)
_PREEMPTION = ("preempttype", "preemptmode")
_LONGEST_GRACE = timedelta(hours=1)  # meanwhile, whoever preempts waits


def check(spec: ClusterSpecInput) -> Iterator[SpecFinding]:
    """Yield findings about accounts and QOS."""
    for name in spec.accounts:
        yield from _check_name(("accounts", name), name)
        yield from _check_account(("accounts", name), name, spec)
    for name in spec.qos:
        yield from _check_name(("qos", name), name)
        yield from _check_preemption(("qos", name), name, spec)
    if any(qos.preempts for qos in spec.qos.values()):
        for key in spec.slurm.extra:
            if key.lower() in _PREEMPTION:
                yield SpecFinding(
                    ("slurm", "extra", key), "conflicts with `preempts` of a QOS, which sets it", "keep one"
                )
    for name, user in spec.access.users.items():
        if user.account is not None and user.account not in spec.accounts:
            loc = ("access", "users", name, "account")
            yield SpecFinding(loc, f"{user.account!r} is not an account", _one_of(spec.accounts, "accounts"))


def is_account_name(name: str) -> bool:
    """Whether slurmdbd stores the name as it is."""
    return bool(_NAME.fullmatch(name))


def _check_name(loc: Loc, name: str) -> Iterator[SpecFinding]:
    if not is_account_name(name):
        yield SpecFinding(loc, f"{name!r} is not a valid name", "use lowercase letters, digits, '.', '_' and '-'")
    elif name in _SLURMS_OWN:
        yield SpecFinding(loc, f"{name!r} is Slurm's own", "use another name")


def _check_account(loc: Loc, name: str, spec: ClusterSpecInput) -> Iterator[SpecFinding]:
    parent = spec.accounts[name].parent
    if parent is not None and parent not in spec.accounts:
        yield SpecFinding((*loc, "parent"), f"{parent!r} is not an account", _one_of(spec.accounts, "accounts"))
    elif name in _above(name, spec):
        yield SpecFinding((*loc, "parent"), f"{parent!r} is below {name!r}", "use an account that is not below it")
    for number, qos in enumerate(spec.accounts[name].qos):
        if qos not in spec.qos and qos != NORMAL_QOS:
            yield SpecFinding((*loc, "qos", number), f"{qos!r} is not a QOS", _one_of(spec.qos, "qos"))
        elif qos in spec.accounts[name].qos[:number]:
            yield SpecFinding((*loc, "qos", number), f"{qos!r} is listed twice", "keep one")


def _check_preemption(loc: Loc, name: str, spec: ClusterSpecInput) -> Iterator[SpecFinding]:
    qos = spec.qos[name]
    for number, other in enumerate(qos.preempts):
        if other not in spec.qos:
            yield SpecFinding((*loc, "preempts", number), f"{other!r} is not a QOS", _one_of(spec.qos, "qos"))
        elif other in qos.preempts[:number]:
            yield SpecFinding((*loc, "preempts", number), f"{other!r} is listed twice", "keep one")
        elif name in _preempted(other, spec):
            # slurmdbd refuses a loop.
            yield SpecFinding((*loc, "preempts", number), f"{other!r} preempts {name!r}", "use one direction")
    if qos.grace > _LONGEST_GRACE:
        yield SpecFinding((*loc, "grace"), "is longer than 1h", "use at most 1h")


def _preempted(name: str, spec: ClusterSpecInput) -> set[str]:
    """This QOS, and all whose jobs make room for its own, also by way of others."""
    found, left = {name}, [name]
    while left:
        for other in spec.qos[left.pop()].preempts:
            if other in spec.qos and other not in found:
                found.add(other)
                left.append(other)
    return found


def _above(name: str, spec: ClusterSpecInput) -> list[str]:
    """The accounts above this one, up to the first that is there twice or is not declared."""
    found: list[str] = []
    parent = spec.accounts[name].parent
    while parent in spec.accounts and parent not in found:
        found.append(str(parent))
        parent = spec.accounts[str(parent)].parent
    return found


def _one_of(names: object, where: str) -> str:
    known = ", ".join(sorted(names)) if isinstance(names, dict) else ""
    return f"use one of {known}, or declare it in `{where}`" if known else f"declare it in `{where}`"
