"""The network interfaces of an instance, from its type's network cards."""

from collections.abc import Sequence

from corral.catalog.aws.instance_types import InstanceType, NetworkCard
from corral.model.cluster import NicPlan
from corral.model.enums import InterfaceType

_WITHOUT_ENA = (InterfaceType.EFA_ONLY, InterfaceType.EFA)  # in order of preference: EFA-only takes no address
_WITH_ENA = (InterfaceType.EFA, InterfaceType.EFA_ONLY)


def plan_nics(instance_type: InstanceType, *, efa: bool, with_ena: bool = False) -> tuple[NicPlan, ...]:
    """Return the interfaces by card, then device. The first is the primary one: ENA if EFA fits on the same card.

    `with_ena`: every EFA interface is also ENA and has an address, as before AWS introduced `efa-only`.

    Source: EC2 User Guide, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards": card 0
    device 0 must carry IP; `efa-only` goes to card 0 device 1 and to device 0 of every other card that has EFA, and
    `efa` to card 0 device 0 and to device 1 of every other card.
    """
    primary = NicPlan(card=0, device=0, interface_type=InterfaceType.ENA)
    if not efa:
        return (primary,)
    preferred = _WITH_ENA if with_ena else _WITHOUT_ENA
    efa_nics = [nic for card in instance_type.network_cards if (nic := _efa_nic(card, preferred))]
    efa_nics = efa_nics[: instance_type.efa_maximum]
    if any((nic.card, nic.device) == (0, 0) for nic in efa_nics):
        return tuple(efa_nics)
    return (primary, *efa_nics)


def _efa_nic(card: NetworkCard, preferred: Sequence[InterfaceType]) -> NicPlan | None:
    """Return the card's EFA interface, of the first preferred type that it supports."""
    kind = next((kind for kind in preferred if kind in card.interface_types), None)
    if kind is None:
        return None
    takes_first_device = (kind is InterfaceType.EFA) == (card.index == 0)
    return NicPlan(card=card.index, device=0 if takes_first_device else 1, interface_type=kind)
