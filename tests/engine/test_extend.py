"""`corral extend` and what an up says of a cluster whose hour has passed, with the real engine and the real programs.

The tests continue from each other's stacks, in the order in which they stand here. Heads that hear of it: tests/life.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from boxes import client, running_box
from corral.box import control
from desks import Desk, furnished

pytestmark = [pytest.mark.pulumi, pytest.mark.box]
END = "/corral/dev/ends-at"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    place = tmp_path_factory.mktemp("extend")
    with running_box(place / "box"):
        yield Desk(project=furnished(place / "project", small=False), box=place / "box")


@pytest.fixture(scope="module")
def up(desk: Desk) -> Desk:
    done = desk.run("up", "dev", "--yes")
    assert done.returncode == 0, done.stderr
    return desk


def parameter(desk: Desk) -> str:
    return str(client(control.status(desk.box), "ssm").get_parameter(Name=END)["Parameter"]["Value"])


def held(desk: Desk, path: str) -> bytes:
    """An object of the cluster."""
    bucket = f"corral-dev-{control.ACCOUNT}-us-east-1"
    found = client(control.status(desk.box), "s3").get_object(Bucket=bucket, Key=f"clusters/dev/{path}")
    return bytes(found["Body"].read())


def refused(desk: Desk, *arguments: str) -> tuple[int, list[str]]:
    done = desk.run(*arguments)
    return done.returncode, done.stderr.splitlines()


def test_a_cluster_that_is_not_up_has_no_end_to_move(desk: Desk) -> None:
    assert refused(desk, "extend", "dev", "4h") == (
        2,
        [
            "corral: cluster dev: is not up",
            f"  its lifetime begins with its first up: corral up dev --box-dir {desk.box}",
        ],
    )


def test_an_unknown_environment_is_named_with_those_that_there_are(desk: Desk) -> None:
    code, (told, *_) = refused(desk, "extend", "prod", "4h")
    assert (code, told.partition(":")[2].partition(":")[0]) == (2, " there is no environment 'prod'")


@pytest.mark.parametrize(
    ("time", "told"),
    [
        ("soon", "corral: soon: that is no time - 4h, 1h30m, 2026-11-22 or 2026-11-22T18:00 (UTC) is"),
        ("2020-01-01", "corral: cluster dev: 2020-01-01 00:00 UTC is over"),
        ("2999-01-01", "corral: cluster dev: 2999-01-01 00:00 UTC is too far away"),
    ],
)
def test_a_time_that_cannot_be_an_end_is_refused(up: Desk, time: str, told: str) -> None:
    code, (first, *_) = refused(up, "extend", "dev", time)
    assert (code, first) == (2, told)


@pytest.fixture(scope="module")
def extended(up: Desk) -> dict[str, Any]:
    """What an extension to a moment in two days said, with what there was before and after."""
    before, end = parameter(up), (datetime.now(UTC) + timedelta(days=2)).replace(second=0, microsecond=0)
    hashes = up.hashes()
    done = up.run("extend", "dev", f"{end:%Y-%m-%dT%H:%M}", "--json")
    assert done.returncode == 0, done.stderr
    files = {"manifest": held(up, "manifest.json"), "deployed": held(up, "deployed.json")}
    return {"before": before, "end": end, "said": json.loads(done.stdout), "same": hashes == up.hashes(), **files}


def test_it_says_the_former_and_the_new_end(extended: dict[str, Any]) -> None:
    said, former = extended["said"], datetime.fromisoformat(extended["before"])
    assert (said["former"], said["ends_at"]) == (former.isoformat(), extended["end"].isoformat())


def test_parameter_and_deployed_json_have_the_new_end(up: Desk, extended: dict[str, Any]) -> None:
    text = f"{extended['end']:%Y-%m-%dT%H:%M:%SZ}"
    assert (parameter(up), json.loads(extended["deployed"])["ends_at"]) == (text, text)


def test_the_manifest_names_the_new_file(extended: dict[str, Any]) -> None:
    named = json.loads(extended["manifest"])["files"]["deployed.json"]
    assert named == hashlib.sha256(extended["deployed"]).hexdigest()


def test_it_changes_no_file_of_the_project(extended: dict[str, Any]) -> None:
    assert extended["same"]


def test_the_next_up_writes_the_very_same_files(up: Desk, extended: dict[str, Any]) -> None:
    done = up.run("up", "dev", "--yes")
    files = json.loads(extended["manifest"])["files"]
    assert (done.returncode, held(up, "deployed.json"), json.loads(held(up, "manifest.json"))["files"]) == (
        0,
        extended["deployed"],
        files,
    )


def test_an_earlier_end_needs_a_yes(up: Desk, extended: dict[str, Any]) -> None:
    before = parameter(up)
    code, told = refused(up, "extend", "dev", "1h")
    assert (code, told[0], parameter(up)) == (2, "corral: nobody can be asked here, as this is no terminal", before)


def test_a_backend_that_does_not_know_the_cluster_does_not_move_its_end(up: Desk) -> None:
    stacks = up.box / "pulumi/.pulumi/stacks/corral-cluster"
    stacks.rename(stacks.with_name("elsewhere"))
    code, told = refused(up, "extend", "dev", "3d")
    stacks.with_name("elsewhere").rename(stacks)
    assert (code, told[0]) == (4, "corral: cluster dev: is not this backend's: nothing was changed")


@pytest.fixture(scope="module")
def over(up: Desk) -> Desk:
    """The same environment when its hour has passed."""
    ssm = client(control.status(up.box), "ssm")
    ssm.put_parameter(Name=END, Value="2026-01-02T03:04:05Z", Overwrite=True)
    return up


REFUSED = [
    "corral: cluster dev: its hour has passed, 2026-01-02 03:04 UTC, and its head ends itself: nothing was changed",
    "  to go on with it: corral extend dev 4h --box-dir BOX, then corral up dev --box-dir BOX",
    "  to end it: corral down dev --box-dir BOX",
]


@pytest.mark.parametrize("command", [("up", "dev", "--yes"), ("up", "dev", "--preview"), ("upgrade", "image", "dev")])
def test_a_cluster_whose_hour_has_passed_is_not_brought_up(over: Desk, command: tuple[str, ...]) -> None:
    code, told = refused(over, *command, *(("--yes",) if "upgrade" in command else ()))
    assert (code, told[-3:]) == (4, [line.replace("BOX", str(over.box)) for line in REFUSED])


def test_a_spec_without_an_end_brings_it_up_all_the_same(over: Desk) -> None:
    over.replace("stacks/cluster/Pulumi.dev.yaml", "ttl: 12h", "# ttl: 12h")
    done = over.run("up", "dev", "--yes")
    assert (done.returncode, json.loads(held(over, "deployed.json"))["ends_at"]) == (0, None)


def test_a_cluster_without_an_end_has_none_to_move(over: Desk) -> None:
    assert refused(over, "extend", "dev", "4h") == (
        2,
        [
            "corral: cluster dev: never ends by itself",
            f"  to give it an end: lifetime.ttl in its spec, then corral up dev --box-dir {over.box}",
        ],
    )


def test_an_up_shortly_before_the_end_says_so(over: Desk) -> None:
    over.replace("stacks/cluster/Pulumi.dev.yaml", "# ttl: 12h", "ttl: 12h")
    over.run("up", "dev", "--yes")
    over.run("extend", "dev", "10m", "--yes")
    done = over.run("up", "dev", "--preview")
    assert f"to move that: corral extend dev 4h --box-dir {over.box}" in done.stdout
