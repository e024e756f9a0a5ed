"""What stands in for accelerators: files for tmpfiles.d, and tools whose output the agent's own parsers read."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from corral.agent.health.evaluate import Expected, evaluate
from corral.agent.health.probes import QUICK, SystemProbe, Tool, read_all
from corral.box.vm.accelerator_stand_ins import device_lines, tools

GPUS = tuple(f"nvidia{number}" for number in range(8))
NEURONS = tuple(f"neuron{number}" for number in range(16))
TOOLS = frozenset({Tool.GPUS, Tool.ROWS, Tool.LINKS, Tool.NEURON})


def probe(directory: Path, devices: Sequence[str]) -> SystemProbe:
    """A machine with the tools for these devices."""
    for path, text in tools(devices):
        program = directory / Path(path).name
        program.write_text(text)
        program.chmod(0o755)
    return SystemProbe(path=f"{directory}:/usr/bin:/bin")


@pytest.mark.parametrize(("devices", "expected"), [(GPUS, Expected(gpus=8)), (NEURONS, Expected(neuron=16))])
def test_tools_answer_as_those_of_a_healthy_machine(
    tmp_path: Path, devices: tuple[str, ...], expected: Expected
) -> None:
    assert evaluate(expected, read_all(probe(tmp_path, devices), expected.tools & TOOLS)) == ()


def test_tools_of_a_smaller_type_do_not_answer_for_a_larger_one(tmp_path: Path) -> None:
    found = evaluate(Expected(gpus=8), read_all(probe(tmp_path, GPUS[:7]), {Tool.GPUS} & QUICK))
    assert [one.text for one in found] == ["7 of 8 GPUs answer: replace the machine"]


def test_persistence_mode_can_be_enabled(tmp_path: Path) -> None:
    probe(tmp_path, GPUS)
    done = subprocess.run([tmp_path / "nvidia-smi", "--persistence-mode=1"], check=True, capture_output=True)
    assert done.stdout == b""


def test_each_device_has_a_number_of_its_own() -> None:
    assert list(device_lines(("nvidia0", "nvidia7", "neuron15"))) == [
        "c /dev/nvidia0 0666 root root - 195:0\n",
        "c /dev/nvidia7 0666 root root - 195:7\n",
        "c /dev/neuron15 0666 root root - 240:15\n",
    ]


def test_machine_without_accelerators_gets_no_tools() -> None:
    assert list(tools(())) == []
