"""The network of a declared run as a section of its page: all-reduce bandwidth by size, and its effects."""

from __future__ import annotations

from collections.abc import Iterator

from corral.forecast.fabric.all_reduce import Algorithm
from corral.forecast.fabric.run_network import NetworkOutlook
from corral.forecast.training.collective_time import bus_bandwidth
from corral.report.charts.all_reduce_chart import over_sizes, size_words
from corral.report.charts.line_plots import Line
from corral.report.run.network_summary import algorithm_rows, network_facts
from corral.report.sections.section import Section, Table, picture

_NAMES = {
    Algorithm.RING: "ring, by formula",
    Algorithm.TREE: "tree, by formula",
    Algorithm.HIERARCHICAL: "hierarchical, by formula",
    Algorithm.MEASURED: "measured share of EFA, used by the forecast",
}


def network_section(network: NetworkOutlook) -> Section:
    """Bus bandwidth by message size for all ranks of the run; the table has every figure of the picture."""
    ranks = network.curves[0][0].ranks
    facts = [f"{name}: {text}" if name else text for name, text in network_facts(network)]
    reduced = [f"{name}: {seconds} s, {rate} GB/s" for name, seconds, rate in algorithm_rows(network)]
    title, drawn = "Bus bandwidth of an all-reduce by message size", _lines(network)
    columns = ("message", *(f">{one.algorithm.value}, GB/s" for one in network.curves[0]))
    rows = tuple(
        (size_words(row[0].size), *(f"{one.bus_bandwidth / 1e9:,.1f}" for one in row)) for row in network.curves
    )
    return Section(
        anchor="network",
        title="Network between the nodes",
        lead=f"All-reduce among all {ranks:,.0f} ranks by message size. The topology is assumed: AWS publishes none.",
        pictures=(picture(lambda width: over_sizes(title, drawn, y_words="GB/s on the bus", width=width)),),
        tables=(Table(caption="Bus bandwidth by message size", columns=columns, rows=rows),),
        lines=(
            *facts,
            *([f"all-reduce of the gradients - {'; '.join(reduced)}"] if reduced else []),
            _measured_words(network),
        ),
    )


def _lines(network: NetworkOutlook) -> list[Line]:
    return [*_by_algorithm(network), _measured(network)]


def _by_algorithm(network: NetworkOutlook) -> Iterator[Line]:
    for algorithm, name in _NAMES.items():
        points = [one for row in network.curves for one in row if one.algorithm is algorithm]
        if points:
            yield Line(name=name, points=tuple((one.size, one.bus_bandwidth / 1e9) for one in points))


def _measured(network: NetworkOutlook) -> Line:
    curve, least = network.measured, network.curves[0][0].size
    points = [(size, bus_bandwidth(size, curve.ranks, s) / 1e9) for size, s in curve.points if size >= least]
    tips = tuple(f"{size_words(size)}, {rate:,.1f}" for size, rate in points)
    return Line(name=f"measured on {curve.nodes} {curve.fabric}", points=tuple(points), joined=False, tips=tips)


def _measured_words(network: NetworkOutlook) -> str:
    facts = ", ".join(f"{size_words(size)} {rate:,.1f}" for size, rate in _measured(network).points)
    return f"measured on {network.measured.nodes} {network.measured.fabric}, in GB/s: {facts} (docs/network.md)"
