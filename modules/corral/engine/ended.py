"""A cluster whose hour has passed, before an up works on it: a head that it makes would end itself after minutes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from corral.engine.errors import REFUSED, EngineError
from corral.engine.stack import Stack, resources
from corral.engine.workplace import account_of
from corral.inventory.account import read_end
from corral.model.timers import WARN_AHEAD_S
from corral.spec.cluster import ClusterSpec
from corral.spec.durations import format_duration

_SOON = timedelta(seconds=WARN_AHEAD_S)


def refuse_ended(cluster: Stack, state: Mapping[str, Any] | None, spec: ClusterSpec) -> None:
    """Raises EngineError where the hour of this cluster has passed; says so where that is near.

    A spec that has no lifetime.ttl any more takes the end away with this up.
    """
    if spec.lifetime.ttl is None or not resources(state):
        return
    end, now = read_end(account_of(cluster), cluster.name), datetime.now(UTC)
    if end is None or end > now + _SOON:
        return
    later = f"corral extend {cluster.name} 4h{cluster.account_option}"
    if end > now:
        cluster.printer.say(f"{cluster.title}: ends in {format_duration(end - now)}; to move that: {later}")
        return
    over = f"its hour has passed, {end:%Y-%m-%d %H:%M} UTC, and its head ends itself: nothing was changed"
    named = f"{cluster.name}{cluster.account_option}"
    hints = (f"to go on with it: {later}, then corral up {named}", f"to end it: corral down {named}")
    raise EngineError(f"{cluster.title}: {over}", hints, REFUSED)
