"""Instances that are machines, for tests: a box that has them, a network to launch in, and how one is used."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ground import Ground, described, lay

import boxes
from corral.box import control
from corral.box.control import BoxStatus
from corral.box.vpc.network import MachineError, Vpc

IN_S = 60  # many times what anything here takes
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """A box with machines, and the network that they are in."""

    box: BoxStatus
    ground: Ground

    def aws(self, service: str) -> Any:
        """A client of the box."""
        return boxes.client(self.box, service)

    def launch(self, user_data: str | bytes, **request: Any) -> str:
        """The id of a new instance with these user data."""
        return str(self.launched(user_data, **request)["InstanceId"])

    def launched(self, user_data: str | bytes, **request: Any) -> dict[str, Any]:
        """What RunInstances says of a new instance with these user data."""
        wanted = {
            "ImageId": self.ground.image,
            "InstanceType": "m7i.large",
            "SubnetId": self.ground.subnet,
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
        """What a command did on the machine, as soon as the machine is there."""
        place = until(lambda: control.machines(self.box.dir).get(instance_id))
        return Vpc(directory=place).run(instance_id, command)

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
        """What DescribeInstances says of it."""
        return described(self.aws, instance_id)

    def disk(self, instance_id: str) -> Path:
        """Where the machine's disk is."""
        return self.box.dir / "machines" / "disks" / instance_id


@contextmanager
def running_park(directory: Path) -> Iterator[Park]:
    """A box with machines in this directory."""
    with boxes.running_box(directory, machines=True) as box:
        assert box.machines is None, box.machines
        yield Park(box=box, ground=lay(partial(boxes.client, box)))


def until(found: Callable[[], Found | None]) -> Found:
    """What is found, as soon as it is anything."""
    deadline = time.monotonic() + IN_S
    while not (held := found()):
        assert time.monotonic() < deadline, f"nothing within {IN_S} s"
        time.sleep(0.1)
    return held
