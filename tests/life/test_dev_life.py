"""The life of `dev`, from the first up to its down: the real engine, the box's daemon, plain `pulumi` in between.

A deployer runs all of it. It is one scenario, since each part begins where the one before it ended; a failure names its
step.
"""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

import boxes
from corral import render
from corral.box import account, control
from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts, Deployed
from corral.model.enums import Role
from corral.model.serialization import from_json
from environments import dev_base, dev_cluster
from life import Life, begin, digest
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box]
BUCKET = f"corral-dev-{account.ACCOUNT}-us-east-1"
SPOT = "train-spot-use1-az1"
END = "/corral/dev/ends-at"


def changes(stack: dict[str, Any]) -> dict[str, int]:
    """What a command did to a stack, without what stayed."""
    counts = ("created", "updated", "replaced", "deleted")
    return {name: len(stack[name]) if isinstance(stack[name], list) else stack[name] for name in counts}


NOTHING = {"created": 0, "updated": 0, "replaced": 0, "deleted": 0}


def test_dev_from_its_first_up_to_its_down(tmp_path: Path) -> None:
    with boxes.running_box(tmp_path / "box") as box:
        life = begin(tmp_path, box, deployer_in=account.REGION)
        come_up(life)
        deployed = from_json(Deployed, life.object_text("deployed.json"))
        machines = launch_two(life)
        look_at_machines(life, machines, deployed)
        look_at_deployed_json(life, deployed)
        look_at_files(life, dev_cluster(image_profile="box-debian-12"))
        grow(life)
        upgrade_the_image(life)
        extend(life)
        lose_the_head(life)
        go_down(life, machines)
        delete_the_data(life)


def come_up(life: Life) -> None:
    """The first up; plain pulumi agrees with it."""
    life.seen["files"] = digest(life.project)
    life.seen["up"] = json.loads(life.corral("up", "dev", "--box", "--yes", "--json").out)
    with step("up changes no file of the project"):
        assert digest(life.project) == life.seen["files"]
    with step("up creates as many resources as the README shows"):
        assert [life.seen["up"][stack]["created"] for stack in ("base", "cluster")] == [33, 62]
    with step("plain pulumi up finds nothing to do after corral up"):
        for stack in ("base", "cluster"):
            ended = life.pulumi(stack, "-s", "dev", "up", "--expect-no-changes", "--skip-preview", "--yes")
            assert ended.code == 0, ended.out + ended.err


def launch_two(life: Life) -> list[Any]:
    """Two machines of the first offer, launched as the head will: by the template alone. They run until `down`."""
    template = {"LaunchTemplateId": life.template_of(SPOT)["LaunchTemplateId"], "Version": "$Default"}
    made = life.client("ec2").run_instances(LaunchTemplate=template, MinCount=2, MaxCount=2)["Instances"]
    ids = [instance["InstanceId"] for instance in made]
    return [
        instance
        for reservation in life.client("ec2").describe_instances(InstanceIds=ids)["Reservations"]
        for instance in reservation["Instances"]
    ]


def look_at_machines(life: Life, machines: list[Any], deployed: Deployed) -> None:
    """What EC2 makes of the templates."""
    with step("the p4d template holds the literal five interfaces"):
        nics = life.template_of(SPOT)["LaunchTemplateData"]["NetworkInterfaces"]
        assert [(n.get("NetworkCardIndex", 0), n["DeviceIndex"], n["InterfaceType"]) for n in nics] == [
            (0, 0, "interface"),
            (0, 1, "efa-only"),
            (1, 0, "efa-only"),
            (2, 0, "efa-only"),
            (3, 0, "efa-only"),
        ]
    with step("a machine has exactly its template's interfaces"):
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
    with step("a machine is in the right zone, group and market"):
        seen = [(m["SubnetId"], m["Placement"]["GroupName"], m["InstanceLifecycle"]) for m in machines]
        assert seen == [(deployed.subnets["use1-az1"], deployed.placement_groups["train-use1-az1"], "spot")] * 2
    with step("a machine takes one address however many interfaces it has"):
        addresses = [n.get("PrivateIpAddress") for n in machines[0]["NetworkInterfaces"]]
        assert len([address for address in addresses if address]) == 1
    with step("a machine's address is not one of those kept for heads"):
        heads = dev_base().zone("use1-az1").heads
        assert [m["PrivateIpAddress"] for m in machines if ip_address(m["PrivateIpAddress"]) in heads] == []
    with step("tags that its template wrote identify a machine"):
        tags = {tag["Key"]: tag["Value"] for tag in machines[0]["Tags"] if tag["Key"].startswith("corral:")}
        assert tags == {
            "corral:base": "dev",
            "corral:cluster": "dev",
            "corral:queue": "train",
            "corral:offer": SPOT,
        }
    with step("every volume is encrypted with the base's key"):
        volumes = life.client("ec2").describe_volumes()["Volumes"]
        assert [v["VolumeId"] for v in volumes if v.get("KmsKeyId") != deployed.key_arn] == []


def look_at_deployed_json(life: Life, deployed: Deployed) -> None:
    """It names what AWS has."""
    with step("deployed.json names the subnets that ec2 has"):
        zones = [{"Name": "subnet-id", "Values": list(deployed.subnets.values())}]
        subnets = life.client("ec2").describe_subnets(Filters=zones)["Subnets"]
        assert {s["AvailabilityZoneId"]: (s["SubnetId"], s["CidrBlock"]) for s in subnets} == {
            "use1-az1": (deployed.subnets["use1-az1"], "10.64.0.0/19"),
            "use1-az2": (deployed.subnets["use1-az2"], "10.64.32.0/19"),
        }
    with step("deployed.json names the templates' versions that ec2 has"):
        found = {offer: life.template_of(offer) for offer in deployed.templates}
        assert {o: (t["LaunchTemplateId"], str(t["VersionNumber"])) for o, t in found.items()} == {
            offer: (template.id, template.version) for offer, template in deployed.templates.items()
        }
    with step("deployed.json names the file systems that aws has"):
        (lustre,) = life.client("fsx").describe_file_systems()["FileSystems"]
        (home,) = life.client("efs").describe_file_systems()["FileSystems"]
        scratch = deployed.lustre["scratch"]
        assert (scratch.id, scratch.dns_name, scratch.mount_name, deployed.home) == (
            lustre["FileSystemId"],
            lustre["DNSName"],
            lustre["LustreConfiguration"]["MountName"],
            home["FileSystemId"],
        )
    with step("deployed.json names the image that the parameter held"):
        newest = life.client("ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
        template = life.template_of(SPOT)["LaunchTemplateData"]["ImageId"]
        assert (deployed.image_id, template) == (newest, newest)
    with step("deployed.json names log group, secret and hosted zone"):
        (zone,) = life.client("route53").list_hosted_zones()["HostedZones"]
        secret = life.client("secretsmanager").describe_secret(SecretId="corral/dev/munge")
        assert (deployed.log_group, deployed.munge_secret, deployed.hosted_zone) == (
            "/corral/dev",
            secret["ARN"],
            zone["Id"].rpartition("/")[2],
        )


def only_object(life: Life, prefix: str) -> tuple[str, str]:
    """The key and the hash of the one object below a prefix of the bucket."""
    (found,) = life.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]
    content = life.client("s3").get_object(Bucket=BUCKET, Key=found["Key"])["Body"].read()
    return found["Key"], hashlib.sha256(content).hexdigest()


def look_at_files(life: Life, plan: ClusterPlan) -> None:
    """What the bucket and the templates hold, for what was planned."""
    with step("the bucket holds the very files that render gives"):
        files = render.cluster_files(plan)
        assert {path: life.object_text(path) for path in files} == files
    with step("user data in the template is the rendered text with both archives' hashes"):
        archives = dict(only_object(life, f"clusters/dev/{name}/") for name in ("agent", "library"))
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
            public_key=life.seen["up"]["base"]["outputs"]["public_key"],
        )
        text = base64.b64decode(life.template_of(SPOT)["LaunchTemplateData"]["UserData"]).decode()
        assert text == render.user_data(plan, Role.COMPUTE, facts)
    with step("slurm.conf in the bucket names the head's real address"):
        line = f"SlurmctldHost=dev-head({life.head()['PrivateIpAddress']})"
        assert line in life.object_text("slurm/slurm.conf").splitlines()
    with step("nccl.conf in the bucket is for the interface that carries ip"):
        settings = [
            line for line in life.object_text("nccl/train.conf").splitlines() if line and not line.startswith("#")
        ]
        assert settings == ["NCCL_SOCKET_IFNAME=en,eth", "NCCL_DEBUG=WARN"]


def grow(life: Life) -> None:
    """The queue gets more nodes, and meanwhile the image profile a newer image."""
    file = life.project / "stacks/cluster/Pulumi.dev.yaml"
    life.seen["head"], life.seen["template"] = life.head(), life.template_of(SPOT)
    pinned = life.parameter("/corral/dev/image")
    control.inject_fault(life.box.dir, "new-image")
    life.seen["images"] = (pinned, life.parameter("/corral-box/ami"))
    file.write_text(file.read_text().replace("max: 4", "max: 6"))
    life.seen["preview"] = life.corral("up", "dev", "--box", "--preview").out
    life.seen["grow"] = json.loads(life.corral("up", "dev", "--box", "--yes", "--json").out)
    with step("a preview shows the changed line of slurm.conf"):
        lines = [
            line.strip().split(" ")[0]
            for line in life.seen["preview"].splitlines()
            if "NodeName=" in line and "CPU" not in line
        ]
        assert [line for line in lines if "Name" in line][-2:] == ["-NodeName=train-[1-4]", "+NodeName=train-[1-6]"]
    with step("more nodes change three files and their manifest and not the image that is pinned"):
        assert (changes(life.seen["grow"]["base"]), changes(life.seen["grow"]["cluster"])) == (
            NOTHING,
            {**NOTHING, "updated": 4},
        )
    with step("more nodes touch neither head nor template"):
        seen = life.seen
        assert (life.head()["InstanceId"], life.template_of(SPOT)["VersionNumber"]) == (
            seen["head"]["InstanceId"],
            seen["template"]["VersionNumber"],
        )


def upgrade_the_image(life: Life) -> None:
    """The templates move to the newest image."""
    life.seen["upgrade"] = json.loads(life.corral("upgrade", "image", "dev", "--box", "--yes", "--json").out)
    with step("an upgrade moves the image of the templates"):
        pinned, newest = life.seen["images"][0], life.parameter("/corral-box/ami")
        (move,) = life.seen["upgrade"]["moved"]
        assert (move["pinned"], move["newest"]) == (pinned, newest)
        assert life.template_of(SPOT)["LaunchTemplateData"]["ImageId"] == newest
    with step("an upgrade leaves the running head"):
        assert life.head()["InstanceId"] == life.seen["head"]["InstanceId"]


def extend(life: Life) -> None:
    """The lifetime gets another end, two days from now."""
    files, former = digest(life.project), datetime.fromisoformat(life.parameter(END))
    end = (datetime.now(UTC) + timedelta(days=2)).replace(second=0, microsecond=0)
    with step("extend shows the former and the new end"):
        shown = json.loads(life.corral("extend", "dev", f"{end:%Y-%m-%dT%H:%M}", "--box", "--json").out)
        assert (shown["former"], shown["ends_at"]) == (former.isoformat(), end.isoformat())
    with step("parameter and deployed.json have the new end"):
        text = f"{end:%Y-%m-%dT%H:%M:%SZ}"
        assert (life.parameter(END), json.loads(life.object_text("deployed.json"))["ends_at"]) == (text, text)
    with step("the manifest names the file with the new end"):
        named = json.loads(json.loads(life.object_text("manifest.json"))["manifest"])["files"]["deployed.json"]
        assert named == hashlib.sha256(life.object_text("deployed.json").encode()).hexdigest()
    with step("extend changes no file of the project"):
        assert digest(life.project) == files


def lose_the_head(life: Life) -> None:
    """The head is lost, and the next up makes another."""
    life.client("ec2").terminate_instances(InstanceIds=[life.seen["head"]["InstanceId"]])
    life.corral("up", "dev", "--box", "--yes")
    with step("a lost head is replaced"):
        assert life.head()["InstanceId"] != life.seen["head"]["InstanceId"]
    with step("a new head has the old address and state volume"):
        assert address_and_state(life.head()) == address_and_state(life.seen["head"])


def address_and_state(head: Any) -> tuple[str, str]:
    """Where a head is found, and the volume that holds its state."""
    volumes = {mapping["DeviceName"]: mapping["Ebs"]["VolumeId"] for mapping in head["BlockDeviceMappings"]}
    return head["PrivateIpAddress"], volumes["/dev/sdf"]


def go_down(life: Life, machines: list[Any]) -> None:
    """The cluster and its base go; what holds data stays."""
    life.settle_tags()  # a deployer deletes the signing key by its tag
    life.seen["down"] = json.loads(life.corral("down", "dev", "--box", "--with-base", "--yes", "--json").out)
    life.seen["kept"] = life.inventory()
    with step("after down the box holds what it held before and what is kept"):
        before, now = life.seen["before"], life.seen["kept"]
        more = sorted(id for kind, ids in now.items() for id in ids if id not in before.get(kind, []))
        # The alias proves later that the kept key is the base's own.
        assert more == sorted(["alias/corral-dev", *(one["id"] for one in life.seen["down"]["retained"])])
    with step("down ends the machines that were launched for queues"):
        ids = [machine["InstanceId"] for machine in machines]
        found = life.client("ec2").describe_instances(InstanceIds=ids)["Reservations"]
        assert {one["State"]["Name"] for reservation in found for one in reservation["Instances"]} == {"terminated"}
    with step("down lists what is kept with its monthly cost"):
        kept = {one["kind"]: round(one["usd_per_month"], 2) for one in life.seen["down"]["retained"]}
        assert kept == {"home file system": 0.0, "bucket": 0.0, "key": 1.0}
    with step("down again finds nothing and is no failure"):
        assert life.corral("down", "dev", "--box", "--yes").code == 0


def delete_the_data(life: Life) -> None:
    """What was kept goes by its name."""
    life.corral("down", "dev", "--box", "--yes", "--delete-data", "dev")
    with step("a deployer deletes the data of a base"):
        assert set(life.inventory()) == {"kms/key", "s3/bucket"}  # a key that waits for its deletion, and CORPUS
