"""The links and the network of a run: the links that a group spans, and the time of each collective."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.accelerators.accelerators import AcceleratorModel
from corral.catalog.accelerators.measured_collectives import MeasuredCurve, find_curve
from corral.catalog.accelerators.training_constants import training_constants
from corral.forecast.training.collective_time import (
    all_gather_s,
    measured_s,
    point_to_point_s,
    ring_all_reduce_s,
    two_level_all_reduce_s,
)

_MIN_SHARE = 0.02  # of the network's rate: below it a message is all latency
_GBPS = 1e9 / 8
_CURVE_OF = {16: "p4de.24xlarge", 8: "p5.48xlarge", 4: "p6-b200.48xlarge"}  # by the narrowest numbers: its generation
_CURVES = {"p4de.24xlarge": 6.25e9, "p5.48xlarge": 50e9, "p6-b200.48xlarge": 50e9}  # bytes/s of one, one way


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """Ranks that communicate: `inside` of them in each of `across` link domains."""

    inside: float
    across: float

    @property
    def ranks(self) -> float:
        """The number of ranks."""
        return self.inside * self.across


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorLinks:
    """The links of one accelerator. `network_gbps`: its share of the node's network. `curve`: measured all-reduces."""

    accelerator: AcceleratorModel
    network_gbps: float
    curve: MeasuredCurve

    @property
    def link_rate(self) -> float:
        """Bytes per second of one accelerator's link, one way, as NCCL reaches it."""
        return max(self.accelerator.link_one_way_bytes_per_s * training_constants().link_share, 1.0)

    @property
    def network_rate(self) -> float:
        """Bytes per second of one accelerator's share of the network line rate, one way."""
        return self.network_gbps * _GBPS

    def group(self, ranks: float, stride: float) -> RankGroup:
        """The ranks of a group whose neighbours are `stride` accelerators apart."""
        inside = max(1.0, min(ranks, self.accelerator.link_domain / stride))
        return RankGroup(inside=inside, across=max(1.0, ranks / inside))

    def network_share(self, size: float) -> float:
        """The share of the line rate that an all-reduce of this size reaches in the measured curve; at most 1."""
        ideal = two_level_all_reduce_s(
            size, self.curve.accelerators_per_node, self.curve.nodes, 1e30, _CURVES[self.curve.fabric]
        )
        return min(1.0, max(_MIN_SHARE, ideal / measured_s(self.curve, size)))

    def all_reduce_s(self, size: float, group: RankGroup) -> float:
        """All-reduce of a buffer of this size."""
        return 2 * self.all_gather_s(size, group)

    def all_gather_s(self, size: float, group: RankGroup) -> float:
        """All-gather to a buffer of this size, or reduce-scatter of it: half an all-reduce."""
        links = all_gather_s(size, group.inside, training_constants().link_alpha_s, self.link_rate)
        if group.across <= 1:
            return links
        rate = self.network_rate * self.network_share(size)
        return (
            max(links, all_gather_s(size / group.inside, group.across, 0.0, rate))
            + training_constants().network_alpha_s
        )

    def single_card_all_gather_s(self, size: float, group: RankGroup) -> float:
        """An all-gather whose ring uses one card per node at a time."""
        if group.across <= 1:
            return self.all_gather_s(size, group)
        return all_gather_s(
            size,
            group.across,
            training_constants().network_alpha_s,
            self.network_rate * training_constants().single_card_share,
        )

    def tensor_all_reduce_s(self, size: float, ranks: float) -> float:
        """All-reduce among tensor-parallel ranks: in the link domain, or over the network if they exceed it."""
        group = self.group(ranks, 1)
        if group.across > 1:
            return self.all_reduce_s(size, group)
        return ring_all_reduce_s(size, ranks, training_constants().link_alpha_s, self.link_rate)

    def send_s(self, size: float, *, within: bool) -> float:
        """A message from one rank to another. `within`: in the same link domain."""
        if within:
            return point_to_point_s(size, training_constants().link_alpha_s, self.link_rate)
        return point_to_point_s(size, training_constants().network_alpha_s, self.network_rate)

    def all_to_all_s(self, size: float, copies: float, group: RankGroup, *, once_a_node: bool) -> float:
        """Every rank sends `size` to `copies` ranks chosen evenly: the slower of link and network traffic.

        `once_a_node`: data for several ranks of a node is sent once and copied over its links (DeepEP).
        """
        sent = min(copies, group.across) if once_a_node else copies
        outside = (1 - 1 / group.across) * sent * size / (self.network_rate * training_constants().all_to_all_share)
        inside = (1 - 1 / group.inside) * copies * size / self.link_rate
        steps = (group.inside - 1) * training_constants().link_alpha_s + (
            group.across - 1
        ) * training_constants().network_alpha_s
        return max(inside, outside) + steps


def links_of(accelerator: AcceleratorModel, network_gbps: float | None) -> AcceleratorLinks:
    """The links of an accelerator; without a known network, the usual one of its generation."""
    narrowest = min(accelerator.peak_tflops)
    return AcceleratorLinks(
        accelerator=accelerator,
        network_gbps=network_gbps or accelerator.network_gbps,
        curve=find_curve(_CURVE_OF[narrowest]),
    )
