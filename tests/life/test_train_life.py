"""The shipped environment `train` in a box: markets, kept Lustre, a second cluster on its base, a lost state.

A deployer runs it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import boxes
from corral.box import account
from life import Life, begin, changes, facts, launched
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box]
BLOCK, RESERVATION = "cr-0123456789abcdef0", "cr-0fedcba9876543210"


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """`train` that is up, and what was recorded of it then."""

    life: Life
    printed: str
    machines: dict[str, Any]
    lustre: tuple[Any, Any]


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Train]:
    directory = tmp_path_factory.mktemp("train")
    with boxes.running_box(directory / "box") as box:
        life = begin(directory, box, deployer_in=account.REGION)
        printed = life.corral("up", "train", "--box", "--yes").out
        bucket = f"corral-train-{account.ACCOUNT}-us-east-1"
        answer = life.client("s3").get_object(Bucket=bucket, Key="clusters/train/deployed.json")
        (system,) = life.client("fsx").describe_file_systems()["FileSystems"]
        lustre = (json.loads(answer["Body"].read())["lustre"], system)
        yield Train(life=life, printed=printed, machines=launched(life, "train", "us-east-1"), lustre=lustre)


def test_what_stands_for_the_users_own_capacity_is_made_and_reported(train: Train) -> None:
    lines = [line for line in train.printed.splitlines() if line.startswith("created cr-")]
    assert lines == [
        f"created {BLOCK} in the box, as a stand-in for your capacity block of 16 p5.48xlarge",
        f"created {RESERVATION} in the box, as a stand-in for your capacity reservation of 16 p5.48xlarge",
    ]


def test_each_offer_launches_into_its_own_capacity(train: Train) -> None:
    assert {offer: facts(instance) for offer, instance in train.machines.items()} == {
        "train-capacity-block-use1-az1-bcdef0": ("capacity-block", BLOCK, 33, False),
        "train-reservation-use1-az1-543210": ("on-demand", RESERVATION, 33, False),
        "train-spot-use1-az1": ("spot", None, 33, True),
        "train-spot-use1-az2": ("spot", None, 33, True),
    }


def test_machines_can_mount_the_lustre_that_the_base_keeps(train: Train) -> None:
    deployed, system = train.lustre
    mount_name = system["LustreConfiguration"]["MountName"]
    assert deployed == {"data": {"id": system["FileSystemId"], "dns_name": system["DNSName"], "mount_name": mount_name}}


@pytest.mark.long
def test_what_train_keeps_outlives_its_clusters_and_its_state(train: Train) -> None:
    life = train.life
    with step("a second cluster stands on the same base"):
        write_second(life)
        second = life.done("up", "second")
        assert (changes(second["base"]), second["cluster"]["outputs"]["base"]) == (0, "train")
    with step("a base stays while another cluster refers to it"):
        refused = life.corral("down", "train", "--box", "--yes", "--with-base", code=4).err
        assert refused.splitlines() == [
            "corral: base train was not deleted: other clusters use it: second",
            "  first: corral down second --box",
        ]
    life.done("down", "second")
    life.settle_tags()  # a deployer deletes the signing key by its tag
    down, kept = life.done("down", "train", "--with-base"), life.inventory()
    with step("down keeps Lustre with the network that it stands in"):
        kinds = ("fsx/file-system", "ec2/vpc", "ec2/subnet", "efs/mount-target", "ec2/nat-gateway")
        assert [len(kept.get(kind, ())) for kind in kinds] == [1, 1, 1, 0, 0]
    with step("kept Lustre is listed"):
        assert {one["kind"]: one["name"] for one in down["retained"]}["lustre file system"] == "corral-train-data"
    with step("what was kept is adopted by its tags and its key when the state is lost"):
        for lost in ("pulumi", "stacks"):
            shutil.rmtree(life.box.dir / lost)
        (life.box.dir / "pulumi").mkdir()
        life.done("up", "train")
        kinds = ("fsx/file-system", "ec2/vpc", "efs/file-system", "kms/key", "s3/bucket")
        assert {kind: life.inventory()[kind] for kind in kinds} == {kind: kept[kind] for kind in kinds}
    with step("an adopted environment has nothing left to do"):
        again = life.done("up", "train")
        assert [changes(again[stack]) for stack in ("base", "cluster")] == [0, 0]
    with step("data that is deleted by name takes Lustre and its network along"):
        life.settle_tags()
        life.done("down", "train", "--with-base", "--delete-data", "train")
        assert set(life.inventory()) == {"kms/key", "s3/bucket", "ec2/capacity-reservation", "ec2/capacity-block"}


def write_second(life: Life) -> None:
    """A second cluster's file, without the first one's reserved capacity."""
    file = life.project / "stacks/cluster/Pulumi.train.yaml"
    second = file.read_text().replace("          - market: capacity-block", "          - market: on-demand\n#")
    kept = [line for line in second.splitlines() if not line.strip().startswith(("#", "ids:", "count:"))]
    text = "\n".join(kept).replace("          - market: reservation\n            zones: [use1-az1]\n", "")
    (file.parent / "Pulumi.second.yaml").write_text(text)
