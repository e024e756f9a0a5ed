"""A plan and a declared run as one HTML file to hand on: what would exist, what it costs, how a run would go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template

from corral.forecast.bill import CostForecast
from corral.forecast.notes import Note
from corral.forecast.reliability import effective_time_curve
from corral.forecast.training.memory import GIB
from corral.forecast.training.reasons import PARTS, layout_words, why_it_loses
from corral.forecast.whole.course import Course
from corral.forecast.whole.run import WholeRun
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.report.amounts import count, duration, durations, lacking, spread, summed, usd
from corral.report.charts import Part, Range, curve, ranges, stacked
from corral.report.run import MEMORY_PARTS

_SHORTEST_S, _LONGEST_S = 10.0, 86_400.0  # between checkpoints, of the curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page: an anchor, a heading, a picture, tables, sentences. Each may be missing but the first two."""

    anchor: str
    title: str
    lead: str = ""
    picture: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()


def page(
    base: BasePlan, cluster: ClusterPlan, cost: CostForecast, notes: Sequence[Note], run: WholeRun | None = None
) -> str:
    """The whole HTML file. Nothing in it is fetched from elsewhere."""
    sections = [*(_run_sections(run) if run else ()), *_plan_sections(base, cluster, cost, notes)]
    title = f"{run.spec.model.name} on {cluster.name}" if run else f"Environment {cluster.name}"
    return _template().render(title=title, lead=_lead(cluster, cost, run), cards=_cards(cost, run), sections=sections)


def _lead(cluster: ClusterPlan, cost: CostForecast, run: WholeRun | None) -> str:
    if run is None:
        return f"{cluster.region}; {summed(cost.maximum_usd_per_hour)} USD an hour with every node at work."
    spec = run.spec
    return (
        f"{spec.tokens / 1e9:,.0f} billion tokens on {spec.nodes} {spec.machine.name} of queue {spec.queue} in"
        f" {cluster.region}: {layout_words(run.training.layout)}."
    )


def _cards(cost: CostForecast, run: WholeRun | None) -> list[tuple[str, str]]:
    """The few figures that people look for first."""
    if run is None:
        return [
            ("idle base, USD a month", summed(cost.idle_base_usd_per_month)),
            ("idle cluster, USD an hour", summed(cost.idle_cluster_usd_per_hour)),
            ("every node, USD an hour", summed(cost.maximum_usd_per_hour)),
        ]
    training = run.training
    if not training.fits:
        return [("it does not fit: GiB too much", f"{training.missing_gib:.1f}")]
    low, high = training.days_range
    cheapest = min((one for one in run.courses if one.enough and one.usd.usd), key=_low, default=None)
    return [
        ("days, uninterrupted", f"{low:,.1f} - {high:,.1f}"),
        ("tokens a second", count(training.speed.tokens_per_s)),
        ("MFU", f"{training.mfu:.1%}"),
        *([(f"USD, {cheapest.market.value}", summed(cheapest.usd))] if cheapest else []),
    ]


def _low(course: Course) -> float:
    return course.usd.usd.low if course.usd.usd else float("inf")


def _run_sections(run: WholeRun) -> Iterator[Section]:
    yield _layout(run)
    yield _memory(run)
    if run.training.fits:
        yield _step(run)
    if run.courses:
        yield _time(run)
        yield _money(run)
    if run.saving and run.courses:
        yield _saving(run)
    if run.warnings:
        yield Section(anchor="mind", title="Mind", lines=run.warnings)
    yield Section(anchor="assumed", title="Assumed", lines=run.assumed)


def _layout(run: WholeRun) -> Section:
    choice = run.training.choice
    rows = [(layout_words(run.training.layout), "declared" if choice is None else "the fastest that fits")]
    if choice and choice.best:
        others = [*choice.others, *([choice.too_large] if choice.too_large else [])]
        rows += [(layout_words(one.layout), why_it_loses(one, choice.best)) for one in others]
    lead = f"Of {choice.examined:,} layouts." if choice else "As the run file says."
    return Section(anchor="layout", title="Layout", lead=lead, columns=("layout", ""), rows=tuple(rows))


def _memory(run: WholeRun) -> Section:
    memory, limit = run.training.memory, run.training.memory_gib
    found = [(name, float(getattr(memory, name)) / GIB) for name in MEMORY_PARTS]
    parts = [Part(name=name, value=gib, words=f"{name}: {gib:.1f} GiB") for name, gib in found if gib]
    return Section(
        anchor="memory",
        title="Memory of the accelerator that needs most",
        lead=f"{memory.total_gib:.1f} of {limit:,.0f} GiB.",
        picture=stacked("Memory by what takes it", parts, limit=limit, limit_words=f"{limit:,.0f} GiB"),
        columns=("part", "GiB"),
        rows=tuple((part.name, f"{part.value:.1f}") for part in parts),
    )


def _step(run: WholeRun) -> Section:
    speed = run.training.speed
    seconds = {field.name: float(getattr(speed.parts, field.name)) for field in fields(speed.parts)}
    ranked = [(PARTS[name], value) for name, value in sorted(seconds.items(), key=lambda item: -item[1]) if value]
    total = speed.parts.total
    parts = [
        Part(name=name, value=value, words=f"{name}: {value:.3g} s, {value / total:.1%}") for name, value in ranked
    ]
    off = f"May be off by {run.training.certainty.off:.0%} either way: {run.training.certainty.why}."
    return Section(
        anchor="speed",
        title=f"A step of {total:.3g} s, bound by {run.training.bound}",
        lead=f"{speed.tokens_per_s:,.0f} tokens a second, MFU {run.training.mfu:.1%}. {off}",
        picture=stacked("Where the time of a step goes", parts),
        columns=("part", "s", "share"),
        rows=tuple((part.name, f"{part.value:.3g}", f"{part.value / total:.1%}") for part in parts),
    )


def _time(run: WholeRun) -> Section:
    rows = tuple(
        (
            one.market.value if one.enough else f"{one.market.value} (not enough nodes)",
            durations(one.interruptions.shortest_mtbf_s, one.interruptions.longest_mtbf_s),
            _progress(one),
            spread(one.days.low, one.days.high),
        )
        for one in run.courses
    )
    found = [
        Range(name=one.market.value, low=one.days.low, high=one.days.high, words=spread(one.days.low, one.days.high))
        for one in run.courses
    ]
    return Section(
        anchor="time",
        title="Days until it is done",
        lead="From the fewest to the most interruptions that are to be expected.",
        picture=ranges("Days by market", found),
        columns=("market", "interrupted every", "time that is progress", "days"),
        rows=rows,
    )


def _money(run: WholeRun) -> Section:
    names = [charge.what for charge in run.courses[0].charges[1:]]
    rows = [("the nodes", *(usd(one.charges[0].usd) for one in run.courses))]
    rows += [(name, *(usd(one.charges[place].usd) for one in run.courses)) for place, name in enumerate(names, start=1)]
    rows.append(("together", *(summed(one.usd) for one in run.courses)))
    found = [
        Range(name=one.market.value, low=one.usd.usd.low, high=one.usd.usd.high, words=f"{summed(one.usd)} USD")
        for one in run.courses
        if one.usd.usd
    ]
    told = tuple(f"{one.market.value}:{lacking(one.usd)}" for one in run.courses if one.usd.missing)
    return Section(
        anchor="money",
        title="US dollars until it is done",
        lead="Before taxes; a range where prices, speed and interruptions are not certain.",
        picture=ranges("US dollars by market", found),
        columns=("", *(one.market.value for one in run.courses)),
        rows=tuple(rows),
        lines=told,
    )


def _saving(run: WholeRun) -> Section:
    saving = run.saving
    assert saving is not None  # its caller has looked
    dearest = max(run.courses, key=lambda one: one.interruptions.high_per_h or one.interruptions.low_per_h)
    per_h = dearest.interruptions.high_per_h or dearest.interruptions.low_per_h
    points = effective_time_curve(saving.habits, per_h, shortest_s=_SHORTEST_S, longest_s=_LONGEST_S)
    best = (dearest.range.worst or dearest.range.best).interval_s
    size = saving.size.size_bytes
    rows = [
        ("size", f"{size / 1e9:,.1f} GB"),
        ("written in", f"{duration(saving.write_s)} at {saving.write.bytes_per_s / 1e9:,.2f} GB/s, {saving.place}"),
        ("stops the run", f"{saving.habits.checkpointing.stall_s:,.1f} s"),
        ("read in", duration(saving.read_s)),
    ]
    if saving.faster:
        system = saving.faster.system
        rows.append(("in a minute", f"with {system.size_gib:,} GiB of {system.deployment.name}"))
    return Section(
        anchor="checkpoints",
        title="Checkpoints",
        lead=f"How much of the time is progress, by how often the run saves; {dearest.market.value}, at worst.",
        picture=curve(
            "Time that is progress, by the time between checkpoints",
            [(point.interval_s, point.progress) for point in points],
            x_words="between two checkpoints",
            y_words="progress",
            marked=[(best, f"best: {duration(best)}")],
        ),
        columns=("", ""),
        rows=tuple(rows),
    )


def _plan_sections(
    base: BasePlan, cluster: ClusterPlan, cost: CostForecast, notes: Sequence[Note]
) -> Iterator[Section]:
    yield Section(
        anchor="queues",
        title="Queues",
        columns=("queue", "nodes", "instance type", "tried in this order", "network interfaces of a node"),
        rows=tuple(
            (
                queue.name,
                f"up to {queue.max_nodes}, {queue.min_nodes or 'none'} always on",
                queue.instance_type,
                ", ".join(f"{offer.market.value} {offer.zone_id}" for offer in queue.offers),
                f"{len(queue.nics)} on {len({nic.card for nic in queue.nics})} cards{', EFA' if queue.efa else ''}",
            )
            for queue in cluster.queues
        ),
    )
    yield Section(
        anchor="cost",
        title="What the environment costs",
        lead="US dollars an hour; a range where spot prices move.",
        columns=("", "USD/h", "USD/month", "source"),
        rows=(
            *(
                (item.named, usd(item.usd_per_hour), usd(item.usd_per_month), item.source or "?")
                for item in (*cost.base, *cost.cluster)
            ),
            *(
                (f"{row.nodes} {row.instance_type}, {row.market.value}", usd(row.usd_per_hour), "", row.source or "?")
                for row in cost.queues
            ),
        ),
    )
    yield Section(
        anchor="places",
        title="Network and file systems",
        columns=("", ""),
        rows=(
            ("VPC", str(base.vpc_cidr) if base.vpc_cidr else f"adopted: {base.adopted_vpc}"),
            *((zone.zone_id, f"private subnet {zone.private}") for zone in base.zones),
            *((("/home", "EFS; kept"),) if base.home else ()),
            *(
                (system.mount, f"Lustre {system.deployment}, {system.size_gib:,} GiB in {system.zone_id}")
                for system in cluster.lustre
            ),
        ),
    )
    if notes:
        yield Section(
            anchor="notes", title="To know", columns=("", ""), rows=tuple((note.about, note.text) for note in notes)
        )


def _progress(one: Course) -> str:
    best, worst = one.range.best.shares.progress, one.range.worst
    return f"{worst.shares.progress:.1%} - {best:.1%}" if worst else f"up to {best:.1%}"


@cache
def _template() -> Template:
    source = files("corral").joinpath("templates", "report", "plan.html.j2").read_text(encoding="utf-8")
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    ).from_string(source)
