"""Plain `pulumi up` with the real engine and programs refuses the same errors as `corral up`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from boxes import running_box
from cli_session import CliSession, copy_project

pytestmark = [pytest.mark.pulumi, pytest.mark.box]
TOO_DEAR = (
    "stacks/cluster/Pulumi.dev.yaml: usd_per_hour_max: an hour with all nodes running costs up to 88.54 USD, the limit"
    " is 1.00 - lower nodes.max of queue train (4 p4d.24xlarge cost up to 87.83), or raise the limit: nothing was"
    " changed"
)
TWO_MISTAKES = [
    "stacks/base/Pulumi.dev.yaml: budget.usd_per_month: 0 is too small - use 1 or more",
    "stacks/cluster/Pulumi.dev.yaml: queues[0].capacity[1].market: invalid value 'on-demnd'; did you mean 'on-demand'?",
]


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliSession]:
    """A session with the shipped programs, whose empty stacks exist in the box."""
    directory = tmp_path_factory.mktemp("plain")
    with running_box(directory / "box"):
        cli = CliSession(project=copy_project(directory / "project", small=False), box=directory / "box")
        copied(cli)
        for stack in ("base", "cluster"):
            assert cli.pulumi(stack, "stack", "init").returncode == 0
        yield cli


def copied(cli: CliSession) -> None:
    """Update the box's copy of the stack files, as users do before `pulumi`."""
    command = [*cli.command()[:3], "box", "env", "--dir", str(cli.box)]
    subprocess.run(command, cwd=cli.project, env=cli.environ, check=True, capture_output=True)


def refused(cli: CliSession, stack: str, *lines: str) -> tuple[int, list[str], list[str]]:
    """The exit code of `pulumi up`, the lines of these that it prints, and the first lines of tracebacks."""
    copied(cli)
    done = cli.pulumi(stack, "up", "--yes", "--skip-preview")
    printed = [line.strip().removeprefix("error: ") for line in (done.stdout + done.stderr).splitlines()]
    return done.returncode, [line for line in printed if line in lines], [one for one in printed if "Traceback" in one]


def test_exceeded_limit_is_refused_by_pulumi_and_corral(cli: CliSession) -> None:
    cli.replace("stacks/cluster/Pulumi.dev.yaml", "    base: dev\n", "    usd_per_hour_max: 1\n    base: dev\n")
    ours, theirs = cli.run("up", "dev", "--yes"), refused(cli, "cluster", TOO_DEAR)
    cli.replace("stacks/cluster/Pulumi.dev.yaml", "    usd_per_hour_max: 1\n", "")
    assert (ours.returncode, ours.stderr.splitlines()) == (4, [f"corral: {TOO_DEAR}", "  corral plan dev"])
    assert (theirs, cli.left()) == ((1, [TOO_DEAR], []), {})


def test_errors_in_both_files_are_listed_by_pulumi_and_corral(cli: CliSession) -> None:
    cli.replace("stacks/base/Pulumi.dev.yaml", "usd_per_month: 2000", "usd_per_month: 0")
    cli.replace("stacks/cluster/Pulumi.dev.yaml", "market: on-demand", "market: on-demnd")
    ours, theirs = cli.run("up", "dev", "--yes"), refused(cli, "cluster", *TWO_MISTAKES)
    alone = refused(cli, "base", *TWO_MISTAKES)
    cli.replace("stacks/base/Pulumi.dev.yaml", "usd_per_month: 0", "usd_per_month: 2000")
    cli.replace("stacks/cluster/Pulumi.dev.yaml", "market: on-demnd", "market: on-demand")
    assert (ours.returncode, ours.stderr.splitlines()) == (2, TWO_MISTAKES)
    assert (theirs, alone, cli.left()) == ((1, TWO_MISTAKES, []), (1, TWO_MISTAKES[:1], []), {})


def test_config_of_the_command_line_is_checked(cli: CliSession) -> None:
    copied(cli)
    done = cli.pulumi("base", "up", "--yes", "--skip-preview", "--config", "aws:region=us-east-9")
    assert "stacks/base/Pulumi.dev.yaml: aws:region: 'us-east-9' is not in the catalog" in done.stdout + done.stderr
