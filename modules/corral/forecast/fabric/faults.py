"""What one lost network card and a job over two leaves do to those who must wait for the slowest rank."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCard:
    """How many times as long the network's part of a collective takes while one node has a card less.

    `spread`: its ranks share the cards that are left, n/(n-1). `kept_apart`: each rank keeps to its own cards, or to
    those of a neighbour where it has none left. All other nodes wait, so it is the whole job's.
    """

    spread: float
    kept_apart: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLeaves:
    """A ring over nodes of which half are below another leaf, against one leaf for all.

    `in_order`, `at_random`: parts of its steps that leave a leaf where ranks follow the topology, and where their order
    has nothing to do with it. `..._times`: how many times as long it takes, with all uplinks shared evenly among nodes.
    """

    taper: float
    in_order: float
    at_random: float
    in_order_times: float
    at_random_times: float


def lost_card(cards: int, ranks: int) -> LostCard | None:
    """Of a node with so many cards for so many ranks; None where it was the only one, which is a lost node.

    A rank with c cards of its own is left with c-1 of them, c/(c-1); with one, or a share of one, it doubles the load
    of another card.
    """
    if cards <= 1:
        return None
    own = cards // ranks
    return LostCard(spread=cards / (cards - 1), kept_apart=own / (own - 1) if own > 1 else 2.0)


def over_two_leaves(nodes: int, taper: float) -> TwoLeaves:
    """Of a ring over so many nodes, 2 at least. Each leaf lets nodes/2 / taper node rates out.

    In order, one step of n leaves each leaf. At random, each of a leaf's n/2 nodes has its next one below the other
    leaf with probability (n/2)/(n-1).
    """
    half = nodes / 2
    crossing = half * half / (nodes - 1)
    room = half / taper
    return TwoLeaves(
        taper=taper,
        in_order=2 / nodes,
        at_random=2 * crossing / nodes,
        in_order_times=max(1.0, 1 / room),
        at_random_times=max(1.0, crossing / room),
    )
