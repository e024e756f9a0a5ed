"""What a life took in words, the same on a terminal and on a page: rows of tables, sentences. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from corral.report.amounts import count, duration, lacking, summed, usd
from corral.report.spent.compared import Comparison
from corral.report.spent.interruptions import Interruption
from corral.report.spent.jobs import JobCost
from corral.report.spent.ledger import PoolCost, Share, Spent

Row = tuple[str, ...]
POOL_COLUMNS = ("queue", "machines of", ">machines", ">node hours", ">booting", ">idle", ">in jobs", ">USD/h", ">USD")
INTERRUPTION_COLUMNS = ("at", "what", "machines", "jobs", ">waited", ">lost, at most", ">USD lost")
JOB_COLUMNS = ("job", "name", "user", "state", ">nodes", ">runs", ">requeued", ">waited", ">ran", ">node hours", ">USD")
PARTS: Sequence[Callable[[PoolCost], Share]] = (
    lambda pool: pool.booting,
    lambda pool: pool.idle,
    lambda pool: pool.busy,
)
COMPARISON_COLUMNS = ("figure", ">forecast", ">so far")
_WHAT = {"notice": "taken back", "forgotten": "gone or silent", "rebooted": "booted again"}
# What the figures stand on; docs/events.md says more.
ASSUMED = (
    "a machine is paid for from its launch to its end, by the second; EC2 counts a minute at least",
    "prices are those of the catalogue as they are now, before taxes, not those of the bill; spot prices are a range",
    "a reservation costs what on-demand does, and a block its price by the hour, while a machine runs in them; what"
    " they cost unused is not counted",
    "of the work of an interrupted run nothing is lost at least, and at most all since its last checkpoint, or since it"
    " began where the interval is not known",
    "traffic, requests and stored data are paid by use and are in no sum",
)


def so_far(took: Spent) -> str:
    """All that it cost, and its two parts."""
    parts = f"nodes {summed(took.nodes_usd)}, all else {summed(took.things_usd)}"
    return f"{summed(took.usd)} USD in {duration(took.hours * 3600)}: {parts}{lacking(took.usd)}"


def node_time(took: Spent) -> str:
    """What the time of its machines went into."""
    if not took.node_s:
        return "no machine of a queue was launched"
    parts = zip(("booting", "idle", "in jobs"), map(took.total, PARTS), strict=True)
    told = [f"{part.node_s / took.node_s:.0%} {name} ({summed(part.usd)} USD)" for name, part in parts]
    return f"{hours(took.node_s)} node hours: {', '.join(told)}"


def effective(took: Spent) -> str:
    """The part of the machines' time that was kept work."""
    found = took.effective
    if found is None:
        return "-"
    low, high = (f"{part:.0%}" for part in found)
    return low if low == high else f"{low} - {high}"


def interrupted(took: Spent) -> str:
    """How often, and what it cost."""
    if not took.interruptions:
        return "none"
    taken = sum(one.machines for one in took.interruptions)
    lost = f"up to {hours(took.lost.node_s)} node hours of work lost ({summed(took.lost.usd)} USD)"
    machines = "1 machine" if taken == 1 else f"{count(taken)} machines"
    return f"{count(len(took.interruptions))}, of {machines}; {lost}"


def pool_rows(took: Spent) -> Iterator[Row]:
    """A row for each pool, then their sum where there are several."""
    for one in took.pools:
        name = (one.sold.queue, one.sold.named, count(one.machines))
        shares = [hours(of(one).node_s) for of in (_together, *PARTS)]
        yield (*name, *shares, usd(one.sold.usd_per_hour), summed(one.together.usd))
    if len(took.pools) > 1:
        shares = [hours(took.total(of).node_s) for of in (_together, *PARTS)]
        yield ("together", "", count(len(took.machines)), *shares, "", summed(took.nodes_usd))


def thing_rows(took: Spent) -> Iterator[Row]:
    """A row for each thing beside nodes, then their sum."""
    yield from ((name, usd(cost)) for name, cost in took.things)
    yield ("together", summed(took.things_usd))


def interruption_rows(found: Sequence[Interruption]) -> Iterator[Row]:
    """A row for each, the oldest first."""
    for one in found:
        what = ", ".join(_WHAT.get(kind, kind) for kind in one.kinds)
        waited = duration(one.waited_s) if one.resumed else f"{duration(one.waited_s)}, still"
        lost = f"{hours(one.lost_node_s)} node hours" if one.jobs else "-"
        yield (
            when(one.at), what, one.nodes, ", ".join(one.jobs) or "none", waited if one.jobs else "-", lost,
            summed(one.lost_usd) if one.jobs else "-",
        )  # fmt: skip


def job_rows(found: Sequence[JobCost]) -> Iterator[Row]:
    """A row for each, in the order of their submission."""
    for one in found:
        yield (
            one.job_id, one.name, one.user, one.state, count(one.nodes), count(one.runs), count(one.requeues),
            duration(one.waited_s), duration(one.ran_s), hours(one.node_s), summed(one.usd),
        )  # fmt: skip


def comparison_rows(against: Comparison) -> Iterator[Row]:
    """A row for each figure: by the forecast, and so far."""
    for one in against.rows:
        yield one.what, ends(one.what, one.low, one.high), ends(one.what, one.least, one.most)


def comparison_lead(against: Comparison) -> str:
    """Which job is compared, and with which forecast."""
    how = "completed" if against.done else "so far: days, dollars and interruptions are those of a part"
    apart = f" on {against.planned:,} node{'s' if against.planned > 1 else ''}, the job had {against.nodes:,}"
    nodes = apart if against.nodes != against.planned else ""
    return f"Job {against.job_id} {against.name}, {how}; the forecast is that of {', '.join(against.markets)}{nodes}."


def ends(what: str, low: float | None, high: float | None) -> str:
    """From the least to the most of a figure; parts of 1 in percent."""
    parts = what.startswith("part")
    shown = ["?" if one is None else f"{one:.1%}" if parts else f"{one:,.2f}" for one in (low, high)]
    return shown[0] if shown[0] == shown[1] else " - ".join(shown)


def hours(seconds: float) -> str:
    """Hours with two places, or one from ten on."""
    value = seconds / 3600
    return f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def when(at: datetime) -> str:
    """The moment, with its day."""
    return f"{at:%Y-%m-%d %H:%M:%S}"


def _together(pool: PoolCost) -> Share:
    return pool.together
