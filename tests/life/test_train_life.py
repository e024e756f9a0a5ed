"""The life of the shipped environment `train` in a box: markets, kept Lustre, a neighbour on its base, a lost state.

The stations are fixtures that follow each other; the claims below each are about what was seen there.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest

import boxes
from corral.box import control
from life import Life, begin, changes, facts, launched

pytestmark = [pytest.mark.pulumi, pytest.mark.box]
BLOCK, RESERVATION = "cr-0123456789abcdef0", "cr-0fedcba9876543210"


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    directory = tmp_path_factory.mktemp("train")
    with boxes.running_box(directory / "box") as box:
        yield begin(directory, box)


# --- train: block, reservation, spot; Lustre that the base keeps


@pytest.fixture(scope="module")
def train(life: Life) -> Life:
    life.seen["said"] = life.corral("up", "train", "--box", "--yes").out
    life.seen["again"] = life.done("up", "train")
    life.seen["machines"] = launched(life, "train", "us-east-1")
    return life


def test_what_stands_for_the_users_own_capacity_is_made_and_told(train: Life) -> None:
    lines = [line for line in train.seen["said"].splitlines() if line.startswith("the box has no cr-")]
    assert lines == [
        f"the box has no {BLOCK}, which stands for your capacity block: made one of 16 p5.48xlarge",
        f"the box has no {RESERVATION}, which stands for your capacity reservation: made one of 16 p5.48xlarge",
    ]


def test_an_up_after_the_up_finds_nothing_to_do(train: Life) -> None:
    assert [changes(train.seen["again"][stack]) for stack in ("base", "cluster")] == [0, 0]


def test_each_offer_launches_into_its_own_capacity(train: Life) -> None:
    assert {offer: facts(instance) for offer, instance in train.seen["machines"].items()} == {
        "train-capacity-block-use1-az1-bcdef0": ("capacity-block", BLOCK, 33, False),
        "train-reservation-use1-az1-543210": ("on-demand", RESERVATION, 33, False),
        "train-spot-use1-az1": ("spot", None, 33, True),
        "train-spot-use1-az2": ("spot", None, 33, True),
    }


def test_machines_can_mount_the_lustre_that_the_base_keeps(train: Life) -> None:
    bucket = f"corral-train-{control.ACCOUNT}-us-east-1"
    answer = train.client("s3").get_object(Bucket=bucket, Key="clusters/train/deployed.json")
    (system,) = train.client("fsx").describe_file_systems()["FileSystems"]
    assert json.loads(answer["Body"].read())["lustre"] == {
        "data": {
            "id": system["FileSystemId"],
            "dns_name": system["DNSName"],
            "mount_name": system["LustreConfiguration"]["MountName"],
        }
    }


# --- a second cluster on the same base


@pytest.fixture(scope="module")
def shared(train: Life) -> Life:
    file = train.project / "stacks/cluster/Pulumi.train.yaml"
    second = file.read_text().replace("          - market: capacity-block", "          - market: on-demand\n#")
    kept = [line for line in second.splitlines() if not line.strip().startswith(("#", "ids:", "count:"))]
    text = "\n".join(kept).replace("          - market: reservation\n            zones: [use1-az1]\n", "")
    (file.parent / "Pulumi.second.yaml").write_text(text)
    train.seen["second"] = train.done("up", "second")
    train.seen["refused"] = train.corral("down", "train", "--box", "--yes", "--with-base", code=4).err
    train.done("down", "second")
    return train


def test_a_second_cluster_stands_on_the_same_base(shared: Life) -> None:
    assert (changes(shared.seen["second"]["base"]), shared.seen["second"]["cluster"]["outputs"]["base"]) == (0, "train")


def test_a_base_stays_while_another_cluster_refers_to_it(shared: Life) -> None:
    assert shared.seen["refused"].splitlines() == [
        "corral: base train stays: other clusters stand on it: second",
        "  first: corral down second --box",
    ]


# --- down, the state is lost, up again: what was kept is adopted


@pytest.fixture(scope="module")
def adopted(shared: Life) -> Life:
    shared.seen["down"] = shared.done("down", "train", "--with-base")
    shared.seen["kept"] = shared.inventory()
    for lost in ("pulumi", "stacks"):
        shutil.rmtree(shared.box.dir / lost)
    (shared.box.dir / "pulumi").mkdir()
    shared.done("up", "train")
    shared.seen["readopted"] = shared.done("up", "train")
    return shared


def test_down_keeps_lustre_with_the_network_that_it_stands_in(adopted: Life) -> None:
    kinds = ("fsx/file-system", "ec2/vpc", "ec2/subnet", "efs/mount-target", "ec2/nat-gateway")
    assert [len(adopted.seen["kept"].get(kind, ())) for kind in kinds] == [1, 1, 1, 0, 0]


def test_kept_lustre_is_listed(adopted: Life) -> None:
    kept = {one["kind"]: one["name"] for one in adopted.seen["down"]["kept"]}
    assert kept["lustre file system"] == "corral-train-data"


def test_what_was_kept_is_adopted_by_its_tags_when_the_state_is_lost(adopted: Life) -> None:
    kinds = ("fsx/file-system", "ec2/vpc", "efs/file-system", "kms/key", "s3/bucket")
    now = adopted.inventory()
    assert {kind: now[kind] for kind in kinds} == {kind: adopted.seen["kept"][kind] for kind in kinds}


def test_an_adopted_environment_has_nothing_left_to_do(adopted: Life) -> None:
    assert [changes(adopted.seen["readopted"][stack]) for stack in ("base", "cluster")] == [0, 0]


def test_data_that_is_deleted_by_name_takes_lustre_and_its_network_along(adopted: Life) -> None:
    adopted.done("down", "train", "--with-base", "--delete-data", "train")
    left = set(adopted.inventory())
    assert left == {"kms/key", "s3/bucket", "ec2/capacity-reservation", "ec2/capacity-block"}
