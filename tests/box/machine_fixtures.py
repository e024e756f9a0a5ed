"""Fixtures of instances that run as machines: a box, a network, and functions to use a machine."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from vpc_fixtures import LaunchNetwork, create_launch_network, described

import boxes
from corral.box import control
from corral.box.client import BoxStatus
from corral.box.vpc.virtual_network import MachineError, Vpc

IN_S = 240  # many times what anything here takes
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineBox:
    """A box with machines, and the network that they are in."""

    box: BoxStatus
    launch_network: LaunchNetwork

    def aws(self, service: str) -> Any:
        """A client of the box."""
        return boxes.client(self.box, service)

    def launch(self, user_data: str | bytes, **request: Any) -> str:
        """The id of a new instance with these user data."""
        return str(self.launched(user_data, **request)["InstanceId"])

    def launched(self, user_data: str | bytes, **request: Any) -> dict[str, Any]:
        """RunInstances' description of a new instance with this user data."""
        wanted = {
            "ImageId": self.launch_network.image,
            "InstanceType": "m7i.large",
            "SubnetId": self.launch_network.subnet,
            "InstanceInitiatedShutdownBehavior": "terminate",
            "UserData": user_data,
            "MinCount": 1,
            "MaxCount": 1,
            **request,
        }
        made: dict[str, Any] = self.aws("ec2").run_instances(**wanted)["Instances"][0]
        return made

    def runs(self, instance_id: str) -> bool:
        """True while the instance is a machine."""
        return instance_id in control.machines(self.box.dir)

    def run(self, instance_id: str, *command: str) -> subprocess.CompletedProcess[str]:
        """The result of a command on the machine, once the machine runs."""
        directory = until(lambda: control.machines(self.box.dir).get(instance_id))
        return Vpc(directory=directory).run(instance_id, command)

    def reads(self, instance_id: str, path: str) -> str:
        """What a file on the machine holds, as soon as it holds anything."""

        def text() -> str:
            try:
                return self.run(instance_id, "cat", path).stdout
            except MachineError:  # between its end and its next start
                return ""

        return until(text)

    def state(self, instance_id: str) -> str:
        """The instance's state, as EC2 names it."""
        return str(self.described(instance_id)["State"]["Name"])

    def described(self, instance_id: str) -> dict[str, Any]:
        """DescribeInstances' description of the instance."""
        return described(self.aws, instance_id)

    def disk(self, instance_id: str) -> Path:
        """Where the machine's disk is."""
        return self.box.dir / "machines" / "disks" / instance_id


@contextmanager
def running_machine_box(directory: Path) -> Iterator[MachineBox]:
    """A box with machines in this directory."""
    with boxes.running_box(directory, machines=True) as box:
        assert box.no_machines_reason is None, box.no_machines_reason
        yield MachineBox(box=box, launch_network=create_launch_network(partial(boxes.client, box)))


def until(found: Callable[[], Found | None]) -> Found:
    """What is found, as soon as it is anything."""
    deadline = time.monotonic() + IN_S
    while not (held := found()):
        assert time.monotonic() < deadline, f"nothing within {IN_S} s"
        time.sleep(0.1)
    return held
