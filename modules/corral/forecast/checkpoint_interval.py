"""The best checkpoint interval, by Young's and Daly's approximations.

`stall_s`: how long a checkpoint stops the job. `mtbf`: the mean seconds between interruptions. Both formulas assume
failures that are equally likely at any time; neither depends on the recovery time.
"""

from __future__ import annotations

import math

from corral.forecast.checkpoint_policy import Checkpointing
from corral.forecast.interruptions import mtbf_s

SHORTEST_S = 1.0  # between checkpoints; real steps are longer


def best_interval_s(checkpointing: Checkpointing, per_h: float, *, paid_s: float = 0.0) -> float:
    """Daly's interval at this interruption rate, at least the write time of a checkpoint, since writes do not overlap.

    `paid_s`: the charge of sending a checkpoint, converted to seconds of the run; it is added to the stall.
    """
    return max(SHORTEST_S, checkpointing.behind_s, daly_s(checkpointing.stall_s + paid_s, mtbf_s(per_h)))


def young_s(stall_s: float, mtbf: float) -> float:
    """sqrt(2 C M), first order. Source: J. W. Young, CACM 17(9), 1974."""
    return math.sqrt(2 * stall_s * mtbf)


def daly_s(stall_s: float, mtbf: float) -> float:
    """sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C, or M if C >= 2 M; infinite without failures.

    The computing time between the end of a checkpoint and the start of the next. Source: J. T. Daly, Future
    Generation Computer Systems 22(3), 2006.
    """
    if math.isinf(mtbf) or stall_s >= 2 * mtbf:
        return mtbf
    part = stall_s / (2 * mtbf)
    return young_s(stall_s, mtbf) * (1 + math.sqrt(part) / 3 + part / 9) - stall_s
