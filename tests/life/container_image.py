"""A small image for containers, from the programs of this system."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path


def make_image(image: Path, directory: Path) -> None:
    """A squash file with this system's shell, coreutils and Python, and a file /inside."""
    tree = directory / "tree"
    for name in ("etc", "home", "tmp", "proc", "sys", "dev", "run", "root", "var/tmp", "scratch", "local", "usr/lib"):
        (tree / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (tree / name).symlink_to(f"usr/{name}")
    programs = (
        "sh",
        "bash",
        "env",
        "id",
        "cat",
        "ls",
        "hostname",
        "touch",
        "stat",
        "sleep",
        "python3",
        "printenv",
        "mkdir",
    )
    for program in programs:
        _copy_with_libraries(Path(shutil.which(program, path="/usr/bin") or program).resolve(), tree, program)
    version = Path("/usr/bin/python3").resolve().name
    shutil.copytree(
        f"/usr/lib/{version}",
        tree / "usr/lib" / version,
        ignore=shutil.ignore_patterns("__pycache__", "*-packages", "config-*"),
    )
    (tree / "inside").write_text("the image")
    subprocess.run(
        ["mksquashfs", str(tree), str(image), "-noappend", "-quiet", "-all-root"], check=True, stdout=subprocess.DEVNULL
    )
    image.chmod(0o644)


def _copy_with_libraries(program: Path, tree: Path, name: str) -> None:
    """Copy a program to /usr/bin and its libraries to where its loader looks."""
    target = tree / "usr/bin" / name
    target.parent.mkdir(exist_ok=True)
    shutil.copy(program, target)
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+)", listed):
        copied = tree / "usr" / library.lstrip("/").removeprefix("usr/")
        if not copied.exists():
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, copied)
