"""How long to compute between two checkpoints: Young's and Daly's approximations of the best interval.

`stall_s` is what a checkpoint stops the job, `mtbf_s` the mean time between interruptions. Both formulas are for
failures that are equally likely at any time, and neither depends on how long it takes to recover.
"""

from __future__ import annotations

import math


def young_s(stall_s: float, mtbf_s: float) -> float:
    """sqrt(2 C M), first order. Source: J. W. Young, CACM 17(9), 1974."""
    return math.sqrt(2 * stall_s * mtbf_s)


def daly_s(stall_s: float, mtbf_s: float) -> float:
    """sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C, or M where C is 2 M or more; infinite without failures.

    The time of computing between the end of a checkpoint and the beginning of the next. Source: J. T. Daly, Future
    Generation Computer Systems 22(3), 2006.
    """
    if math.isinf(mtbf_s) or stall_s >= 2 * mtbf_s:
        return mtbf_s
    part = stall_s / (2 * mtbf_s)
    return young_s(stall_s, mtbf_s) * (1 + math.sqrt(part) / 3 + part / 9) - stall_s
