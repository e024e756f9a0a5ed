"""The links and the network below a run: who sits where, and what each kind of communication takes there."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.accelerators import AcceleratorModel
from corral.catalog.collectives import MeasuredCurve, find_curve
from corral.forecast.training.collectives import (
    all_gather_s,
    measured_s,
    point_to_point_s,
    ring_all_reduce_s,
    two_level_all_reduce_s,
)

_LINK_SHARE = 0.8  # of a link's rate that NCCL reaches in a node: 235 of 300 GB/s on A100, 370 of 450 on H100
_LINK_ALPHA_S = 5e-6  # a step between two accelerators of a node
_NETWORK_ALPHA_S = 20e-6  # a step between two nodes
_ALL_TO_ALL_SHARE = 0.8  # of the network's rate; 40 of 50 GB/s at 64 MiB, awsome-distributed-ai RESULTS-p5
_LEAST_SHARE = 0.02  # of the network's rate: below it a message is all latency
_GBPS = 1e9 / 8
_DEFAULT_GBPS = {8: 400.0, 16: 200.0}  # of one accelerator, by the narrowest numbers that it multiplies: Hopper, Ampere
_CURVES = {"p4de.24xlarge": 6.25e9, "p5.48xlarge": 50e9, "p6-b200.48xlarge": 50e9}  # one way bytes/s of an accelerator
_SINGLE_CARD_SHARE = 0.75  # of one card, that DeepSpeed's rings of 2021 reach [Narayanan et al. Table 2, ZeRO-3 rows]


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
    """What one accelerator stands in. `network_gbps` is its own share of the node's network; `curve` how that behaves."""

    accelerator: AcceleratorModel
    network_gbps: float
    curve: MeasuredCurve
    per_node: int

    @property
    def link_rate(self) -> float:
        """Bytes a second that one accelerator sends over its link, one way, as NCCL reaches it."""
        return max(self.accelerator.link_one_way_bytes_per_s * _LINK_SHARE, 1.0)

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
        links = all_gather_s(size, group.inside, _LINK_ALPHA_S, self.link_rate)
        if group.across <= 1:
            return links
        rate = self.network_rate * self.network_share(size)
        return max(links, all_gather_s(size / group.inside, group.across, 0.0, rate)) + _NETWORK_ALPHA_S

    def single_card_all_gather_s(self, size: float, group: Group) -> float:
        """The same where a ring passes one card of each node at a time."""
        if group.across <= 1:
            return self.all_gather_s(size, group)
        return all_gather_s(size, group.across, _NETWORK_ALPHA_S, self.network_rate * _SINGLE_CARD_SHARE)

    def tensor_all_reduce_s(self, size: float, ranks: float) -> float:
        """All-reduce among tensor-parallel ranks: in the link domain, or over the network where they are more."""
        group = self.group(ranks, 1)
        if group.across > 1:
            return self.all_reduce_s(size, group)
        return ring_all_reduce_s(size, ranks, _LINK_ALPHA_S, self.link_rate)

    def send_s(self, size: float, *, within: bool) -> float:
        """One rank to another one, in the same link domain or not."""
        if within:
            return point_to_point_s(size, _LINK_ALPHA_S, self.link_rate)
        return point_to_point_s(size, _NETWORK_ALPHA_S, self.network_rate)

    def all_to_all_s(self, size: float, copies: float, group: Group, *, once_a_node: bool) -> float:
        """Every rank sends `size` to `copies` ranks chosen evenly: the longer of what stays in the domain and what leaves.

        `once_a_node`: what goes to several ranks of a node is sent there once, and copied over its links (DeepEP).
        """
        sent = min(copies, group.across) if once_a_node else copies
        outside = (1 - 1 / group.across) * sent * size / (self.network_rate * _ALL_TO_ALL_SHARE)
        inside = (1 - 1 / group.inside) * copies * size / self.link_rate
        steps = (group.inside - 1) * _LINK_ALPHA_S + (group.across - 1) * _NETWORK_ALPHA_S
        return max(inside, outside) + steps


def machine_of(accelerator: AcceleratorModel, network_gbps: float | None) -> Machine:
    """The machine of an accelerator; without a known network, that which its generation usually has."""
    narrowest = min(accelerator.peak_tflops)
    usual = _DEFAULT_GBPS.get(max(narrowest, 8), 400.0)
    curve = {"p4d": "p4de.24xlarge", "p4de": "p4de.24xlarge"}
    blackwell = narrowest == 4
    name = next((curve[family] for family in accelerator.on_aws if family in curve), None)
    return Machine(
        accelerator=accelerator,
        network_gbps=network_gbps or usual,
        curve=find_curve(name or ("p6-b200.48xlarge" if blackwell else "p5.48xlarge")),
        per_node=accelerator.link_domain,
    )
