"""The check of where Pulumi keeps its states, beside those of `preflight`: only the engine room knows such places."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from corral.engine import file_backend
from corral.engine.bucket_backend import bucket_holders, require_bucket
from corral.engine.environment import backend_url
from corral.engine.errors import EngineError
from corral.engine.locks import Holder
from corral.engine.workplace import BASE, CLUSTER
from corral.preflight.checks import Check
from corral.preflight.findings import Finding, Teller, Wanted

NAME = "state"
_TELL = Teller(check=NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """Where the states are, or why they cannot be used; who is at work on a stack, by its title.

    `missing`: the directory of a backend of files that is not there yet. `makeable`: whether it can be made.
    """

    url: str
    problem: EngineError | None = None
    holders: Mapping[str, Holder] | None = None
    missing: Path | None = None
    makeable: bool = True


def state_check(stacks: Path, environ: Mapping[str, str]) -> Check:
    """Whether the states of these projects can be reached, and nobody is at work on the environment's."""
    return Check(
        name=NAME,
        purpose="where Pulumi keeps its states",
        ask=lambda _, wanted: _ask(stacks, environ, wanted),
        judge=judge,
    )


def judge(wanted: Wanted, states: States) -> Iterator[Finding]:
    """The place, then each stack that somebody works on."""
    if states.problem is not None:
        yield _TELL.fail("backend", states.problem.sentence, "; ".join(states.problem.hints))
        return
    if states.missing is not None:
        yield _not_there(states.missing, states.makeable)
        return
    yield _TELL.ok("backend", states.url)
    for title, holder in (states.holders or {}).items():
        since = f"{holder.since:%Y-%m-%d %H:%M} UTC"
        text = f"Pulumi is at work on it: process {holder.pid} of {holder.user} on {holder.host}, since {since}"
        yield _TELL.fail(title, text, "wait; where that process is gone for good, `pulumi cancel`")


def _not_there(place: Path, makeable: bool) -> Finding:
    other = f"mount or make it if your states are to be in {place}, else see PULUMI_BACKEND_URL"
    if makeable:
        return _TELL.warn("backend", f"{place} is not there yet: the first `corral up` makes it, without states", other)
    return _TELL.fail("backend", f"{place} is no directory, and none can be made there", "see PULUMI_BACKEND_URL")


def _ask(stacks: Path, environ: Mapping[str, str], wanted: Wanted) -> States:
    try:
        url = backend_url(environ, stacks)
        require_bucket(url, environ)
    except EngineError as problem:
        return States(url="", problem=problem)
    states = file_backend.directory(url)
    if states is not None and not states.parent.is_dir():
        return States(url=url, missing=states.parent, makeable=_can_be_made(states.parent))
    found: dict[str, Holder] = {}
    for project, name in ((BASE, wanted.base.name), (CLUSTER, wanted.cluster.name)):
        for holder in bucket_holders(url, environ, project, name):
            found[f"{project.removeprefix('corral-')} {name}"] = holder
    return States(url=url, holders=found)


def _can_be_made(place: Path) -> bool:
    """Whether the nearest thing above it is a directory that may be written."""
    above = next(one for one in place.absolute().parents if one.exists())
    return not place.exists() and above.is_dir() and os.access(above, os.W_OK | os.X_OK)
