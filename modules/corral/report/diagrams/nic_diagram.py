"""The network of a node as boxes: its accelerators, their network cards, and the interfaces of each card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corral.catalog.aws.instance_types import InstanceType
from corral.model.cluster import NicPlan, QueuePlan
from corral.model.enums import InterfaceType
from corral.report.diagrams.boxes import DiagramBox

_NAMES = {InterfaceType.ENA: "ENA", InterfaceType.EFA: "EFA + ENA", InterfaceType.EFA_ONLY: "EFA only"}
_NARROW = 92.0  # minimum width of a card's box


def node_box(queue: QueuePlan, machine: InstanceType | None = None) -> DiagramBox:
    """The node with its cards; below each accelerator its own cards, if all have equally many EFA cards.

    `machine`: the type in the catalog.
    """
    gres = queue.node.gres
    first = [nic for nic in queue.nics if nic.interface_type is InterfaceType.ENA]
    fast = [nic for nic in queue.nics if nic.interface_type is not InterfaceType.ENA]
    title = f"A node of queue {queue.name}: {queue.instance_type}"
    lines = tuple(_known(machine)) if machine else ()
    ip = tuple(_card([nic]) for nic in first)
    if not gres or not fast or len(fast) % gres.count:
        return DiagramBox(kind="node", title=title, lines=lines, rows=(ip, tuple(_card([nic]) for nic in fast)))
    each = len(fast) // gres.count
    shares = (fast[start : start + each] for start in range(0, len(fast), each))
    return DiagramBox(
        kind="node", title=title, lines=lines, rows=(ip, tuple(_accelerators(gres.type, gres.name, shares)))
    )


def _known(machine: InstanceType) -> Iterator[str]:
    cards = len(machine.network_cards)
    yield f"network {machine.network_gbps:,.0f} Gb/s over {cards} card{'s' if cards > 1 else ''}"
    if (found := machine.accelerator) and found.link:
        yield f"{found.count} {found.product}, joined by {found.link}, {found.link_gb_per_s:,} GB/s each"


def _accelerators(kind: str, name: str, shares: Iterator[Sequence[NicPlan]]) -> Iterator[DiagramBox]:
    for number, share in enumerate(shares):
        yield DiagramBox(kind="gpu", title=f"{name} {number}: {kind}", rows=((_card(share),),), least=130.0)


def _card(nics: Sequence[NicPlan]) -> DiagramBox:
    """One box for consecutive cards with the same interfaces."""
    kind = nics[0].interface_type
    style = "ena" if kind is InterfaceType.ENA else "efa"
    cards = sorted({nic.card for nic in nics})
    span = f"card {cards[0]}" if len(cards) == 1 else f"cards {cards[0]}-{cards[-1]}"
    devices = ", ".join(str(device) for device in sorted({nic.device for nic in nics}))
    return DiagramBox(kind=style, title=span, lines=(_NAMES[kind], f"device {devices}"), least=_NARROW)
