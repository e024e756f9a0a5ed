"""The files of the checkout as git sees them: list shell scripts, and find paths of one machine."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHEBANG = re.compile(rb"#!\s*/\S*?(?:/|/env\s+)(?:sh|bash|dash)\b")
# Absolute paths below these belong to the machine that a file was written on, but for those of every Debian image.
MACHINE_PATH = re.compile(rb"(?<![\w.{}$~-])/(?:work|root(?!/\.aws\b)|home/(?!admin/)[a-z]+)/[\w.-]")

# Scripts of Debian's packages, as they are.
FOREIGN = Path("tests/agent/host/packages")


def main(arguments: list[str]) -> int:
    """List the shell scripts (shell), or return 0 if no file contains a machine's path (check)."""
    match arguments:
        case ["shell"]:
            print("\n".join(str(path) for path in files() if is_shell(path)))
            return 0
        case ["check"]:
            found = [line for path in files() for line in machine_paths(path)]
            print("\n".join(found), end="\n" if found else "", file=sys.stderr)
            return 1 if found else 0
    print("usage: tree.py shell | check", file=sys.stderr)
    return 2


def files() -> list[Path]:
    """Return every plain file that git tracks or would add, relative to the checkout, sorted."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        sys.exit(f"git cannot list the files of {ROOT}: {listed.stderr.decode().strip()}")
    names = sorted({name for name in listed.stdout.decode().split("\0") if name})
    return [Path(name) for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


def is_shell(path: Path) -> bool:
    """Return whether the file is a shell script of this project, by its name or its first line."""
    if path.is_relative_to(FOREIGN):
        return False
    return path.suffix == ".sh" or bool(SHEBANG.match((ROOT / path).read_bytes()[:80]))


def machine_paths(path: Path) -> list[str]:
    """Return an error for each line of the file that contains a machine's path."""
    lines = enumerate((ROOT / path).read_bytes().splitlines(), 1)
    return [f"{path}:{number}: contains a path of one machine" for number, line in lines if MACHINE_PATH.search(line)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
