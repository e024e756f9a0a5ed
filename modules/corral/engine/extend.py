"""Moving the end of a cluster that is up. Nothing else of it is touched, so no stack file is read for it.

The parameter is what an up keeps; deployed.json and the manifest are what machines read. Both get what the next up
writes there, which therefore finds nothing that it would change for a machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from corral.engine.errors import REFUSED, WRONG_INPUT, EngineError
from corral.engine.stack import Stack, outputs, resources
from corral.engine.up import Ask
from corral.engine.workplace import CLUSTER, Workplace, account_of
from corral.inventory.account import read_end
from corral.model.manifest import MANIFEST
from corral.spec.durations import format_duration
from corral.spec.rules_cluster import LONGEST_TTL

_DEPLOYED = "deployed.json"
_STORED = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendResult:
    """The end that the cluster had and the one that it has. `head`: what its head says, None where it has none."""

    cluster: str
    former: datetime
    ends_at: datetime
    head: str | None

    def to_document(self) -> dict[str, object]:
        """The result as `--json` shows it."""
        return {
            "schema": "corral.extend/1",
            "environment": self.cluster,
            "former": self.former.isoformat(),
            "ends_at": self.ends_at.isoformat(),
            "head": self.head,
        }


def extend(
    place: Workplace, name: str, end: datetime, *, now: datetime, ask: Ask | None, tell: Callable[[Stack], str | None]
) -> ExtendResult:
    """Lets the cluster end then. `ask` decides where that is earlier than before; `tell` tells its head.

    Raises EngineError where the cluster has no end that could be moved, or another than the spec allows.
    """
    _refuse_end(end, now, name, place.account_option)
    with place.stack(CLUSTER, name) as cluster:
        state = cluster.state()
        former = _former_end(cluster, state)
        cluster.require_free()  # an up that is under way would write the former end again
        if end < former and ask is not None:
            place.printer.say(f"{cluster.title}: would end {_shown(end)}, {_length(former - end)} earlier than now")
            if not ask(f"{cluster.title}: do this?"):
                raise EngineError(f"{cluster.title}: nothing was changed")
        _move(cluster, state, end)
        place.printer.say(f"{cluster.title}: ends {_shown(end)}, in {_length(end - now)}; {_was(former, now)}")
        said, named = tell(cluster), f"{name}{cluster.account_option}"
        place.printer.say(f"{cluster.title}: {said or f'it has no head now: corral up {named} makes one'}")
    return ExtendResult(cluster=name, former=former, ends_at=end, head=said)


def rewrite(s3: Any, bucket: str, prefix: str, path: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes a JSON file of a cluster and its hash in the manifest, as an up would: the manifest last."""
    hashed = ""

    def enter(manifest: dict[str, Any]) -> None:
        manifest["files"][path] = hashed

    for key, step in ((f"{prefix}/{path}", change), (f"{prefix}/{MANIFEST}", enter)):
        found = s3.get_object(Bucket=bucket, Key=key)
        document = json.loads(found["Body"].read())
        step(document)
        content = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()  # as model.jsons writes it
        s3.put_object(Bucket=bucket, Key=key, Body=content, ContentType=found["ContentType"])
        hashed = hashlib.sha256(content).hexdigest()


def _refuse_end(end: datetime, now: datetime, name: str, account_option: str) -> None:
    if end <= now:
        hints = (f"it is {_shown(now)}; corral down {name}{account_option} takes it down now",)
        raise EngineError(f"cluster {name}: {_shown(end)} is over", hints, WRONG_INPUT)
    if end - now > LONGEST_TTL:
        longest = format_duration(LONGEST_TTL)
        hints = (f"it is allowed up to {longest} ahead; without lifetime.ttl a cluster never ends by itself",)
        raise EngineError(f"cluster {name}: {_shown(end)} is too far away", hints, WRONG_INPUT)


def _former_end(cluster: Stack, state: Mapping[str, Any] | None) -> datetime:
    """The end that it has now. Raises EngineError for one that is not up, is somebody else's, or never ends."""
    former = read_end(account_of(cluster), cluster.name)
    if not resources(state):
        if former is not None:
            hint = "it is up in this account by another state backend than PULUMI_BACKEND_URL names"
            raise EngineError(f"{cluster.title}: is not this backend's: nothing was changed", (hint,), REFUSED)
        hint = f"its lifetime begins with its first up: corral up {cluster.name}{cluster.account_option}"
        raise EngineError(f"{cluster.title}: is not up", (hint,), WRONG_INPUT)
    if former is None:
        hint = f"to give it an end: lifetime.ttl in its spec, then corral up {cluster.name}{cluster.account_option}"
        raise EngineError(f"{cluster.title}: never ends by itself", (hint,), WRONG_INPUT)
    return former


def _move(cluster: Stack, state: Mapping[str, Any] | None, end: datetime) -> None:
    """The parameter first: if this is cut off, an up or another extend does the rest."""
    text, of, account = end.strftime(_STORED), outputs(state), account_of(cluster)
    account.client("ssm").put_parameter(Name=f"/corral/{cluster.name}/ends-at", Value=text, Overwrite=True)
    if "bucket" in of and "prefix" in of:
        s3 = account.client("s3")
        # A first up that did not come to its end has written no files yet; the next one will.
        with suppress(s3.exceptions.NoSuchKey):
            rewrite(s3, of["bucket"], of["prefix"], _DEPLOYED, lambda found: found.update(ends_at=text))


def _was(former: datetime, now: datetime) -> str:
    return f"before: {_shown(former)}" if former > now else f"its hour had passed: {_shown(former)}"


def _length(duration: timedelta) -> str:
    """To the minute where it is an hour or more."""
    seconds = int(duration.total_seconds())
    return format_duration(timedelta(seconds=seconds if seconds < 3600 else seconds // 60 * 60))


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
