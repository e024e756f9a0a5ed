"""Interfaces of every EFA type: literal tables of card, device and kind, folded where cards carry the same."""

from __future__ import annotations

from itertools import groupby

import pytest

from corral.catalog.instances import find_instance_type, instance_types
from corral.plan.nics import plan_nics

ENA, EFA = "interface", "efa-only"
LAYOUTS = {
    "p3dn.24xlarge": [("0", 0, ENA), ("0", 1, EFA)],
    "p4d.24xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1-3", 0, EFA)],
    "p4de.24xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1-3", 0, EFA)],
    "p5.4xlarge": [("0", 0, ENA), ("0", 1, EFA)],
    "p5.48xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1-31", 0, EFA)],
    "p5e.48xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1-31", 0, EFA)],
    "p5en.48xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1-15", 0, EFA)],
    "p6-b200.48xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1-7", 0, EFA)],
    "p6-b300.48xlarge": [("0", 0, ENA), ("1-16", 0, EFA)],
    "g5.48xlarge": [("0", 0, ENA), ("0", 1, EFA)],
    "g6e.24xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1", 0, EFA)],
    "g6e.48xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1-3", 0, EFA)],
    "trn1.32xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1-7", 0, EFA)],
    "trn1n.32xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1-15", 0, EFA)],
    "trn2.48xlarge": [("0", 0, ENA), ("0", 1, EFA), ("1-15", 0, EFA)],
}
COUNTS = {"p4d.24xlarge": 5, "p5.48xlarge": 33, "p5en.48xlarge": 17, "p6-b200.48xlarge": 9, "p6-b300.48xlarge": 17}


def folded(name: str) -> list[tuple[str, int, str]]:
    """The type's interfaces, those of neighbouring cards in one row."""
    rows = []
    nics = enumerate(plan_nics(find_instance_type(name), efa=True))
    for (_, device, kind), group in groupby(
        nics, lambda item: (item[1].card - item[0], item[1].device, item[1].interface_type)
    ):
        cards = [nic.card for _, nic in group]
        rows.append((str(cards[0]) if len(cards) == 1 else f"{cards[0]}-{cards[-1]}", device, kind.value))
    return rows


@pytest.mark.parametrize("name", LAYOUTS)
def test_interfaces_are_laid_out_over_the_cards(name: str) -> None:
    assert folded(name) == LAYOUTS[name]


@pytest.mark.parametrize("name", COUNTS)
def test_a_machine_has_so_many_interfaces(name: str) -> None:
    assert len(plan_nics(find_instance_type(name), efa=True)) == COUNTS[name]


@pytest.mark.parametrize("name", [name for name, machine in instance_types().items() if machine.efa_maximum])
def test_a_machine_takes_one_address_and_as_many_efa_interfaces_as_it_may(name: str) -> None:
    machine = find_instance_type(name)
    kinds = [nic.interface_type.value for nic in plan_nics(machine, efa=True)]
    assert (kinds.count(ENA), kinds.count(EFA)) == (1, machine.efa_maximum)


@pytest.mark.parametrize("name", [name for name, machine in instance_types().items() if machine.efa_maximum])
def test_no_card_carries_more_interfaces_than_it_can(name: str) -> None:
    machine = find_instance_type(name)
    cards = [nic.card for nic in plan_nics(machine, efa=True)]
    limits = {card.index: card.maximum_interfaces for card in machine.network_cards}
    assert [card for card in set(cards) if cards.count(card) > limits[card]] == []
