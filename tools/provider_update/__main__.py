"""`make provider-update`: what another terraform-provider-aws changes for the types that corral declares.

VERSION=V builds the provider from that version, branch or commit of upbound/terraform-provider-aws, a fork that adds
one package to HashiCorp's code, and writes its schema to dist/provider-schema.json: about 15 minutes, and a network.
ARGS='NEW.json' compares a schema that exists, ARGS='OLD.json NEW.json' two of them. Nothing else is changed.
Exit code: 0 without a change of an argument that the stand-in has, 1 with one, 2 for a wrong call or a failed build.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.provider_update.schema_changes import arguments_changed, schema_changes

import official_provider
from corral.box.provider.property_schema import Prop
from corral.box.provider.tables import RESOURCES
from pulumi_cli import fetch_go, find_go, go_build, go_environment
from steps import CannotPrepareError, say, show_end

CHECKOUT = Path(__file__).resolve().parents[2]
PINNED = CHECKOUT / "tests" / "box" / "provider" / "official_schema.json"
WRITTEN = CHECKOUT / "dist" / "provider-schema.json"
VERSIONS = ("terraform-provider-aws", "pulumi-aws", "pulumi-terraform-bridge")


def main(arguments: Sequence[str]) -> int:
    """Print the changes, and return the exit code."""
    try:
        match arguments:
            case [old, new]:
                schemas = read_schema(Path(old)), read_schema(Path(new))
            case [new] if new.endswith(".json"):
                schemas = read_schema(PINNED), read_schema(Path(new))
            case [version]:
                schemas = read_schema(PINNED), build_schema(version)
            case _:
                raise CannotPrepareError("usage: make provider-update VERSION=V, or ARGS='[OLD.json] NEW.json'")
    except CannotPrepareError as error:
        print(error, file=sys.stderr)
        return 2
    return print_changes(*schemas)


def print_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> int:
    """Print what changed, first the arguments that the stand-in has; return 1 if there are any."""
    changed = schema_changes(old, new)
    print("from", ", ".join(f"{name} {old[name]}" for name in VERSIONS if name in old))
    print("to  ", ", ".join(f"{name} {new[name]}" for name in VERSIONS if name in new))
    ours = {token: arguments_changed(lines, stand_in_arguments(token)) for token, lines in changed.items()}
    others = {token: [line for line in lines if line not in ours[token]] for token, lines in changed.items()}
    print_lines("Arguments that the stand-in has, so that stacks may set them:", ours)
    print_lines("Everything else:", others)
    return 1 if any(ours.values()) else 0


def print_lines(title: str, changed: Mapping[str, Sequence[str]]) -> None:
    """Print the lines of each type under a title."""
    print(f"\n{title}")
    for token, lines in changed.items():
        for line in lines:
            print(f"  {token} {line}")
    if not any(changed.values()):
        print("  no change")


def stand_in_arguments(token: str) -> frozenset[str]:
    """The paths of the arguments that the box's stand-in knows of a type."""
    return frozenset(_paths(RESOURCES[token].inputs, "")) if token in RESOURCES else frozenset()


def _paths(props: Mapping[str, Prop], above: str) -> Iterator[str]:
    for name, prop in props.items():
        yield f"{above}{name}"
        yield from _paths(prop.fields or (prop.item.fields if prop.item else {}), f"{above}{name}.")


def read_schema(path: Path) -> Mapping[str, Any]:
    """The schema in a file. Raises CannotPrepareError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found["resources"], dict):
            raise TypeError
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotPrepareError(f"{path} is no schema: write one with `pulumi-resource-aws schema`") from error
    return dict(found)


def build_schema(version: str) -> Mapping[str, Any]:
    """The schema of the provider at this version, written to WRITTEN, too. Raises CannotPrepareError."""
    go = find_go() or fetch_go()
    upstream = fetch(go, f"{official_provider.UPSTREAM[0].partition('@')[0]}@{version}")
    with tempfile.TemporaryDirectory(prefix="corral-provider-") as name:
        sources = Path(name)
        official_provider.copy_go_files(Path(upstream["Dir"]), sources / "upstream")
        official_provider.cut(sources / "upstream")
        official_provider.copy_go_files(official_provider.fetch(go, *official_provider.BRIDGE), sources / "bridge")
        (sources / "bridge" / "pkg" / "pf" / "tfbridge" / "provider_mux.go").unlink()
        shutil.copytree(official_provider.MODULE, sources / "provider")
        tidy(go, sources / "provider")
        say(f"Building {upstream['Path']} {upstream['Version']}, {upstream['Sum']}: about 15 minutes")
        stamp = f"-X main.version={official_provider.version()} -X main.upstream={upstream['Version']}"
        program = sources / official_provider.NAME
        go_build(go, sources / "provider", ".", stamp, program, f"{version} could not be built: see the lines above.")
        text = subprocess.run([program, "schema"], capture_output=True, text=True, check=True).stdout
    WRITTEN.parent.mkdir(exist_ok=True)
    WRITTEN.write_text(text, encoding="utf-8")
    say(f"Its schema: {WRITTEN}")
    return read_schema(WRITTEN)


def fetch(go: str, module: str) -> Mapping[str, str]:
    """Go's record of a module in its cache: Path, Version, Sum, Dir. Raises CannotPrepareError."""
    environment = {**go_environment(), "GONOSUMDB": module.partition("@")[0], "GOFLAGS": "-mod=mod"}
    command = [go, "mod", "download", "-json", module]
    done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)
    found: dict[str, str] = json.loads(done.stdout) if done.stdout.startswith("{") else {"Error": done.stderr}
    if "Error" in found:
        show_end(found["Error"])
        raise CannotPrepareError(f"{module} cannot be fetched: check VERSION, the network, or GOPROXY.")
    return found


def tidy(go: str, module: Path) -> None:
    """Let Go choose the versions that another provider requires. Raises CannotPrepareError."""
    command = [go, "mod", "tidy", "-e"]
    done = subprocess.run(command, cwd=module, env=go_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        show_end(done.stderr)
        raise CannotPrepareError("The provider's modules cannot be resolved: check the network, or GOPROXY.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
