"""Machines as the recorded outputs show them, for tests of the health checks."""

from pathlib import Path

from corral.agent.health.evaluate import Expected, evaluate
from corral.agent.health.findings import HealthFinding
from corral.agent.health.probes import BoxProbe, Probe, Tool, ToolOutput, read_all

RECORDED = Path(__file__).parent / "recorded"
H100 = Expected(gpus=8, efa=32, disks=8, mounts=("/home", "/scratch"))
ONE_H100 = Expected(gpus=1)  # the real machine of the directories `h100*`
TRN1 = Expected(neuron=16)


class Recorded:
    """A machine that says what is recorded of it, and else what a healthy one says."""

    def __init__(self, name: str, healthy: str = "healthy") -> None:
        self._own = BoxProbe(RECORDED / name, _Nothing())
        self._healthy = BoxProbe(RECORDED / healthy, _Nothing())

    def query(self, tool: Tool, level: int) -> ToolOutput | None:
        own = self._own.query(tool, level)
        return self._healthy.query(tool, level) if own is None else own


class _Nothing:
    def query(self, tool: Tool, level: int) -> ToolOutput | None:
        return None


def findings_of(name: str, expected: Expected = H100) -> tuple[HealthFinding, ...]:
    """The findings on the machine of this name."""
    probe: Probe = Recorded(name)
    return evaluate(expected, read_all(probe, expected.tools))


def found(name: str, expected: Expected = H100) -> list[str]:
    """What is found on the machine of this name, as lines."""
    return [f"{one.severity}: {one.text}" for one in findings_of(name, expected)]
