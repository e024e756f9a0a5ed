"""What `corral extend` refuses, and an up of a cluster that has expired, with the real engine and the real programs.

One scenario, since each step continues from the stacks of the one before. tests/life/test_dev_life moves an end, and
test_end_of_life has heads that read it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boxes import client, running_box
from cli_session import CliSession, copy_project
from corral.box import account
from corral.box import client as box_client
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.long]
END = "/corral/dev/ends-at"
WRONG_TIMES = {
    "soon": "corral: soon: not a time - write 4h, 1h30m, 2026-11-22 or 2026-11-22T18:00 (UTC)",
    "2020-01-01": "corral: cluster dev: 2020-01-01 00:00 UTC is in the past",
    "2999-01-01": "corral: cluster dev: 2999-01-01 00:00 UTC is too far away",
}
EXPIRED = [
    "corral: cluster dev: it expired at 2026-01-02 03:04 UTC, and its head shuts down: nothing was changed",
    "  to continue: corral extend dev 4h --box-dir BOX, then corral up dev --box-dir BOX",
    "  to delete it: corral down dev --box-dir BOX",
]


def test_a_cluster_is_extended_expires_and_never_ends(tmp_path: Path) -> None:
    with running_box(tmp_path / "box"):
        cli = CliSession(project=copy_project(tmp_path / "project", small=False), box=tmp_path / "box")
        extend_nothing(cli)
        expect(cli, "up", "dev", "--yes")
        refuse_times(cli)
        up_shortly_before_the_end(cli)
        expire(cli)
        up_without_a_lifetime(cli)


def expect(cli: CliSession, *arguments: str) -> str:
    done = cli.run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(cli: CliSession, *arguments: str) -> tuple[int, list[str]]:
    done = cli.run(*arguments)
    return done.returncode, done.stderr.splitlines()


def parameter(cli: CliSession) -> str:
    return str(client(box_client.status(cli.box), "ssm").get_parameter(Name=END)["Parameter"]["Value"])


def held(cli: CliSession, path: str) -> bytes:
    """The body of an object of the cluster."""
    bucket = f"corral-dev-{account.ACCOUNT}-us-east-1"
    found = client(box_client.status(cli.box), "s3").get_object(Bucket=bucket, Key=f"clusters/dev/{path}")
    return bytes(found["Body"].read())


def files_named(cli: CliSession) -> dict[str, str]:
    """The hashes in the cluster's manifest."""
    files: dict[str, str] = json.loads(json.loads(held(cli, "manifest.json"))["manifest"])["files"]
    return files


def extend_nothing(cli: CliSession) -> None:
    """Extend before the first up."""
    with step("a cluster that is not up has no end to move"):
        assert refused(cli, "extend", "dev", "4h") == (
            2,
            [
                "corral: cluster dev is not up",
                f"  its lifetime begins with its first deployment: corral up dev --box-dir {cli.box}",
            ],
        )
    with step("an unknown environment is named with those that exist"):
        code, (first, *_) = refused(cli, "extend", "prod", "4h")
        assert (code, first.partition(":")[2].partition(":")[0]) == (2, " unknown environment 'prod'")


def refuse_times(cli: CliSession) -> None:
    """Invalid times, a missing confirmation, and another state backend."""
    with step("a time that cannot be an end is refused"):
        for time, sentence in WRONG_TIMES.items():
            code, (first, *_) = refused(cli, "extend", "dev", time)
            assert (code, first) == (2, sentence)
    with step("an earlier end needs a yes"):
        before = parameter(cli)
        code, (first, *_) = refused(cli, "extend", "dev", "1h")
        assert (code, first, parameter(cli)) == (2, "corral: cannot ask for confirmation without a terminal", before)
    with step("a backend without the cluster's stack does not move its end"):
        stacks = cli.box / "pulumi/.pulumi/stacks/corral-cluster"
        stacks.rename(stacks.with_name("elsewhere"))
        code, (first, *_) = refused(cli, "extend", "dev", "3d")
        stacks.with_name("elsewhere").rename(stacks)
        assert (code, first) == (4, "corral: cluster dev belongs to another state backend: nothing was changed")


def up_shortly_before_the_end(cli: CliSession) -> None:
    """Move the end to ten minutes from now."""
    expect(cli, "extend", "dev", "10m", "--yes")
    deployed, files = held(cli, "deployed.json"), files_named(cli)
    shown = expect(cli, "up", "dev", "--yes")
    with step("an up shortly before the end shows how to extend"):
        assert f"to extend it: corral extend dev 4h --box-dir {cli.box}" in shown
    with step("the next up writes the same files"):
        assert held(cli, "deployed.json") == deployed
        assert files_named(cli) == files


def expire(cli: CliSession) -> None:
    """Expire the lifetime."""
    client(box_client.status(cli.box), "ssm").put_parameter(Name=END, Value="2026-01-02T03:04:05Z", Overwrite=True)
    with step("a cluster that has expired is not brought up"):
        for command in (("up", "dev", "--yes"), ("up", "dev", "--preview"), ("upgrade", "image", "dev", "--yes")):
            code, lines = refused(cli, *command)
            assert (code, lines[-3:]) == (4, [line.replace("BOX", str(cli.box)) for line in EXPIRED])
    with step("plain pulumi does not bring it up either"):
        before = cli.left()
        done = cli.pulumi("cluster", "up", "--yes", "--skip-preview")
        lines = [line.strip().removeprefix("error: ") for line in (done.stdout + done.stderr).splitlines()]
        expected = [line.removeprefix("corral: ").strip().replace(" --box-dir BOX", "") for line in EXPIRED]
        assert (done.returncode, [line for line in lines if line in expected]) == (1, expected)
        assert ([line for line in lines if "Traceback" in line], cli.left()) == ([], before)


def up_without_a_lifetime(cli: CliSession) -> None:
    """Remove the lifetime from the spec."""
    cli.replace("stacks/cluster/Pulumi.dev.yaml", "ttl: 12h", "# ttl: 12h")
    with step("an expired cluster is deployed if its spec has no lifetime"):
        expect(cli, "up", "dev", "--yes")
        assert json.loads(held(cli, "deployed.json"))["ends_at"] is None
    with step("a cluster without an end has none to move"):
        assert refused(cli, "extend", "dev", "4h") == (
            2,
            [
                "corral: cluster dev never ends",
                f"  to give it an end: set lifetime.ttl in its spec, then corral up dev --box-dir {cli.box}",
            ],
        )
