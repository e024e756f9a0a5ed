"""How often machine failures and spot reclaims interrupt a job. `goodput` has the cost of interruptions.

Rates are ranges, since publications differ. Failures are assumed independent and equally likely at any time (a Poisson
process): rates add up, and n machines fail n times as often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from corral.catalog.accelerators.failure_rates import Cause, FailureStudy, MeasuredJobs, failure_studies, measured_jobs
from corral.catalog.aws.spot_interruption_rates import SpotBand
from corral.forecast.cost.cost_range import HOURS_PER_MONTH

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptionRate:
    """The hourly rate of interruptions by one cause."""

    cause: Cause
    low_per_h: float
    high_per_h: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """The interruption rates of a job by cause, with their sources."""

    rates: tuple[InterruptionRate, ...]
    sources: tuple[str, ...]

    @property
    def low_per_h(self) -> float:
        """The lowest expected hourly rate."""
        return sum(rate.low_per_h for rate in self.rates)

    @property
    def high_per_h(self) -> float:
        """The highest expected hourly rate."""
        return sum(rate.high_per_h for rate in self.rates)

    @property
    def longest_mtbf_s(self) -> float:
        """Mean time between interruptions, at best; infinite if none is expected."""
        return mtbf_s(self.low_per_h)

    @property
    def shortest_mtbf_s(self) -> float:
        """Mean time between interruptions, at worst."""
        return mtbf_s(self.high_per_h)

    def plus(self, other: Interruptions) -> Interruptions:
        """Both together."""
        return Interruptions(rates=(*self.rates, *other.rates), sources=(*self.sources, *other.sources))


def mtbf_s(per_h: float) -> float:
    """Mean time between interruptions of this rate; infinite without any."""
    return _SECONDS_PER_HOUR / per_h if per_h else math.inf


def machine_interruptions(
    accelerators: int,
    *,
    studies: Sequence[FailureStudy] | None = None,
    jobs: Sequence[MeasuredJobs] | None = None,
) -> Interruptions:
    """Interruptions by failures and maintenance of a job that needs all of its accelerators, by cause.

    From the lowest to the highest rate of the studies, times accelerators; the high end is that of measured jobs if
    these failed more often, as small jobs do. The studies that report causes give their shares. `studies`, `jobs`: by
    default all published ones.
    """
    known = failure_studies() if studies is None else tuple(studies)
    measured = measured_jobs() if jobs is None else tuple(jobs)
    each = [study.per_accelerator_h for study in known]
    low = min(each, default=0.0) * accelerators
    high = max(max(each, default=0.0) * accelerators, _measured_per_h(accelerators, measured))
    return Interruptions(
        rates=tuple(
            InterruptionRate(cause=cause, low_per_h=low * part, high_per_h=high * part) for cause, part in _parts(known)
        ),
        sources=(*(study.source for study in known), *(job.source for job in measured)),
    )


def spot_interruptions(instances: int, band: SpotBand) -> Interruptions:
    """Interruptions by spot reclaims of a job that needs all of these instances.

    If a share p of instances is reclaimed per month, the rate of each is -ln(1 - p) / 730 h. Reclaims may not be
    independent: if AWS reclaims several at once, the job is interrupted less often.
    """
    low, high = (_per_h(share) * instances for share in (band.low, band.high))
    rate = InterruptionRate(cause=Cause.SPOT, low_per_h=low, high_per_h=high)
    return Interruptions(rates=(rate,), sources=(f"{band.source}: {band.label} a month",))


def chance_of_none(per_h: float, hours: float) -> float:
    """The probability that a job of so many hours is not interrupted: exp(-T / MTBF)."""
    return math.exp(-per_h * hours)


def _per_h(share_per_month: float) -> float:
    return -math.log1p(-share_per_month) / HOURS_PER_MONTH


def _measured_per_h(accelerators: int, jobs: Sequence[MeasuredJobs]) -> float:
    """The measured rate of a job of this size: log-log interpolated, proportional below, constant above."""
    if not jobs:
        return 0.0
    first, last = jobs[0], jobs[-1]
    if accelerators <= first.accelerators:
        return first.per_h * accelerators / first.accelerators
    if accelerators >= last.accelerators:
        return last.per_h
    right = next(index for index, job in enumerate(jobs) if job.accelerators > accelerators)
    below, above = jobs[right - 1], jobs[right]
    way = math.log(accelerators / below.accelerators) / math.log(above.accelerators / below.accelerators)
    return math.exp((1 - way) * math.log(below.per_h) + way * math.log(above.per_h))


def _parts(studies: Sequence[FailureStudy]) -> tuple[tuple[Cause, float], ...]:
    """The share of each cause in these studies; in all published studies if none of these reports causes."""
    with_causes = [study for study in studies if study.causes] or [study for study in failure_studies() if study.causes]
    counts = {cause: sum(study.causes.get(cause, 0) for study in with_causes) for cause in Cause}
    total = sum(counts.values())
    return tuple((cause, count / total) for cause, count in counts.items() if count)
