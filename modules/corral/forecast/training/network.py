"""The links and the network below a run: who sits where, and what each kind of communication takes there."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.accelerators import AcceleratorModel
from corral.catalog.collectives import MeasuredCurve, find_curve
from corral.catalog.training_constants import training_constants
from corral.forecast.training.collectives import (
    all_gather_s,
    measured_s,
    point_to_point_s,
    ring_all_reduce_s,
    two_level_all_reduce_s,
)

_LEAST_SHARE = 0.02  # of the network's rate: below it a message is all latency
_GBPS = 1e9 / 8
_CURVE_OF = {16: "p4de.24xlarge", 8: "p5.48xlarge", 4: "p6-b200.48xlarge"}  # by the narrowest numbers: its generation
_CURVES = {"p4de.24xlarge": 6.25e9, "p5.48xlarge": 50e9, "p6-b200.48xlarge": 50e9}  # bytes/s of one, one way


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ranks that communicate: `inside` of them in each of `across` link domains."""

    inside: float
    across: float

    @property
    def ranks(self) -> float:
        """All of them."""
        return self.inside * self.across


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What one accelerator stands in. `network_gbps` is its share of the node's network; `curve` how that behaves."""

    accelerator: AcceleratorModel
    network_gbps: float
    curve: MeasuredCurve

    @property
    def link_rate(self) -> float:
        """Bytes a second that one accelerator sends over its link, one way, as NCCL reaches it."""
        return max(self.accelerator.link_one_way_bytes_per_s * training_constants().link_share, 1.0)

    @property
    def network_rate(self) -> float:
        """Bytes a second of the network's line for one accelerator, one way."""
        return self.network_gbps * _GBPS

    def group(self, ranks: float, stride: float) -> Group:
        """The ranks of a group whose neighbours are `stride` accelerators apart."""
        inside = max(1.0, min(ranks, self.accelerator.link_domain / stride))
        return Group(inside=inside, across=max(1.0, ranks / inside))

    def network_share(self, size: float) -> float:
        """The share of the line that an all-reduce of this size reaches, by the measured curve; 1 at most."""
        ideal = two_level_all_reduce_s(
            size, self.curve.accelerators_per_node, self.curve.nodes, 1e30, _CURVES[self.curve.fabric]
        )
        return min(1.0, max(_LEAST_SHARE, ideal / measured_s(self.curve, size)))

    def all_reduce_s(self, size: float, group: Group) -> float:
        """All-reduce of a buffer of this size."""
        return 2 * self.all_gather_s(size, group)

    def all_gather_s(self, size: float, group: Group) -> float:
        """All-gather to a buffer of this size, or reduce-scatter of it: half an all-reduce."""
        links = all_gather_s(size, group.inside, training_constants().link_alpha_s, self.link_rate)
        if group.across <= 1:
            return links
        rate = self.network_rate * self.network_share(size)
        return (
            max(links, all_gather_s(size / group.inside, group.across, 0.0, rate))
            + training_constants().network_alpha_s
        )

    def single_card_all_gather_s(self, size: float, group: Group) -> float:
        """The same where a ring passes one card of each node at a time."""
        if group.across <= 1:
            return self.all_gather_s(size, group)
        return all_gather_s(
            size,
            group.across,
            training_constants().network_alpha_s,
            self.network_rate * training_constants().single_card_share,
        )

    def tensor_all_reduce_s(self, size: float, ranks: float) -> float:
        """All-reduce among tensor-parallel ranks: in the link domain, or over the network where they are more."""
        group = self.group(ranks, 1)
        if group.across > 1:
            return self.all_reduce_s(size, group)
        return ring_all_reduce_s(size, ranks, training_constants().link_alpha_s, self.link_rate)

    def send_s(self, size: float, *, within: bool) -> float:
        """One rank to another one, in the same link domain or not."""
        if within:
            return point_to_point_s(size, training_constants().link_alpha_s, self.link_rate)
        return point_to_point_s(size, training_constants().network_alpha_s, self.network_rate)

    def all_to_all_s(self, size: float, copies: float, group: Group, *, once_a_node: bool) -> float:
        """Every rank sends `size` to `copies` ranks chosen evenly: the longer of what stays and what leaves the domain.

        `once_a_node`: what goes to several ranks of a node is sent there once, and copied over its links (DeepEP).
        """
        sent = min(copies, group.across) if once_a_node else copies
        outside = (1 - 1 / group.across) * sent * size / (self.network_rate * training_constants().all_to_all_share)
        inside = (1 - 1 / group.inside) * copies * size / self.link_rate
        steps = (group.inside - 1) * training_constants().link_alpha_s + (
            group.across - 1
        ) * training_constants().network_alpha_s
        return max(inside, outside) + steps


def machine_of(accelerator: AcceleratorModel, network_gbps: float | None) -> Machine:
    """The machine of an accelerator; without a known network, that which its generation usually has."""
    narrowest = min(accelerator.peak_tflops)
    return Machine(
        accelerator=accelerator,
        network_gbps=network_gbps or accelerator.network_gbps,
        curve=find_curve(_CURVE_OF[narrowest]),
    )
