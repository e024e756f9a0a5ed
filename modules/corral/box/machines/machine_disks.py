"""The data of machines below the box's state: disks, volumes, file systems and consoles."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

from corral.box.machines.desired_machines import ExistingResources

_KINDS = ("disks", "volumes", "file-systems", "consoles")


class MachineDisks:
    """The directories of machines' data. `as_machine_root`: the prefix of a command that may delete all of it."""

    def __init__(self, directory: Path, as_machine_root: Sequence[str]) -> None:
        self.directory = directory
        self._as_machine_root = as_machine_root

    @property
    def consoles(self) -> Path:
        """The directory of the consoles, by instance id."""
        return self.directory / "consoles"

    @property
    def file_systems(self) -> Path:
        """The directory of the file systems, which all machines share."""
        return self.directory / "file-systems"

    def disk(self, instance_id: str) -> Path:
        """The disk of an instance."""
        return self.directory / "disks" / instance_id

    def volume(self, volume_id: str) -> Path:
        """The directory of a volume. Creates it."""
        path = self.directory / "volumes" / volume_id
        path.mkdir(parents=True, exist_ok=True)
        return path

    def create_directories(self) -> None:
        """Create the directories of all kinds of data."""
        for name in _KINDS:
            (self.directory / name).mkdir(parents=True, exist_ok=True)

    def delete_orphans(self, exists: ExistingResources, present: Collection[str]) -> None:
        """Delete the data of deleted instances, volumes and file systems. `present`: machines that run or start."""
        retained = {
            "disks": exists.instances.union(present),
            "volumes": exists.volumes,
            "file-systems": exists.file_systems,
            "consoles": exists.listed,
        }
        for kind in _KINDS:
            for path in (self.directory / kind).iterdir():
                if path.stem not in retained[kind]:
                    self._remove(path)

    def _remove(self, path: Path) -> None:
        """Remove a directory as the machines' root, because it has files of their users."""
        command = [*self._as_machine_root, "rm", "-rf", "--", str(path)]
        subprocess.run(command, check=False, capture_output=True)
