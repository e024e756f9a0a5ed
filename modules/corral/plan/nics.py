"""Which interfaces an instance is launched with, from its type's network cards, never from a formula per family."""

from corral.catalog.instances import InstanceType, NetworkCard
from corral.model.cluster import NicPlan
from corral.model.markets import InterfaceType


def plan_nics(instance_type: InstanceType, *, efa: bool) -> tuple[NicPlan, ...]:
    """The interfaces by card, then device. The first is the primary one: ENA where EFA fits beside it.

    Source: EC2 User Guide, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards": card 0
    device 0 must carry IP; `efa-only` goes to card 0 device 1 and to device 0 of every other card that has EFA.
    """
    primary = NicPlan(card=0, device=0, interface_type=InterfaceType.ENA)
    if not efa:
        return (primary,)
    cards = [card for card in instance_type.network_cards if _efa_kind(card) is not None]
    cards = cards[: instance_type.efa_maximum]
    if cards and cards[0].index == 0 and _efa_kind(cards[0]) is InterfaceType.EFA:
        primary = NicPlan(card=0, device=0, interface_type=InterfaceType.EFA)
        cards = cards[1:]
    return (primary, *(_efa_nic(card) for card in cards))


def _efa_nic(card: NetworkCard) -> NicPlan:
    kind = _efa_kind(card)
    assert kind is not None  # the caller kept only cards with EFA
    classic_beside_primary = 1 if card.index == 0 or kind is InterfaceType.EFA else 0
    return NicPlan(card=card.index, device=classic_beside_primary, interface_type=kind)


def _efa_kind(card: NetworkCard) -> InterfaceType | None:
    """`efa-only` where the card has it: it takes no address from the subnet."""
    for kind in (InterfaceType.EFA_ONLY, InterfaceType.EFA):
        if kind in card.interface_types:
            return kind
    return None
