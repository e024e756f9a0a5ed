"""Strong scaling: the speed by number of nodes, with the same batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from corral.forecast.training.layout import Layout
from corral.forecast.training.layout_search import choose, fits_somehow
from corral.forecast.training.search_space import OpenJob
from corral.forecast.training.speed import Speed, forecast_speed, parallel_efficiency

_CRIPPLED = 1.1  # times linear speed-up; a higher value means that the fewer nodes lack memory
_TIMES = 4  # maximum nodes of the curve, as a multiple of the run's


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """The run on so many nodes. `efficiency`: T1/(n Tn) relative to the fewest nodes on which it fits well."""

    nodes: int
    layout: Layout
    speed: Speed
    efficiency: float


def scaling_curve(job: OpenJob, layout: Layout, speed: Speed) -> tuple[ScalingPoint, ...]:
    """The run on 1, 2, 4 and so on nodes, up to four times its own, each in its fastest layout.

    Its own number of nodes keeps its layout. Numbers on which it does not fit, or that do not divide its batch, are
    omitted.
    """
    found = [(job.nodes, layout, speed)]
    found += [one for nodes in _powers(job.nodes * _TIMES) if nodes != job.nodes and (one := _fastest(job, nodes))]
    ranked = sorted(found, key=lambda one: one[0])
    fewest = next(one[2] for one in ranked if parallel_efficiency(one[2], speed) <= _CRIPPLED)
    return tuple(
        ScalingPoint(nodes=nodes, layout=chosen, speed=reached, efficiency=parallel_efficiency(fewest, reached))
        for nodes, chosen, reached in ranked
    )


def on_the_fewest(job: OpenJob, speed: Speed) -> tuple[int, Speed] | None:
    """The fewest nodes, of 1, 2, 4 and so on below the run's own, on which the same batch fits, and the speed there.

    Skips numbers that recompute so much that the run's own `speed` is far above linear.
    """
    fewer = (one for nodes in _powers(job.nodes - 1) if (one := _fastest(job, nodes)))
    return next(((nodes, one) for nodes, _, one in fewer if parallel_efficiency(one, speed) <= _CRIPPLED), None)


def _fastest(job: OpenJob, nodes: int) -> tuple[int, Layout, Speed] | None:
    other = replace(job, nodes=nodes)
    best = choose(other, others=0).best if fits_somehow(other) else None
    return (nodes, best.layout, forecast_speed(other.laid_out(best.layout))) if best else None


def _powers(most: int) -> list[int]:
    return [2**power for power in range(most.bit_length())]
