"""Compare a node's planned hardware with what its tools report. Pure: records in, findings out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from corral.agent.health import dcgm, gpus, nvlink, system, xids
from corral.agent.health.findings import FindingKind, HealthFinding, sick, warning
from corral.agent.health.probes import Tool, ToolOutput
from corral.model.cluster import ClusterPlan
from corral.model.enums import InterfaceType


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The planned hardware of a queue's nodes. `mounts`: directories where a file system must be mounted.

    `lustre_efa`: how many EFA interfaces Lustre must use.
    """

    gpus: int = 0
    neuron: int = 0
    efa: int = 0
    disks: int = 0
    mounts: tuple[str, ...] = ()
    lustre_efa: int = 0

    @property
    def tools(self) -> frozenset[Tool]:
        """The tools to query on such a node."""
        queried = {Tool.SCOPE, Tool.CLOCK}
        if self.gpus:
            queried |= {Tool.GPUS, Tool.ROWS, Tool.LINKS, Tool.KERNEL, Tool.DIAGNOSTIC}
        devices = {Tool.NEURON: self.neuron, Tool.EFA: self.efa, Tool.DISKS: self.disks, Tool.LNET: self.lustre_efa}
        queried |= {tool for tool, count in devices.items() if count}
        return frozenset(queried | ({Tool.MOUNTS} if self.mounts else set()))


def expected_of(plan: ClusterPlan, queue_name: str, zone_id: str = "") -> Expected:
    """Return what the nodes of this queue must have, in this zone if it is known. Raises KeyError: unknown queue."""
    queue = plan.queue(queue_name)
    gres = queue.node.gres
    counts = {gres.name: gres.count} if gres else {}
    home = ("/home",) if plan.home else ()
    return Expected(
        gpus=counts.get("gpu", 0),
        neuron=counts.get("neuron", 0),
        efa=sum(nic.interface_type is not InterfaceType.ENA for nic in queue.nics) if queue.efa else 0,
        disks=queue.nvme_count,
        mounts=(*home, *(system.mount for system in plan.lustre)),
        lustre_efa=plan.lustre_efa(queue, zone_id),
    )


def evaluate(expected: Expected, answers: Mapping[Tool, ToolOutput]) -> tuple[HealthFinding, ...]:
    """The findings, sick ones first. Tools that were not queried have none."""
    names = gpus.names_by_bus(_gpus(answers))
    evaluators: Mapping[Tool, Callable[[str], Iterable[HealthFinding]]] = {
        Tool.GPUS: lambda text: gpus.evaluate_gpus(expected.gpus, gpus.read_gpus(text)),
        Tool.ROWS: lambda text: gpus.evaluate_rows(gpus.read_remapped_rows(text), names),
        Tool.NEURON: lambda text: system.evaluate_neuron(expected.neuron, system.read_neuron(text)),
        Tool.EFA: lambda text: system.evaluate_efa(expected.efa, system.read_efa(text)),
        Tool.DISKS: lambda text: system.evaluate_disks(expected.disks, system.read_disks(text)),
        Tool.MOUNTS: lambda text: system.evaluate_mounts(expected.mounts, system.read_mounts(text)),
        Tool.LNET: lambda text: system.evaluate_lnet(expected.lustre_efa, system.read_lnet(text)),
        Tool.SCOPE: system.evaluate_scope,
        Tool.CLOCK: lambda text: system.evaluate_clock(system.read_clock(text)),
        Tool.KERNEL: lambda text: xids.evaluate_xids(xids.read_xids(text), names),
        Tool.LINKS: lambda text: nvlink.evaluate_links(nvlink.read_links(text)),
        Tool.DIAGNOSTIC: lambda text: dcgm.evaluate_diagnostic(dcgm.read_diagnostic(text)),
    }
    found = [one for tool in evaluators if tool in answers for one in _evaluate(tool, answers[tool], evaluators[tool])]
    return tuple(sorted(found, key=lambda one: not one.is_sick))


def _evaluate(
    tool: Tool, output: ToolOutput, evaluator: Callable[[str], Iterable[HealthFinding]]
) -> Iterator[HealthFinding]:
    if output.hung:
        yield sick(FindingKind.TOOL, f"{tool.program} did not answer in {output.after_s:.0f} s")
    elif output.absent:
        yield from _absent(tool)
    else:
        try:
            yield from evaluator(output.text)
        except ValueError:
            yield _unparsed(tool, output)


def _absent(tool: Tool) -> Iterator[HealthFinding]:
    """The driver's own tool must be installed, or the devices cannot work; diagnostic tools may be missing."""
    if tool in (Tool.GPUS, Tool.NEURON):
        yield sick(FindingKind.TOOL, f"{tool.program} is not installed", "use an image with the driver")
    elif tool is Tool.DIAGNOSTIC:
        yield warning(FindingKind.TOOL, f"{tool.program} is not installed: its tests are skipped")


def _unparsed(tool: Tool, output: ToolOutput) -> HealthFinding:
    line = next((line.strip() for line in output.text.splitlines() if line.strip()), "nothing")
    message = f"{tool.program} printed: {line[:120]}"
    if tool is Tool.GPUS:
        return sick(FindingKind.TOOL, message)
    return warning(FindingKind.TOOL, message)


def _gpus(answers: Mapping[Tool, ToolOutput]) -> tuple[gpus.Gpu, ...]:
    try:
        return gpus.read_gpus(answers[Tool.GPUS].text) if Tool.GPUS in answers else ()
    except ValueError:
        return ()
