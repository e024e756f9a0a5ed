"""The `state` check of `corral check`: is the state backend usable, and does another process hold the stacks?

The other checks are in `corral.preflight`, which does not know state backends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from corral.engine.backend import file_backend
from corral.engine.backend.bucket_backend import bucket_lock_holders, parse_bucket_url, require_bucket
from corral.engine.backend.stack_locks import LockHolder
from corral.engine.engine_errors import EngineError
from corral.engine.lifecycle.session import BASE, CLUSTER
from corral.engine.pulumi.environment import backend_url
from corral.model.urls import bucket_of
from corral.preflight.checks import Check
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest
from corral.spec.spec_errors import SpecError
from corral.spec.yaml.environment import Environment

NAME = "state"
_FINDING = FindingBuilder(check=NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendStatus:
    """The state backend: its URL, or the problem with it; the lock holders by stack title.

    `missing`: the directory of a file backend, if it does not exist. `makeable`: whether it can be created.
    """

    url: str
    problem: EngineError | None = None
    holders: Mapping[str, LockHolder] | None = None
    missing: Path | None = None
    makeable: bool = True


def state_check(stacks: Path, environ: Mapping[str, str]) -> Check:
    """The check that the state backend is reachable and that no process holds the environment's stacks."""
    return Check(
        name=NAME,
        purpose="state backend of Pulumi",
        fetch=lambda _, request: _fetch(stacks, environ, request),
        evaluate=evaluate,
    )


def evaluate(request: PreflightRequest, states: BackendStatus) -> Iterator[PreflightFinding]:
    """A finding for the backend, then one for each locked stack."""
    if states.problem is not None:
        yield _FINDING.fail("backend", states.problem.sentence, "; ".join(states.problem.hints))
        return
    if states.missing is not None:
        yield _not_there(states.missing, states.makeable)
        return
    yield _FINDING.ok("backend", states.url)
    for title, holder in (states.holders or {}).items():
        since = f"{holder.since:%Y-%m-%d %H:%M} UTC"
        text = f"locked by Pulumi: process {holder.pid} of {holder.user} on {holder.host}, since {since}"
        yield _FINDING.fail(title, text, "wait; if that process is gone for good, run `pulumi cancel`")


def states_as_data(url: str, environment: Environment) -> tuple[SpecError, ...]:
    """An error for each entry by which jobs or file systems would reach the state bucket of this backend URL.

    The spec's rules refuse a bucket of `corral bootstrap` by its name; this one may have any.
    """
    states = parse_bucket_url(url)
    if states is None:
        return ()
    base, cluster = environment.base, environment.cluster
    entries = [(cluster.file, f"jobs.buckets[{number}].s3", one.s3) for number, one in enumerate(cluster.jobs.buckets)]
    entries += [
        (spec.file, f"storage.lustre[{number}].data[{entry}].s3", link.s3)
        for spec in (base, cluster)
        for number, system in enumerate(spec.storage.lustre)
        for entry, link in enumerate(system.data)
    ]
    return tuple(
        SpecError(file=file, path=path, message=f"{s3!r} is the bucket of the states", fix="use another bucket")
        for file, path, s3 in entries
        if bucket_of(s3) == states.name
    )


def _not_there(directory: Path, makeable: bool) -> PreflightFinding:
    other = f"mount or create {directory}, or change PULUMI_BACKEND_URL"
    if makeable:
        return _FINDING.warn("backend", f"{directory} does not exist; the first `corral up` creates it empty", other)
    return _FINDING.fail(
        "backend", f"{directory} is not a directory and cannot be created", "change PULUMI_BACKEND_URL"
    )


def _fetch(stacks: Path, environ: Mapping[str, str], request: PreflightRequest) -> BackendStatus:
    try:
        url = backend_url(environ, stacks)
        require_bucket(url, environ)
    except EngineError as problem:
        return BackendStatus(url="", problem=problem)
    states = file_backend.directory(url)
    if states is not None and not states.parent.is_dir():
        return BackendStatus(url=url, missing=states.parent, makeable=_can_be_made(states.parent))
    found: dict[str, LockHolder] = {}
    for project, name in ((BASE, request.base.name), (CLUSTER, request.cluster.name)):
        for holder in bucket_lock_holders(url, environ, project, name):
            found[f"{project.removeprefix('corral-')} {name}"] = holder
    return BackendStatus(url=url, holders=found)


def _can_be_made(directory: Path) -> bool:
    """Whether the nearest existing parent is a writable directory."""
    above = next(one for one in directory.absolute().parents if one.exists())
    return not directory.exists() and above.is_dir() and os.access(above, os.W_OK | os.X_OK)
