"""What a node must have by its plan, held against what was read of its machine. Pure: records in, findings out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from corral.agent.health import dcgm, gpus, nvlink, system, xids
from corral.agent.health.findings import Finding, Kind, note, sick
from corral.agent.health.readings import Answer, Tool
from corral.model.cluster import ClusterPlan
from corral.model.markets import InterfaceType


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the plan says of a queue's nodes. `mounts`: directories where a file system must be mounted."""

    gpus: int = 0
    neuron: int = 0
    efa: int = 0
    disks: int = 0
    mounts: tuple[str, ...] = ()

    @property
    def tools(self) -> frozenset[Tool]:
        """What is worth asking on such a node."""
        asked = {Tool.CLOCK}
        if self.gpus:
            asked |= {Tool.GPUS, Tool.ROWS, Tool.LINKS, Tool.KERNEL, Tool.DIAGNOSTIC}
        for count, tool in ((self.neuron, Tool.NEURON), (self.efa, Tool.EFA), (self.disks, Tool.DISKS)):
            asked |= {tool} if count else set()
        return frozenset(asked | ({Tool.MOUNTS} if self.mounts else set()))


def expected_of(plan: ClusterPlan, queue_name: str) -> Expected:
    """What the nodes of this queue must have. Raises KeyError where the cluster has no such queue."""
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
    )


def judge(expected: Expected, answers: Mapping[Tool, Answer]) -> tuple[Finding, ...]:
    """What is not as it should be, the worst first. What was not asked is not judged."""
    names = gpus.names_by_bus(_gpus(answers))
    judges: Mapping[Tool, Callable[[str], Iterable[Finding]]] = {
        Tool.GPUS: lambda text: gpus.judge_gpus(expected.gpus, gpus.read_gpus(text)),
        Tool.ROWS: lambda text: gpus.judge_rows(gpus.read_rows(text), names),
        Tool.NEURON: lambda text: system.judge_neuron(expected.neuron, system.read_neuron(text)),
        Tool.EFA: lambda text: system.judge_efa(expected.efa, system.read_efa(text)),
        Tool.DISKS: lambda text: system.judge_disks(expected.disks, system.read_disks(text)),
        Tool.MOUNTS: lambda text: system.judge_mounts(expected.mounts, system.read_mounts(text)),
        Tool.CLOCK: lambda text: system.judge_clock(system.read_clock(text)),
        Tool.KERNEL: lambda text: xids.judge_xids(xids.read_xids(text), names),
        Tool.LINKS: lambda text: nvlink.judge_links(nvlink.read_links(text)),
        Tool.DIAGNOSTIC: lambda text: dcgm.judge_diagnostic(dcgm.read_diagnostic(text)),
    }
    found = [one for tool in judges if tool in answers for one in _judge(tool, answers[tool], judges[tool])]
    return tuple(sorted(found, key=lambda one: not one.is_sick))


def _judge(tool: Tool, answer: Answer, judge: Callable[[str], Iterable[Finding]]) -> Iterator[Finding]:
    if answer.hung:
        yield sick(Kind.TOOL, f"{tool.program} did not answer in {answer.after_s:.0f} s: replace the machine")
    elif answer.absent:
        yield from _absent(tool)
    else:
        try:
            yield from judge(answer.text)
        except ValueError:
            yield _unread(tool, answer)


def _absent(tool: Tool) -> Iterator[Finding]:
    """Without the driver's own tool the devices cannot work either; what is only for looking may be missing."""
    if tool in (Tool.GPUS, Tool.NEURON):
        yield sick(Kind.TOOL, f"{tool.program} is not installed: choose an image that has the driver")
    elif tool is Tool.DIAGNOSTIC:
        yield note(Kind.TOOL, f"{tool.program} is not installed: its tests are left out")


def _unread(tool: Tool, answer: Answer) -> Finding:
    line = next((line.strip() for line in answer.text.splitlines() if line.strip()), "nothing")
    said = f"{tool.program} said: {line[:120]}"
    return sick(Kind.TOOL, f"{said}: replace the machine") if tool is Tool.GPUS else note(Kind.TOOL, said)


def _gpus(answers: Mapping[Tool, Answer]) -> tuple[gpus.Gpu, ...]:
    try:
        return gpus.read_gpus(answers[Tool.GPUS].text) if Tool.GPUS in answers else ()
    except ValueError:
        return ()
