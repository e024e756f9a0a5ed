"""Decide when a compute machine terminates itself, because nothing else may be left to do it. Pure.

Without a head a machine is useless, but it must not end a running job: a replaced head finds its jobs again. After the
end of the cluster it terminates in any case, some minutes after the head should have done so.
"""

from dataclasses import dataclass

HEADLESS_S = 600.0
LISTEN_EVERY_S = 30.0
PAST_END_S = 600.0  # the head terminates machines at the end; one that still runs now was missed
_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, spread evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLiveness:
    """A machine's view of its head. `head_silent_s`: seconds since the head last answered, by a monotonic clock.

    `working`: a job step runs. `ends_at`: the cluster's end, None: never. `now`, `ends_at`: seconds since 1970.
    """

    now: float
    head_silent_s: float
    working: bool
    ends_at: float | None


def why_terminate(liveness: NodeLiveness) -> str:
    """Why this machine should terminate now; empty if it should not."""
    if liveness.ends_at is not None and liveness.now >= liveness.ends_at + PAST_END_S:
        return f"the cluster ended {liveness.now - liveness.ends_at:.0f} s ago"
    if liveness.head_silent_s >= HEADLESS_S and not liveness.working:
        return f"no head for {liveness.head_silent_s:.0f} s, and no job"
    return ""


def first_after_s(number: int) -> float:
    """How long the node of this number waits before its first check, less than LISTEN_EVERY_S.

    A thousand nodes that start in the same second must not query slurmctld in the same second.
    """
    return number * _GOLDEN % 1.0 * LISTEN_EVERY_S
