"""The slowdown of a job by one failed network card, and by nodes under two leaf switches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCard:
    """The factor on the network time of a collective while one card of a node has failed.

    `spread`: the ranks share the remaining cards, n/(n-1). `pinned`: each rank uses only its own cards, or a
    neighbour's if it has none left. All other nodes wait, so the factor applies to the whole job.
    """

    spread: float
    pinned: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLeaves:
    """A ring over nodes under two leaves, compared with one leaf.

    `in_order`, `at_random`: the share of steps that cross leaves, with ranks in topology order and in random order.
    `..._times`: the slowdown, with all uplinks shared evenly among nodes.
    """

    taper: float
    in_order: float
    at_random: float
    in_order_times: float
    at_random_times: float


def failed_card(cards: int, ranks: int) -> FailedCard | None:
    """The effect on a node with so many cards and ranks; None if it had one card, since the node is then lost.

    A rank with c cards keeps c-1 of them, c/(c-1); with one, or a share of one, it doubles the load of another card.
    """
    if cards <= 1:
        return None
    own = cards // ranks
    return FailedCard(spread=cards / (cards - 1), pinned=own / (own - 1) if own > 1 else 2.0)


def over_two_leaves(nodes: int, taper: float) -> TwoLeaves:
    """The effect on a ring over so many nodes, at least 2. The uplinks of a leaf carry nodes/2 / taper node rates.

    In order, one of n steps leaves each leaf. In random order, the successor of each of a leaf's n/2 nodes is under the
    other leaf with probability (n/2)/(n-1).
    """
    half = nodes / 2
    crossing = half * half / (nodes - 1)
    capacity = half / taper
    return TwoLeaves(
        taper=taper,
        in_order=2 / nodes,
        at_random=2 * crossing / nodes,
        in_order_times=max(1.0, 1 / capacity),
        at_random_times=max(1.0, crossing / capacity),
    )
