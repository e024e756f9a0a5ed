"""The command tree: help, examples, version, completion, and the modules that a command loads."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from calls import REPOSITORY, clean_environment, corral, on_terminal

from corral.cli.help_page import ENTRIES

BOX = ("start", "stop", "status", "env", "reset", "quota")
COMMANDS = [*((name,) for name in ENTRIES), *(("box", name) for name in BOX)]


def test_front_page_names_every_command() -> None:
    page = corral("--help").stdout
    assert [name for name in ENTRIES if f"\n  {name}" not in page] == []


def test_front_page_fits_eighty_columns() -> None:
    assert max(len(line) for line in corral("--help").stdout.splitlines()) <= 80


def test_short_and_long_help_options_are_equal() -> None:
    assert corral("-h").stdout == corral("--help").stdout


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_of_every_command_ends_with_an_example(command: tuple[str, ...]) -> None:
    page = corral(*command, "--help").stdout
    example = f"corral {' '.join(command)}"
    assert example in page.partition("Examples:")[2] or command in (("box",), ("upgrade",))


def test_version_is_that_of_the_package() -> None:
    assert corral("--version").stdout == "corral 0.1.0\n"


def test_mistyped_command_is_reported_with_a_suggestion() -> None:
    done = corral("plam", "dev")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "Error: No such command 'plam'. Did you mean 'plan'?")


def test_missing_command_is_wrong_input_and_shows_the_help_page() -> None:
    done = corral()
    assert (done.returncode, "\nThis machine\n" in done.stderr + done.stdout) == (2, True)


STYLES = re.compile(r"\x1b\[[0-9;]*m")  # SGR: colour, bold, dim


@pytest.mark.parametrize("command", [("plan", "dev"), ("--help",)], ids=" ".join)
def test_terminal_shows_styles(command: tuple[str, ...]) -> None:
    assert STYLES.search(on_terminal(*command)) is not None


@pytest.mark.parametrize("command", [(), *COMMANDS], ids=" ".join)
def test_help_page_has_no_styles_under_no_color(command: tuple[str, ...]) -> None:
    assert STYLES.findall(on_terminal(*command, "--help", NO_COLOR="1")) == []


@pytest.mark.parametrize(
    "command",
    [("plan", "dev"), ("doctor",), ("plam",), ("plan", "deb"), ("render", "dev", "--out", "/sys/x")],
    ids=" ".join,
)
def test_output_has_no_styles_under_no_color(command: tuple[str, ...]) -> None:
    assert STYLES.findall(on_terminal(*command, NO_COLOR="1")) == []


def complete(words: str, cwd: Path = REPOSITORY) -> list[str]:
    environment = {
        **clean_environment(None),
        "_CORRAL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    return corral(environment=environment, cwd=cwd).stdout.splitlines()


def test_commands_are_completed_without_loading_them() -> None:
    assert complete("corral s") == ["schema", "status", "ssh-config"]


@pytest.mark.parametrize("command", ["plan", "connect"])
def test_environments_are_completed(command: str) -> None:
    assert complete(f"corral {command} d") == ["dev"]


def test_a_name_that_a_shell_would_run_is_not_completed(tmp_path: Path) -> None:
    (stacks := tmp_path / "stacks/cluster").mkdir(parents=True)
    for name in ("dev", "dev$(touch owned)", "dev;id", "dev\x1b[2J"):
        (stacks / f"Pulumi.{name}.yaml").touch()
    assert complete("corral plan d", cwd=tmp_path) == ["dev"]


def test_options_are_completed() -> None:
    assert complete("corral render dev --d") == ["--diff"]


@pytest.mark.parametrize("command", [("plan", "dev"), ("render", "dev", "--out", "{out}")], ids=lambda c: c[0])
def test_neither_pulumi_nor_boto3_is_loaded_to_plan_and_render(command: tuple[str, ...], tmp_path: Path) -> None:
    arguments = [word.format(out=tmp_path / "out") for word in command]
    call = [sys.executable, "-X", "importtime", "-m", "corral.cli", *arguments]
    done = subprocess.run(call, cwd=REPOSITORY, env=clean_environment(None), capture_output=True, text=True, check=True)
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert loaded & {"pulumi", "pulumi_aws", "boto3", "botocore", "moto", "grpc"} == set()
