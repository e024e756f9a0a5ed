"""A machine on EC2 as a text: what a boot writes and runs, in its order, on a machine that only writes it down."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Of these the text has the content; those of the cluster have golden files of their own.
LEFT_OUT = ("/dev/", "/opt/corral/jobs/")
SHOWN = ("/etc/apt/", "/etc/cloud/", "/etc/default/", "/etc/hosts", "/etc/modprobe.d/", "/etc/systemd/")
ARRAY = "/dev/md127"
Answer = Callable[[Sequence[str]], str]


def silent(_: Sequence[str]) -> str:
    """The answer of a program that prints nothing."""
    return ""


@dataclass(kw_only=True)
class Transcript:
    """Runs nothing: writes down each command, after the files that were written before it.

    `answers`: what a program prints, by its name. `reads`: programs that only look, which are left out.
    """

    root: Path
    answers: Mapping[str, Answer] = field(default_factory=dict)
    reads: frozenset[str] = frozenset()
    lines: list[str] = field(default_factory=list)
    known: dict[str, bytes] = field(default_factory=dict)

    def __call__(self, command: Sequence[str]) -> str:
        self.look()
        if command[0] not in self.reads:
            self.lines.append(f"$ {' '.join(command)}".replace(str(self.root), ""))
        return self.answers.get(command[0], silent)(command)

    def look(self) -> None:
        """Writes down the files that are new or have changed."""
        for file in sorted(path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()):
            path = f"/{file.relative_to(self.root)}"
            if path.startswith(LEFT_OUT) or self.known.get(path) == file.read_bytes():
                continue
            self.known[path] = file.read_bytes()
            self.lines.append(f"> {path}")
            if path.startswith(SHOWN):
                self.lines += [f"    {line}".rstrip() for line in file.read_text().splitlines()]

    def heading(self, text: str) -> None:
        """A line of the text's own."""
        self.look()
        self.lines += ["", f"# {text}"]

    def text(self) -> str:
        self.look()
        return "\n".join(self.lines).lstrip("\n") + "\n"


@dataclass(kw_only=True)
class Disks:
    """The NVMe disks of a machine as mdadm, mkfs and mount change them and lsblk and wipefs show them: `answer`."""

    names: tuple[str, ...]
    file_systems: dict[str, str] = field(default_factory=dict)
    mounts: dict[str, list[str]] = field(default_factory=dict)
    volume: str | None = None

    def lay(self, root: Path) -> None:
        """Puts links to the disks where udev does: two of each."""
        links = root / "dev/disk/by-id"
        links.mkdir(parents=True)
        for name in self.names:
            device = root / name.lstrip("/")
            device.touch()
            for end in ("", "_1"):
                serial = re.sub(r"\D", "", name)
                link = links / f"nvme-Amazon_EC2_NVMe_Instance_Storage_AWS{serial}{end}"
                link.symlink_to(f"../../{device.name}")

    def answer(self, command: Sequence[str]) -> str:
        match command[0]:
            case "lsblk":
                return json.dumps({"blockdevices": [self._disk(name) for name in self.names]})
            case "wipefs":
                return self.file_systems.get(command[-1], "")
            case "mdadm":
                self.volume = ARRAY
            case "mkfs.xfs":
                self.file_systems[command[-1]] = "xfs"
            case "mount":
                device = command[-2] if command[-2] in self.file_systems else self.volume or self.names[0]
                self.mounts.setdefault(device, []).append(command[-1])
        return ""

    def answers(self) -> dict[str, Answer]:
        return dict.fromkeys(("lsblk", "wipefs", "mdadm", "mkfs.xfs", "mount"), self.answer)

    def _disk(self, name: str) -> dict[str, Any]:
        if self.volume is None:
            return self._device(name, "disk")
        return {**self._device(name, "disk"), "children": [self._device(self.volume, "raid0")]}

    def _device(self, name: str, kind: str) -> dict[str, Any]:
        return {"name": name, "type": kind, "mountpoints": self.mounts.get(name, [None])}
