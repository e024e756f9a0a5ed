"""The life of `dev`, from the first up to the lost state: the real engine, the box's daemon, plain `pulumi` in between.

The stations are fixtures that follow each other; the claims below each are about what was seen there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

import boxes
from corral import render
from corral.box import control
from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts, Deployed
from corral.model.jsons import from_json
from corral.model.markets import Role
from environments import dev_base, dev_cluster
from life import CORPUS, Life, begin, digest

pytestmark = [pytest.mark.pulumi, pytest.mark.box]
BUCKET = f"corral-dev-{control.ACCOUNT}-us-east-1"
SPOT = "train-spot-use1-az1"
KEPT = {"efs/file-system", "kms/key", "s3/bucket"}


def changes(stack: dict[str, Any]) -> dict[str, int]:
    """What a command did to a stack, without what stayed."""
    counts = ("created", "updated", "replaced", "deleted")
    return {name: len(stack[name]) if isinstance(stack[name], list) else stack[name] for name in counts}


NOTHING = {"created": 0, "updated": 0, "replaced": 0, "deleted": 0}


@pytest.fixture(scope="module")
def unborn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    directory = tmp_path_factory.mktemp("life")
    with boxes.running_box(directory / "box") as box:
        yield begin(directory, box)


# --- up


@pytest.fixture(scope="module")
def born(unborn: Life) -> Life:
    unborn.seen["files"] = digest(unborn.project)
    unborn.seen["up"] = json.loads(unborn.corral("up", "dev", "--box", "--yes", "--json").out)
    return unborn


@pytest.fixture(scope="module")
def plan() -> ClusterPlan:
    """What was planned for the box: the shipped cluster with the box's image."""
    return dev_cluster(image_profile="box-debian-12")


@pytest.fixture(scope="module")
def deployed(born: Life) -> Deployed:
    return from_json(Deployed, born.object_text("deployed.json"))


@pytest.mark.parametrize("stack", ["base", "cluster"])
def test_plain_pulumi_up_finds_nothing_to_do_after_corral_up(born: Life, stack: str) -> None:
    ended = born.pulumi(stack, "-s", "dev", "up", "--expect-no-changes", "--skip-preview", "--yes")
    assert ended.code == 0, ended.out + ended.err


def test_up_changes_no_file_of_the_project(born: Life) -> None:
    assert digest(born.project) == born.seen["files"]


def test_the_p4d_template_holds_the_literal_five_interfaces(born: Life) -> None:
    nics = born.template_of(SPOT)["LaunchTemplateData"]["NetworkInterfaces"]
    assert [(n.get("NetworkCardIndex", 0), n["DeviceIndex"], n["InterfaceType"]) for n in nics] == [
        (0, 0, "interface"),
        (0, 1, "efa-only"),
        (1, 0, "efa-only"),
        (2, 0, "efa-only"),
        (3, 0, "efa-only"),
    ]


@pytest.fixture(scope="module")
def machines(born: Life) -> list[Any]:
    """Two machines of the first offer, launched as the head will: by the template alone. They run until `down`."""
    template = {"LaunchTemplateId": born.template_of(SPOT)["LaunchTemplateId"], "Version": "$Default"}
    made = born.client("ec2").run_instances(LaunchTemplate=template, MinCount=2, MaxCount=2)["Instances"]
    ids = [instance["InstanceId"] for instance in made]
    return [
        instance
        for reservation in born.client("ec2").describe_instances(InstanceIds=ids)["Reservations"]
        for instance in reservation["Instances"]
    ]


def test_a_machine_has_exactly_the_templates_interfaces(machines: list[Any]) -> None:
    kinds = [
        (n["Attachment"]["NetworkCardIndex"], n["Attachment"]["DeviceIndex"], n["InterfaceType"])
        for n in machines[1]["NetworkInterfaces"]
    ]
    assert sorted(kinds) == [
        (0, 0, "interface"),
        (0, 1, "efa-only"),
        (1, 0, "efa-only"),
        (2, 0, "efa-only"),
        (3, 0, "efa-only"),
    ]


def test_a_machine_stands_in_the_right_zone_group_and_market(machines: list[Any], deployed: Deployed) -> None:
    seen = [(m["SubnetId"], m["Placement"]["GroupName"], m["InstanceLifecycle"]) for m in machines]
    assert seen == [(deployed.subnets["use1-az1"], deployed.placement_groups["train-use1-az1"], "spot")] * 2


def test_a_machine_takes_one_address_however_many_interfaces_it_has(machines: list[Any]) -> None:
    addresses = [n.get("PrivateIpAddress") for n in machines[0]["NetworkInterfaces"]]
    assert len([address for address in addresses if address]) == 1


def test_a_machines_address_is_not_one_of_those_kept_for_heads(machines: list[Any]) -> None:
    from ipaddress import ip_address

    heads = dev_base().zone("use1-az1").heads
    assert [m["PrivateIpAddress"] for m in machines if ip_address(m["PrivateIpAddress"]) in heads] == []


def test_a_machine_is_told_apart_by_tags_that_its_template_wrote(machines: list[Any]) -> None:
    tags = {tag["Key"]: tag["Value"] for tag in machines[0]["Tags"] if tag["Key"].startswith("corral:")}
    assert tags == {
        "corral:base": "dev",
        "corral:cluster": "dev",
        "corral:queue": "train",
        "corral:offer": SPOT,
    }


def test_deployed_json_names_the_subnets_that_ec2_has(born: Life, deployed: Deployed) -> None:
    zones = [{"Name": "subnet-id", "Values": list(deployed.subnets.values())}]
    subnets = born.client("ec2").describe_subnets(Filters=zones)["Subnets"]
    assert {s["AvailabilityZoneId"]: (s["SubnetId"], s["CidrBlock"]) for s in subnets} == {
        "use1-az1": (deployed.subnets["use1-az1"], "10.64.0.0/19"),
        "use1-az2": (deployed.subnets["use1-az2"], "10.64.32.0/19"),
    }


def test_deployed_json_names_the_templates_versions_that_ec2_has(born: Life, deployed: Deployed) -> None:
    found = {offer: born.template_of(offer) for offer in deployed.templates}
    assert {o: (t["LaunchTemplateId"], str(t["VersionNumber"])) for o, t in found.items()} == {
        offer: (template.id, template.version) for offer, template in deployed.templates.items()
    }


def test_deployed_json_names_the_file_systems_that_aws_has(born: Life, deployed: Deployed) -> None:
    (lustre,) = born.client("fsx").describe_file_systems()["FileSystems"]
    (home,) = born.client("efs").describe_file_systems()["FileSystems"]
    scratch = deployed.lustre["scratch"]
    assert (scratch.id, scratch.dns_name, scratch.mount_name, deployed.home) == (
        lustre["FileSystemId"],
        lustre["DNSName"],
        lustre["LustreConfiguration"]["MountName"],
        home["FileSystemId"],
    )


def test_deployed_json_names_the_image_that_the_parameter_held(born: Life, deployed: Deployed) -> None:
    newest = born.client("ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    template = born.template_of(SPOT)["LaunchTemplateData"]["ImageId"]
    assert (deployed.image_id, template) == (newest, newest)


def test_deployed_json_names_the_places_of_log_secret_and_names(born: Life, deployed: Deployed) -> None:
    (zone,) = born.client("route53").list_hosted_zones()["HostedZones"]
    secret = born.client("secretsmanager").describe_secret(SecretId="corral/dev/munge")
    assert (deployed.log_group, deployed.munge_secret, deployed.hosted_zone) == (
        "/corral/dev",
        secret["ARN"],
        zone["Id"].rpartition("/")[2],
    )


def test_the_bucket_holds_the_very_files_that_render_gives(born: Life, plan: ClusterPlan) -> None:
    files = render.cluster_files(plan)
    assert {path: born.object_text(path) for path in files} == files


def only_object(born: Life, prefix: str) -> tuple[str, str]:
    """The key and the hash of the one object below a prefix of the bucket."""
    (found,) = born.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]
    content = born.client("s3").get_object(Bucket=BUCKET, Key=found["Key"])["Body"].read()
    return found["Key"], hashlib.sha256(content).hexdigest()


def test_user_data_in_the_template_is_the_rendered_text_with_both_archives_hashes(
    born: Life, plan: ClusterPlan
) -> None:
    archives = dict(only_object(born, f"clusters/dev/{name}/") for name in ("agent", "library"))
    (agent, agents_hash), (library, librarys_hash) = archives.items()
    facts = BootFacts(
        cluster="dev",
        region="us-east-1",
        bucket=BUCKET,
        prefix="clusters/dev",
        bundle_key=agent,
        bundle_sha256=agents_hash,
        library_key=library,
        library_sha256=librarys_hash,
    )
    text = base64.b64decode(born.template_of(SPOT)["LaunchTemplateData"]["UserData"]).decode()
    assert text == render.user_data(plan, Role.COMPUTE, facts)


def test_slurm_conf_in_the_bucket_names_the_heads_real_address(born: Life) -> None:
    line = f"SlurmctldHost=dev-head({born.head()['PrivateIpAddress']})"
    assert line in born.object_text("slurm/slurm.conf").splitlines()


def test_nccl_conf_in_the_bucket_is_for_the_interface_that_carries_ip(born: Life) -> None:
    settings = [line for line in born.object_text("nccl/train.conf").splitlines() if line and not line.startswith("#")]
    assert settings == ["NCCL_SOCKET_IFNAME=en,eth", "NCCL_DEBUG=WARN"]


def test_every_volume_is_encrypted_with_the_bases_key(born: Life, deployed: Deployed, machines: list[Any]) -> None:
    volumes = born.client("ec2").describe_volumes()["Volumes"]
    assert [v["VolumeId"] for v in volumes if v.get("KmsKeyId") != deployed.key_arn] == []


# --- change


@pytest.fixture(scope="module")
def grown(born: Life) -> Life:
    """More nodes are asked for, and meanwhile the profile of the image has a newer one."""
    file = born.project / "stacks/cluster/Pulumi.dev.yaml"
    born.seen["head"], born.seen["template"] = born.head(), born.template_of(SPOT)
    images = [image["ImageId"] for image in born.client("ec2").describe_images(Owners=["amazon"])["Images"]]
    pinned = born.client("ssm").get_parameter(Name="/corral/dev/image")["Parameter"]["Value"]
    newest = next(image for image in images if image != pinned)
    born.client("ssm").put_parameter(Name="/corral-box/ami", Value=newest, Type="String", Overwrite=True)
    born.seen["images"] = (pinned, newest)
    file.write_text(file.read_text().replace("max: 4", "max: 6"))
    born.seen["preview"] = born.corral("up", "dev", "--box", "--preview").out
    born.seen["grow"] = json.loads(born.corral("up", "dev", "--box", "--yes", "--json").out)
    return born


def test_a_preview_shows_the_changed_line_of_slurm_conf(grown: Life) -> None:
    lines = [
        line.strip().split(" ")[0]
        for line in grown.seen["preview"].splitlines()
        if "NodeName=" in line and "CPU" not in line
    ]
    assert [line for line in lines if "Name" in line][-2:] == ["-NodeName=train-[1-4]", "+NodeName=train-[1-6]"]


def test_more_nodes_change_three_files_and_their_manifest_and_not_the_image_that_is_pinned(grown: Life) -> None:
    assert (changes(grown.seen["grow"]["base"]), changes(grown.seen["grow"]["cluster"])) == (
        NOTHING,
        {**NOTHING, "updated": 4},
    )


def test_more_nodes_touch_neither_head_nor_template(grown: Life) -> None:
    seen = grown.seen
    assert (grown.head()["InstanceId"], grown.template_of(SPOT)["VersionNumber"]) == (
        seen["head"]["InstanceId"],
        seen["template"]["VersionNumber"],
    )


# --- the ground changes


@pytest.fixture(scope="module")
def shaken(grown: Life) -> Life:
    """A zone is to come, and one to go in which a machine runs. Neither is done."""
    ec2, file = grown.client("ec2"), grown.project / "stacks/base/Pulumi.dev.yaml"
    zones = file.read_text()
    template = {"LaunchTemplateId": grown.template_of("train-spot-use1-az2")["LaunchTemplateId"]}
    (node,) = ec2.run_instances(LaunchTemplate=template, MinCount=1, MaxCount=1)["Instances"]
    grown.seen["node"], targets = node["InstanceId"], ec2.describe_subnets()["Subnets"]
    file.write_text(zones.replace("[use1-az1, use1-az2]", "[use1-az1]"))
    grown.seen["zone less"] = grown.corral("up", "dev", "--box", "--yes", code=4).err
    grown.seen["ground"] = (grown.inventory()["efs/mount-target"], targets == ec2.describe_subnets()["Subnets"])
    file.write_text(zones.replace("[use1-az1, use1-az2]", "[use1-az1, use1-az2, use1-az4]"))
    grown.seen["zone more"] = grown.corral("up", "dev", "--box", "--preview").out
    file.write_text(zones)
    ec2.terminate_instances(InstanceIds=[grown.seen["node"]])
    return grown


def test_a_zone_stays_while_a_machine_runs_in_it(shaken: Life) -> None:
    assert shaken.seen["zone less"].splitlines() == [
        "corral: cluster dev: a placement group of train would go while 1 machine is in it: nothing was changed",
        f"    {shaken.seen['node']}  p4d.24xlarge  us-east-1c",
        "  let their jobs end and the machines go idle, or end them now: corral up dev --box --end-machines",
    ]


def test_a_refused_change_of_zones_touches_nothing(shaken: Life) -> None:
    mount_targets, same_subnets = shaken.seen["ground"]
    assert (len(mount_targets), same_subnets) == (2, True)


def test_a_preview_of_another_zone_shows_the_templates_that_it_brings(shaken: Life) -> None:
    shown = [line.split() for line in shaken.seen["zone more"].splitlines()]
    new = sorted(line[2] for line in shown if line[:2] == ["create", "aws:ec2:LaunchTemplate"])
    assert new == ["queues-train-on-demand-use1-az4", "queues-train-spot-use1-az4"]


# --- the newer image


@pytest.fixture(scope="module")
def upgraded(shaken: Life) -> Life:
    shaken.seen["upgrade"] = json.loads(shaken.corral("upgrade", "image", "dev", "--box", "--yes", "--json").out)
    return shaken


def test_an_upgrade_moves_the_image_of_the_templates(upgraded: Life) -> None:
    pinned, newest = upgraded.seen["images"]
    (move,) = upgraded.seen["upgrade"]["moved"]
    assert (move["pinned"], move["newest"]) == (pinned, newest)
    assert upgraded.template_of(SPOT)["LaunchTemplateData"]["ImageId"] == newest


def test_an_upgrade_leaves_the_running_head(upgraded: Life) -> None:
    assert upgraded.head()["InstanceId"] == upgraded.seen["head"]["InstanceId"]


# --- the head is lost


@pytest.fixture(scope="module")
def beheaded(upgraded: Life) -> Life:
    upgraded.client("ec2").terminate_instances(InstanceIds=[upgraded.seen["head"]["InstanceId"]])
    upgraded.corral("up", "dev", "--box", "--yes")
    return upgraded


def test_a_lost_head_is_replaced(beheaded: Life) -> None:
    assert beheaded.head()["InstanceId"] != beheaded.seen["head"]["InstanceId"]


def test_a_new_head_has_the_old_address_and_state_volume(beheaded: Life) -> None:
    def facts(head: Any) -> tuple[str, str]:
        volumes = {mapping["DeviceName"]: mapping["Ebs"]["VolumeId"] for mapping in head["BlockDeviceMappings"]}
        return head["PrivateIpAddress"], volumes["/dev/sdf"]

    assert facts(beheaded.head()) == facts(beheaded.seen["head"])


# --- down


@pytest.fixture(scope="module")
def gone(beheaded: Life, machines: list[Any]) -> Life:
    beheaded.seen["pins"] = beheaded.client("ssm").get_parameter(Name="/corral/dev/ends-at")["Parameter"]["Value"]
    beheaded.seen["down"] = json.loads(beheaded.corral("down", "dev", "--box", "--with-base", "--yes", "--json").out)
    beheaded.seen["kept"] = beheaded.inventory()
    return beheaded


def test_after_down_the_box_holds_what_it_held_before_and_what_is_kept(gone: Life) -> None:
    before, now = gone.seen["before"], gone.seen["kept"]
    more = sorted(id for kind, ids in now.items() for id in ids if id not in before.get(kind, []))
    assert more == sorted(one["id"] for one in gone.seen["down"]["kept"])


def test_down_ends_the_machines_that_were_launched_for_queues(gone: Life, machines: list[Any]) -> None:
    ids = [machine["InstanceId"] for machine in machines]
    found = gone.client("ec2").describe_instances(InstanceIds=ids)["Reservations"]
    assert {one["State"]["Name"] for reservation in found for one in reservation["Instances"]} == {"terminated"}


def test_down_lists_what_is_kept_with_its_monthly_cost(gone: Life) -> None:
    kept = {one["kind"]: round(one["usd_per_month"], 2) for one in gone.seen["down"]["kept"]}
    assert kept == {"home file system": 0.0, "bucket": 0.0, "key": 1.0}


def test_down_again_finds_nothing_and_is_no_failure(gone: Life) -> None:
    assert gone.corral("down", "dev", "--box", "--yes").code == 0


# --- up again, by plain pulumi


@pytest.fixture(scope="module")
def reborn(gone: Life) -> Life:
    gone.pulumi("cluster", "stack", "init", "dev")
    gone.seen["typed"] = [gone.pulumi(s, "-s", "dev", "up", "--skip-preview", "--yes") for s in ("base", "cluster")]
    gone.seen["after"] = json.loads(gone.corral("up", "dev", "--box", "--yes", "--json").out)
    return gone


def test_plain_pulumi_brings_both_stacks_up(reborn: Life) -> None:
    assert [ended.code for ended in reborn.seen["typed"]] == [0, 0], reborn.seen["typed"]


def test_corral_up_finds_nothing_to_do_after_plain_pulumi_up(reborn: Life) -> None:
    assert [changes(reborn.seen["after"][stack]) for stack in ("base", "cluster")] == [NOTHING, NOTHING]


def test_the_next_up_continues_with_what_was_kept(reborn: Life) -> None:
    now = reborn.inventory()
    assert {kind: now[kind] for kind in KEPT} == {kind: reborn.seen["kept"][kind] for kind in KEPT}


# --- the worst for an environment that is up: its state is lost, and a sweep ends all that costs money


@pytest.fixture(scope="module")
def swept(reborn: Life) -> Life:
    reborn.seen["living"] = reborn.corral("sweep", "--box-dir", str(reborn.box.dir)).out
    reborn.seen["status"] = reborn.corral("status", "dev", "--box-dir", str(reborn.box.dir)).out
    shutil.rmtree(reborn.box.dir / "pulumi/.pulumi/stacks")
    reborn.corral("sweep", "--delete", "--yes", "--box-dir", str(reborn.box.dir))
    return reborn


def test_a_sweep_leaves_alone_what_is_up(swept: Life) -> None:
    assert "Left behind in us-east-1  nothing" in swept.seen["living"]


def test_the_status_says_where_the_head_is(swept: Life) -> None:
    assert "is running at 10.64.0.23" in swept.seen["status"]


def test_a_sweep_after_a_lost_state_leaves_kept_data_alone(swept: Life) -> None:
    now = swept.inventory()
    assert sorted(now) == ["efs/file-system", "kms/key", "s3/bucket", "s3/object"]
    assert {kind: now[kind] for kind in KEPT} == {kind: swept.seen["kept"][kind] for kind in KEPT}


def test_a_sweep_takes_the_files_of_the_cluster(swept: Life) -> None:
    objects = swept.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="clusters/")
    assert objects["KeyCount"] == 0  # their old versions stay for as long as the bucket keeps any


def test_the_box_kept_the_users_own_bucket(swept: Life) -> None:
    assert CORPUS in swept.inventory()["s3/bucket"]
