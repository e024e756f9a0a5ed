"""Interfaces of every EFA type: literal tables of card, device and kind, folded where cards carry the same."""

from __future__ import annotations

from itertools import groupby

import pytest

from corral.catalog.aws.instance_types import find_instance_type, instance_types
from corral.plan.network_interfaces import plan_nics

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
EFA_ENA = "efa"
WITH_ENA = {
    "p3dn.24xlarge": [("0", 0, EFA_ENA)],
    "p4d.24xlarge": [("0", 0, EFA_ENA), ("1-3", 1, EFA_ENA)],
    "p5.48xlarge": [("0", 0, EFA_ENA), ("1-31", 1, EFA_ENA)],
    "p5e.48xlarge": [("0", 0, EFA_ENA), ("1-31", 1, EFA_ENA)],
    "p5en.48xlarge": [("0", 0, EFA_ENA), ("1-15", 1, EFA_ENA)],
    "p6-b200.48xlarge": [("0", 0, EFA_ENA), ("1-7", 1, EFA_ENA)],
    "p6-b300.48xlarge": [("0", 0, ENA), ("1-16", 1, EFA_ENA)],
    "g6e.48xlarge": [("0", 0, EFA_ENA), ("1-3", 1, EFA_ENA)],
    "trn2.48xlarge": [("0", 0, EFA_ENA), ("1-15", 1, EFA_ENA)],
    "m7i.48xlarge": [("0", 0, EFA_ENA)],
}
# Interfaces of a machine and the addresses that they take, EFA-only and with ENA.
ADDRESSES = {
    "p4d.24xlarge": ((5, 1), (4, 4)),
    "p5.48xlarge": ((33, 1), (32, 32)),
    "p5en.48xlarge": ((17, 1), (16, 16)),
    "p6-b200.48xlarge": ((9, 1), (8, 8)),
    "p6-b300.48xlarge": ((17, 1), (17, 17)),
}
COUNTS = {"p4d.24xlarge": 5, "p5.48xlarge": 33, "p5en.48xlarge": 17, "p6-b200.48xlarge": 9, "p6-b300.48xlarge": 17}


def folded(name: str, *, with_ena: bool = False) -> list[tuple[str, int, str]]:
    """The type's interfaces, those of neighbouring cards in one row."""
    rows = []
    nics = enumerate(plan_nics(find_instance_type(name), efa=True, with_ena=with_ena))
    for (_, device, kind), group in groupby(
        nics, lambda item: (item[1].card - item[0], item[1].device, item[1].interface_type)
    ):
        cards = [nic.card for _, nic in group]
        rows.append((str(cards[0]) if len(cards) == 1 else f"{cards[0]}-{cards[-1]}", device, kind.value))
    return rows


@pytest.mark.parametrize("name", LAYOUTS)
def test_interfaces_are_laid_out_over_the_cards(name: str) -> None:
    assert folded(name) == LAYOUTS[name]


@pytest.mark.parametrize("name", WITH_ENA)
def test_interfaces_with_ena_are_laid_out_over_the_cards(name: str) -> None:
    assert folded(name, with_ena=True) == WITH_ENA[name]


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_machine_takes_so_many_addresses_in_either_layout(name: str) -> None:
    layouts = [plan_nics(find_instance_type(name), efa=True, with_ena=with_ena) for with_ena in (False, True)]
    taken = [sum(nic.interface_type.value != EFA for nic in nics) for nics in layouts]
    assert tuple(zip(map(len, layouts), taken, strict=True)) == ADDRESSES[name]


def test_without_efa_the_layout_is_refused() -> None:
    assert len(plan_nics(find_instance_type("p5.48xlarge"), efa=False, with_ena=True)) == 1


@pytest.mark.parametrize("name", COUNTS)
def test_a_machine_has_so_many_interfaces(name: str) -> None:
    assert len(plan_nics(find_instance_type(name), efa=True)) == COUNTS[name]


@pytest.mark.parametrize("name", [name for name, machine in instance_types().items() if machine.efa_maximum])
def test_a_machine_takes_one_address_and_as_many_efa_interfaces_as_it_may(name: str) -> None:
    machine = find_instance_type(name)
    kinds = [nic.interface_type.value for nic in plan_nics(machine, efa=True)]
    assert (kinds.count(ENA), kinds.count(EFA)) == (1, machine.efa_maximum)


@pytest.mark.parametrize("with_ena", [False, True])
@pytest.mark.parametrize("name", [name for name, machine in instance_types().items() if machine.efa_maximum])
def test_no_card_carries_more_interfaces_than_it_can(name: str, with_ena: bool) -> None:
    machine = find_instance_type(name)
    cards = [nic.card for nic in plan_nics(machine, efa=True, with_ena=with_ena)]
    limits = {card.index: card.maximum_interfaces for card in machine.network_cards}
    assert [card for card in set(cards) if cards.count(card) > limits[card]] == []
