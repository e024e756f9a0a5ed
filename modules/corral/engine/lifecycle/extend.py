"""Changes when a deployed cluster ends. Nothing else changes, so no stack file is read.

Deployments keep the SSM parameter; machines read deployed.json and the manifest. Both get what the next deployment
would write, so that it finds nothing to change for a machine.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from corral.engine.engine_errors import REFUSED, WRONG_INPUT, EngineError
from corral.engine.lifecycle.session import CLUSTER, EngineSession, stack_account
from corral.engine.lifecycle.up import Confirm
from corral.engine.pulumi.stack import Stack, outputs, resources
from corral.inventory.scan import read_expiry
from corral.model.manifest import MANIFEST
from corral.spec.models.durations import format_duration
from corral.spec.rules.cluster_rules import LONGEST_TTL
from corral.stacks.manifest_signing import read_signed, sign, successor

_DEPLOYED = "deployed.json"
_STORED = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendResult:
    """The former and the new end. `head`: the outcome of notifying the head, None without a head."""

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
    session: EngineSession,
    name: str,
    end: datetime,
    *,
    now: datetime,
    confirm: Confirm | None,
    notify_head: Callable[[Stack], str | None],
) -> ExtendResult:
    """Sets the end of the cluster. Calls `confirm` if the new end is earlier, and `notify_head` afterwards.

    Raises EngineError if the cluster has no end, or the spec does not allow the new one.
    """
    _refuse_end(end, now, name, session.account_option)
    with session.stack(CLUSTER, name) as cluster:
        state = cluster.state()
        former = _former_end(cluster, state)
        cluster.require_unlocked()  # a running deployment would restore the former end
        if end < former and confirm is not None:
            session.display.write(f"{cluster.title} would end {_shown(end)}, {_length(former - end)} earlier than now")
            if not confirm(f"{cluster.title}: do this?"):
                raise EngineError(f"{cluster.title}: nothing was changed")
        _move(cluster, state, end)
        session.display.write(f"{cluster.title} ends {_shown(end)}, in {_length(end - now)}; {_was(former, now)}")
        outcome, named = notify_head(cluster), f"{name}{cluster.account_option}"
        session.display.write(f"{cluster.title}: {outcome or f'it has no head now: corral up {named} creates one'}")
    return ExtendResult(cluster=name, former=former, ends_at=end, head=outcome)


def rewrite(
    account: Any, base: str, bucket: str, prefix: str, path: str, change: Callable[[dict[str, Any]], object]
) -> None:
    """Changes a JSON file of a cluster and its hash in the manifest, as a deployment does: the manifest last."""
    s3 = account.client("s3")
    found = s3.get_object(Bucket=bucket, Key=f"{prefix}/{path}")
    document = json.loads(found["Body"].read())
    change(document)
    content = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()  # like model.serialization
    s3.put_object(Bucket=bucket, Key=f"{prefix}/{path}", Body=content, ContentType=found["ContentType"])
    former = read_signed(s3, bucket, prefix)
    if former is None:
        return  # the first deployment has not come so far, and will write it
    files = {**former.files, path: hashlib.sha256(content).hexdigest()}
    manifest = successor(replace(former, files=files), former, int(time.time()))
    signed = sign(account.client("kms"), base, prefix, manifest)
    s3.put_object(Bucket=bucket, Key=f"{prefix}/{MANIFEST}", Body=signed.encode(), ContentType=found["ContentType"])


def _refuse_end(end: datetime, now: datetime, name: str, account_option: str) -> None:
    if end <= now:
        hints = (f"it is {_shown(now)}; corral down {name}{account_option} deletes it now",)
        raise EngineError(f"cluster {name}: {_shown(end)} is in the past", hints, WRONG_INPUT)
    if end - now > LONGEST_TTL:
        longest = format_duration(LONGEST_TTL)
        hints = (f"the maximum is {longest} from now; without lifetime.ttl a cluster never ends",)
        raise EngineError(f"cluster {name}: {_shown(end)} is too far away", hints, WRONG_INPUT)


def _former_end(cluster: Stack, state: Mapping[str, Any] | None) -> datetime:
    """The current end. Raises EngineError if the cluster is not up, belongs to another backend, or never ends."""
    former = read_expiry(stack_account(cluster), cluster.name)
    if not resources(state):
        if former is not None:
            hint = "another state backend than PULUMI_BACKEND_URL deployed it to this account"
            raise EngineError(
                f"{cluster.title} belongs to another state backend: nothing was changed", (hint,), REFUSED
            )
        hint = f"its lifetime begins with its first deployment: corral up {cluster.name}{cluster.account_option}"
        raise EngineError(f"{cluster.title} is not up", (hint,), WRONG_INPUT)
    if former is None:
        hint = f"to give it an end: set lifetime.ttl in its spec, then corral up {cluster.name}{cluster.account_option}"
        raise EngineError(f"{cluster.title} never ends", (hint,), WRONG_INPUT)
    return former


def _move(cluster: Stack, state: Mapping[str, Any] | None, end: datetime) -> None:
    """Writes the parameter first: after an interruption, the next up or extend completes the rest."""
    text, of, account = end.strftime(_STORED), outputs(state), stack_account(cluster)
    account.client("ssm").put_parameter(Name=f"/corral/{cluster.name}/ends-at", Value=text, Overwrite=True)
    if "bucket" in of and "prefix" in of:
        # An incomplete first deployment has written no files yet; the next one will.
        with suppress(account.client("s3").exceptions.NoSuchKey):
            rewrite(
                account, of["base"], of["bucket"], of["prefix"], _DEPLOYED, lambda found: found.update(ends_at=text)
            )


def _was(former: datetime, now: datetime) -> str:
    return f"before: {_shown(former)}" if former > now else f"it had expired: {_shown(former)}"


def _length(duration: timedelta) -> str:
    """The duration as text; in whole minutes from one hour on."""
    seconds = int(duration.total_seconds())
    return format_duration(timedelta(seconds=seconds if seconds < 3600 else seconds // 60 * 60))


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
