"""Usage as text, shared by the terminal and the HTML page: table rows and sentences. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from corral.report.formatting import count, duration, lacking, summed, usd
from corral.report.usage.forecast_vs_actual import ForecastComparison
from corral.report.usage.interruption_cost import Interruption
from corral.report.usage.job_usage import JobCost
from corral.report.usage.usage_summary import PoolCost, Share, Usage

Row = tuple[str, ...]
POOL_COLUMNS = (
    "queue",
    "type and market",
    ">machines",
    ">node hours",
    ">booting",
    ">idle",
    ">in jobs",
    ">USD/h",
    ">USD",
)
INTERRUPTION_COLUMNS = ("at", "kind", "machines", "jobs", ">waited", ">max. lost", ">USD lost")
JOB_COLUMNS = ("job", "name", "user", "state", ">nodes", ">runs", ">requeued", ">waited", ">ran", ">node hours", ">USD")
PARTS: Sequence[Callable[[PoolCost], Share]] = (
    lambda pool: pool.booting,
    lambda pool: pool.idle,
    lambda pool: pool.busy,
)
COMPARISON_COLUMNS = ("figure", ">forecast", ">actual")
_WHAT = {"notice": "reclaimed", "marked-down": "lost or silent", "rebooted": "rebooted"}
# The basis of the figures; see docs/events.md.
ASSUMED = (
    "a machine is billed by the second from its launch to its end; EC2 bills at least one minute",
    "prices are the catalog's current ones before taxes, not those of the bill; spot prices are a range",
    "a reservation costs the on-demand price and a capacity block its hourly price while a machine runs in it; unused"
    " time is not included",
    "an interrupted run loses at least nothing, and at most its work since the last checkpoint, or since its start if"
    " the checkpoint interval is unknown",
    "no sum includes traffic, requests and stored data, which are billed by use",
)


def so_far(usage: Usage) -> str:
    """The total cost and its two parts."""
    parts = f"nodes {summed(usage.nodes_usd)}, everything else {summed(usage.other_usd)}"
    return f"{summed(usage.usd)} USD in {duration(usage.hours * 3600)}: {parts}{lacking(usage.usd)}"


def node_time(usage: Usage) -> str:
    """How node time was spent."""
    if not usage.node_s:
        return "no node was launched"
    parts = zip(("booting", "idle", "in jobs"), map(usage.total, PARTS), strict=True)
    shares = [f"{part.node_s / usage.node_s:.0%} {name} ({summed(part.usd)} USD)" for name, part in parts]
    return f"{hours(usage.node_s)} node hours: {', '.join(shares)}"


def goodput(usage: Usage) -> str:
    """The share of node time spent on work that was not lost."""
    found = usage.goodput
    if found is None:
        return "-"
    low, high = (f"{part:.0%}" for part in found)
    return low if low == high else f"{low} - {high}"


def interrupted(usage: Usage) -> str:
    """The number and cost of interruptions."""
    if not usage.interruptions:
        return "none"
    lost_machines = sum(one.machines for one in usage.interruptions)
    lost = f"up to {hours(usage.lost.node_s)} node hours of work lost ({summed(usage.lost.usd)} USD)"
    machines = "1 machine" if lost_machines == 1 else f"{count(lost_machines)} machines"
    return f"{count(len(usage.interruptions))}, {machines}; {lost}"


def pool_rows(usage: Usage) -> Iterator[Row]:
    """A row per pool, and a total if there are several."""
    for one in usage.pools:
        name = (one.rate.queue, one.rate.named, count(one.machines))
        shares = [hours(of(one).node_s) for of in (_whole_time, *PARTS)]
        yield (*name, *shares, usd(one.rate.usd_per_hour), summed(one.together.usd))
    if len(usage.pools) > 1:
        shares = [hours(usage.total(of).node_s) for of in (_whole_time, *PARTS)]
        yield ("total", "", count(len(usage.machines)), *shares, "", summed(usage.nodes_usd))


def other_rows(usage: Usage) -> Iterator[Row]:
    """A row per charge other than nodes, and their total."""
    yield from ((name, usd(cost)) for name, cost in usage.other)
    yield ("total", summed(usage.other_usd))


def interruption_rows(found: Sequence[Interruption]) -> Iterator[Row]:
    """A row per interruption, the oldest first."""
    for one in found:
        what = ", ".join(_WHAT.get(kind, kind) for kind in one.kinds)
        waited = duration(one.waited_s) if one.resumed else f"{duration(one.waited_s)}, ongoing"
        lost = f"{hours(one.lost_node_s)} node hours" if one.jobs else "-"
        yield (
            when(one.at), what, one.nodes, ", ".join(one.jobs) or "none", waited if one.jobs else "-", lost,
            summed(one.lost_usd) if one.jobs else "-",
        )  # fmt: skip


def job_rows(found: Sequence[JobCost]) -> Iterator[Row]:
    """A row per job, in the order of submission."""
    for one in found:
        yield (
            one.job_id, one.name, one.user, one.state, count(one.nodes), count(one.runs), count(one.requeues),
            duration(one.waited_s), duration(one.ran_s), hours(one.node_s), summed(one.usd),
        )  # fmt: skip


def comparison_rows(against: ForecastComparison) -> Iterator[Row]:
    """A row per figure: forecast and actual."""
    for one in against.rows:
        yield one.what, _ends(one.low, one.high, one.fraction), _ends(one.least, one.most, one.fraction)


def comparison_lead(against: ForecastComparison) -> str:
    """The job and the forecast compared."""
    how = "completed" if against.completed else "still running: its days, dollars and interruptions are partial"
    apart = f" on {against.planned:,} node{'s' if against.planned > 1 else ''}, the job had {against.nodes:,}"
    nodes = apart if against.nodes != against.planned else ""
    return f"Job {against.job_id} {against.name}, {how}; the forecast is that of {', '.join(against.markets)}{nodes}."


def _ends(low: float | None, high: float | None, fraction: bool) -> str:
    """The range of a figure; a fraction in percent."""
    shown = ["?" if one is None else f"{one:.1%}" if fraction else f"{one:,.2f}" for one in (low, high)]
    return shown[0] if shown[0] == shown[1] else " - ".join(shown)


def hours(seconds: float) -> str:
    """Hours with two decimals, or one from ten on."""
    value = seconds / 3600
    return f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def when(at: datetime) -> str:
    """The time with its date."""
    return f"{at:%Y-%m-%d %H:%M:%S}"


def _whole_time(pool: PoolCost) -> Share:
    return pool.together
