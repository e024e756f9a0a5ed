"""The network of one node as boxes: its accelerators, the cards that stand beside each, what each card carries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corral.catalog.instances import InstanceType
from corral.model.cluster import NicPlan, QueuePlan
from corral.model.markets import InterfaceType
from corral.report.drawing.boxes import Box

_NAMES = {InterfaceType.ENA: "ENA", InterfaceType.EFA: "EFA + ENA", InterfaceType.EFA_ONLY: "EFA only"}
_NARROW = 92.0  # of a card's box


def node_box(queue: QueuePlan, machine: InstanceType | None = None) -> Box:
    """The node with its cards; where every accelerator has as many EFA cards as the others, below each its own.

    `machine`: what the catalogue knows of the type.
    """
    gres = queue.node.gres
    first = [nic for nic in queue.nics if nic.interface_type is InterfaceType.ENA]
    fast = [nic for nic in queue.nics if nic.interface_type is not InterfaceType.ENA]
    title = f"A node of queue {queue.name}: {queue.instance_type}"
    lines = tuple(_known(machine)) if machine else ()
    ip = tuple(_card([nic]) for nic in first)
    if not gres or not fast or len(fast) % gres.count:
        return Box(kind="node", title=title, lines=lines, rows=(ip, tuple(_card([nic]) for nic in fast)))
    each = len(fast) // gres.count
    shares = (fast[start : start + each] for start in range(0, len(fast), each))
    return Box(kind="node", title=title, lines=lines, rows=(ip, tuple(_accelerators(gres.type, gres.name, shares))))


def _known(machine: InstanceType) -> Iterator[str]:
    cards = len(machine.network_cards)
    yield f"network {machine.network_gbps:,.0f} Gb/s over {cards} card{'s' if cards > 1 else ''}"
    if (found := machine.accelerator) and found.link:
        yield f"{found.count} {found.product}, joined by {found.link}, {found.link_gb_per_s:,} GB/s each"


def _accelerators(kind: str, name: str, shares: Iterator[Sequence[NicPlan]]) -> Iterator[Box]:
    for number, share in enumerate(shares):
        yield Box(kind="gpu", title=f"{name} {number}: {kind}", rows=((_card(share),),), least=130.0)


def _card(nics: Sequence[NicPlan]) -> Box:
    """Cards next to each other that carry the same, in one box."""
    kind = nics[0].interface_type
    style = "ena" if kind is InterfaceType.ENA else "efa"
    cards = sorted({nic.card for nic in nics})
    span = f"card {cards[0]}" if len(cards) == 1 else f"cards {cards[0]}-{cards[-1]}"
    devices = ", ".join(str(device) for device in sorted({nic.device for nic in nics}))
    return Box(kind=style, title=span, lines=(_NAMES[kind], f"device {devices}"), least=_NARROW)
