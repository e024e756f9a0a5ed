"""When a compute machine ends itself: nobody else may be there to do it. Pure.

Without a head it is of no use to anybody, but it may not take a running job with it: a head that is replaced finds its
jobs again. Past the end of the cluster it goes in any case, some minutes after the head should have ended it.
"""

from dataclasses import dataclass

ALONE_FOR_S = 600.0
LISTEN_EACH_S = 30.0
PAST_END_S = 600.0  # the head ends machines at the end of life; what still runs then has been forgotten
_GOLDEN = 0.6180339887498949  # its multiples, modulo 1, lie evenly in any row of numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What a machine knows. `heard_s`: how long ago its head last answered, by a clock that nobody sets. `working`: has
    a job's step. `ends_at`: the cluster's end, None: never. `now`, `ends_at`: seconds since 1970.
    """

    now: float
    heard_s: float
    working: bool
    ends_at: float | None


def why_end(pulse: Pulse) -> str:
    """Why this machine should end now; empty if it should not."""
    if pulse.ends_at is not None and pulse.now >= pulse.ends_at + PAST_END_S:
        return f"the cluster ended {pulse.now - pulse.ends_at:.0f} s ago"
    if pulse.heard_s >= ALONE_FOR_S and not pulse.working:
        return f"no head for {pulse.heard_s:.0f} s, and no job"
    return ""


def first_after_s(number: int) -> float:
    """How long a node of this number waits before it listens first, below LISTEN_EACH_S.

    A thousand nodes that began in one second do not ask slurmctld in one second then.
    """
    return number * _GOLDEN % 1.0 * LISTEN_EACH_S
