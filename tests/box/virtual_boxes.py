"""Boxes whose instances are virtual machines, on a host whose tools are a script: a real daemon without QEMU."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from machine_fixtures import MachineBox
from vpc_fixtures import create_launch_network

import boxes
from corral.box import client
from corral.box.switches import Machines
from corral.box.vm import preparation
from corral.catalog.aws.images import VM_PROFILE, find_image_profile


def create_tools(root: Path, loader: str) -> None:
    """Create the tools' root. `loader`: the script that gets the program and its arguments instead of the loader."""
    for name in ("qemu-img", "qemu-system-x86_64", "ganesha.nfsd"):
        (root / "usr/bin").mkdir(parents=True, exist_ok=True)
        (root / "usr/bin" / name).touch()
    (root / "lib64").mkdir()
    (root / "lib64/ld-linux-x86-64.so.2").write_text(loader)
    (root / "lib64/ld-linux-x86-64.so.2").chmod(0o755)


@contextmanager
def prepared_with(tools: Path) -> Iterator[None]:
    """Within it `preparation.prepare` finds these tools, and an image that does not exist."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "prepare", partial(_write_support, tools))
        yield


def _write_support(tools: Path, record: Path, report: Callable[[str], None]) -> None:
    report("Fetch QEMU")
    document = {"tools": str(tools), "image": "/image", "accelerator": "tcg"}
    record.write_text(json.dumps(document))


@contextmanager
def running_virtual_box(directory: Path) -> Iterator[MachineBox]:
    """A running box of virtual machines in this directory."""
    box = client.start(directory, machines=Machines.VM)
    try:
        yield MachineBox(box=box, launch_network=create_launch_network(partial(boxes.client, box)))
    finally:
        client.stop(directory)


def launch(virtual_box: MachineBox, **request: Any) -> str:
    """The id of a new instance of the image of virtual machines."""
    parameter = find_image_profile(VM_PROFILE).image_parameter
    image = virtual_box.aws("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
    return virtual_box.launch("#!/bin/sh\n", ImageId=image, **request)
