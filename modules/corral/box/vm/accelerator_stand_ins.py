"""Accelerators of a virtual machine: device files that nothing is behind, and stand-ins for their drivers' tools. Pure.

The devices have the numbers of NVIDIA's driver, or one for local use, so that cgroups tell them apart: who may open one
gets ENXIO, who may not gets EPERM.
Sources: Linux, admin-guide/devices.txt (195: NVIDIA, 240 to 254: local use); tmpfiles.d(5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

_MAJORS = {"nvidia": 195, "neuron": 240}
_NVIDIA_SMI = '''#!/usr/bin/python3
"""Stands in for NVIDIA's tool: this machine has the device files of {count} GPUs, and no GPU."""
import sys

BUS = "00000000:{{:02X}}:00.0"
for word in sys.argv[1:]:
    option, _, columns = word.partition("=")
    names = columns.split(",")
    if option in ("--query-gpu", "--query-remapped-rows"):
        print(", ".join(names).replace("clocks_throttle_reasons", "clocks_event_reasons"))  # as drivers from 535 on do
        for number in range({count}):
            known = {{"index": number, "pci.bus_id": BUS.format(number + 1), "gpu_bus_id": BUS.format(number + 1)}}
            words = {{"slowdown": "Not Active", "pending": "No", "failure": "No"}}
            row = (known.get(one, words.get(one.rpartition(".")[2].rpartition("_")[2], 0)) for one in names)
            print(", ".join(map(str, row)))
'''
_NEURON_LS = """#!/bin/sh
# Stands in for Neuron's tool: this machine has the device files of {count} devices, and no device.
echo '[{devices}]'
"""


def device_lines(devices: Iterable[str]) -> Iterator[str]:
    """Lines of tmpfiles.d that create these device files, e.g. `nvidia0`."""
    for device in devices:
        kind = device.rstrip("0123456789")
        yield f"c /dev/{device} 0666 root root - {_MAJORS[kind]}:{device.removeprefix(kind)}\n"


def tools(devices: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The path and the text of each tool that a machine with these devices needs."""
    gpus, neurons = (sum(device.startswith(kind) for device in devices) for kind in ("nvidia", "neuron"))
    if gpus:
        yield "/usr/bin/nvidia-smi", _NVIDIA_SMI.format(count=gpus)
    if neurons:
        listed = ", ".join(f'{{"neuron_device": {number}}}' for number in range(neurons))
        yield "/usr/bin/neuron-ls", _NEURON_LS.format(count=neurons, devices=listed)
