"""The life of `dev` that plain `pulumi` brings up, from changes that are refused to the loss of its state.

A deployer runs all of it, as in test_dev_life.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import boxes
from corral.box import account, control
from life import CORPUS, Life, begin, changes
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.long]
BUCKET = f"corral-dev-{account.ACCOUNT}-us-east-1"
KEPT = {"efs/file-system", "kms/key", "s3/bucket"}


def test_dev_from_plain_pulumi_to_a_lost_state(tmp_path: Path) -> None:
    with boxes.running_box(tmp_path / "box") as box:
        life = begin(tmp_path, box, deployer_in=account.REGION)
        come_up_by_pulumi(life)
        refuse_other_zones(life)
        upgrade_to_a_large_image(life)
        come_up_with_what_was_kept(life)
        lose_the_state(life)


def come_up_by_pulumi(life: Life) -> None:
    """Plain pulumi brings both stacks up; corral agrees with it."""
    life.corral("box", "env")  # copies the stacks, as users do before `pulumi`
    for stack in ("base", "cluster"):
        life.pulumi(stack, "stack", "init", "dev")
    typed = [life.pulumi(stack, "-s", "dev", "up", "--skip-preview", "--yes") for stack in ("base", "cluster")]
    with step("plain pulumi brings both stacks up"):
        assert [ended.code for ended in typed] == [0, 0], typed
    with step("corral up finds nothing to do after plain pulumi up"):
        after = life.done("up", "dev")
        assert [changes(after[stack]) for stack in ("base", "cluster")] == [0, 0]


def refuse_other_zones(life: Life) -> None:
    """One edit adds a zone, another removes one in which a machine runs. Neither is deployed."""
    ec2, file = life.client("ec2"), life.project / "stacks/base/Pulumi.dev.yaml"
    zones = file.read_text()
    template = {"LaunchTemplateId": life.template_of("train-spot-use1-az2")["LaunchTemplateId"]}
    (node,) = ec2.run_instances(LaunchTemplate=template, MinCount=1, MaxCount=1)["Instances"]
    life.seen["node"], targets = node["InstanceId"], ec2.describe_subnets()["Subnets"]
    file.write_text(zones.replace("[use1-az1, use1-az2]", "[use1-az1]"))
    life.seen["zone less"] = life.corral("up", "dev", "--box", "--yes", code=4).err
    life.seen["ground"] = (life.inventory()["efs/mount-target"], targets == ec2.describe_subnets()["Subnets"])
    file.write_text(zones.replace("[use1-az1, use1-az2]", "[use1-az1, use1-az2, use1-az4]"))
    life.seen["zone more"] = life.corral("up", "dev", "--box", "--preview").out
    file.write_text(zones)
    ec2.terminate_instances(InstanceIds=[life.seen["node"]])
    with step("a zone stays while a machine runs in it"):
        assert life.seen["zone less"].splitlines() == [
            "corral: cluster dev: cannot delete a placement group of train with 1 instance in it: nothing was changed",
            f"    {life.seen['node']}  p4d.24xlarge  us-east-1c",
            "  wait until they are idle and terminate, or terminate them now:"
            " corral up dev --box --terminate-instances",
        ]
    with step("a refused change of zones touches nothing"):
        mount_targets, same_subnets = life.seen["ground"]
        assert (len(mount_targets), same_subnets) == (2, True)
    with step("a preview of another zone shows the templates that it brings"):
        shown = [line.split() for line in life.seen["zone more"].splitlines()]
        new = sorted(line[2] for line in shown if line[:2] == ["create", "aws:ec2:LaunchTemplate"])
        assert new == ["queues-train-on-demand-use1-az4", "queues-train-spot-use1-az4"]


def upgrade_to_a_large_image(life: Life) -> None:
    """The newest image needs a larger root volume than the machines have."""
    pinned = life.parameter("/corral/dev/image")
    control.inject_fault(life.box.dir, "new-image", snapshot_gib="4000")
    refused = life.corral("upgrade", "image", "dev", "--box", "--yes", code=3)
    with step("an image that does not fit is refused, with the root volume that it needs"):
        large = life.parameter("/corral-box/ami")
        why = f"head and nodes: the root of {large} needs 4000 GiB; an instance that boots it has 150"
        assert refused.err.splitlines() == [
            "corral: cluster dev: its machines cannot boot these images",
            f"  {why} - set root_gib: 4000 or more",
        ]
    with step("an image that does not fit is not pinned"):
        assert life.parameter("/corral/dev/image") == pinned
    control.inject_fault(life.box.dir, "new-image", snapshot_gib="8")


def come_up_with_what_was_kept(life: Life) -> None:
    """A down, and another up."""
    life.settle_tags()  # a deployer deletes the signing key by its tag
    life.done("down", "dev", "--with-base")
    life.seen["kept"] = life.inventory()
    life.done("up", "dev")
    with step("the next up continues with what was kept"):
        now = life.inventory()
        assert {kind: now[kind] for kind in KEPT} == {kind: life.seen["kept"][kind] for kind in KEPT}


def lose_the_state(life: Life) -> None:
    """The worst for an environment that is up: its state is lost, and a cleanup ends all that costs money."""
    life.settle_tags()  # a deployer deletes the signing key by its tag
    life.seen["living"] = life.corral("cleanup", "dev", "--box-dir", str(life.box.dir)).out
    life.seen["status"] = life.corral("status", "dev", "--box-dir", str(life.box.dir)).out
    shutil.rmtree(life.box.dir / "pulumi/.pulumi/stacks")
    life.corral("cleanup", "dev", "--delete", "--yes", "--box-dir", str(life.box.dir))
    with step("a cleanup leaves alone what is up"):
        assert "Orphans in us-east-1  none" in life.seen["living"]
    with step("the status shows where the head is"):
        assert "is running at 10.64.0.23" in life.seen["status"]
    with step("a cleanup after a lost state leaves kept data alone"):
        now = life.inventory()
        assert sorted(now) == ["efs/file-system", "kms/alias", "kms/key", "s3/bucket", "s3/object"]
        assert {kind: now[kind] for kind in KEPT} == {kind: life.seen["kept"][kind] for kind in KEPT}
    with step("a cleanup takes the files of the cluster"):
        objects = life.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="clusters/")
        assert objects["KeyCount"] == 0  # their old versions stay for as long as the bucket keeps any
    with step("the box kept the user's own bucket"):
        assert CORPUS in life.inventory()["s3/bucket"]
