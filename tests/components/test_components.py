"""The resources that the components register, by Pulumi's own mocks.

Tests with the real engine show that it accepts them, and in which order it creates and replaces them.
"""

import ast
import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pytest

from corral.box.provider.property_validation import Autonaming, check_inputs
from corral.box.provider.tables import RESOURCES
from corral.components.bucket import Artefacts, ArtefactsArgs
from corral.components.budget import Guards, GuardsArgs
from corral.components.dns_zone import Names, NamesArgs
from corral.components.files import Archive, Files, FilesArgs
from corral.components.head import Head, HeadArgs
from corral.components.home import Home, HomeArgs
from corral.components.identity import Identity, IdentityArgs
from corral.components.key import EncryptionKey, EncryptionKeyArgs, SigningKey
from corral.components.lustre import Lustre, LustreArgs, LustreGroup, LustreGroupArgs
from corral.components.pins_and_alarms import Pins, PinsArgs, Watch, WatchArgs
from corral.components.queues import Queues, QueuesArgs
from corral.components.security import Security, SecurityArgs
from corral.components.vpc import Network, NetworkArgs
from corral.model.base import BudgetPlan
from corral.model.cluster import ClusterPlan
from corral.model.lustre import DataLinkPlan, LustrePlan
from corral.plan.cluster import plan_cluster
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT, dev_base, dev_cluster
from recorded import Recorder, record

SUBNETS: Mapping[str, str] = {"use1-az1": "subnet-1", "use1-az2": "subnet-2"}
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


@pytest.fixture(scope="module")
def network() -> Recorder:
    return record(lambda: Network("network", NetworkArgs(plan=dev_base(), public=dev_base().public)))


def queues_args(plan: ClusterPlan) -> QueuesArgs:
    return QueuesArgs(
        plan=plan,
        image_ids={"image": "ami-1"},
        profile_arn="arn:profile",
        group="sg-1",
        key_arn="arn:key",
        subnets=SUBNETS,
        user_data="#cloud-config\n",
    )


@pytest.fixture(scope="module")
def queues() -> Recorder:
    return record(lambda: Queues("queues", queues_args(dev_cluster())))


def template(queues: Recorder, offer: str = "train-spot-use1-az1") -> Mapping[str, Any]:
    """The launch template of this offer."""
    return queues.of_type(TEMPLATE)[f"queues-{offer}"]


def test_subnets_are_placed_by_zone_id(network: Recorder) -> None:
    subnets = network.of_type("aws:ec2/subnet:Subnet")
    assert {name: (s["availabilityZoneId"], s["cidrBlock"]) for name, s in subnets.items()} == {
        "network-private-use1-az1": ("use1-az1", "10.64.0.0/19"),
        "network-private-use1-az2": ("use1-az2", "10.64.32.0/19"),
        "network-public": ("use1-az1", "10.64.224.0/26"),
    }


def test_no_subnet_gives_public_addresses(network: Recorder) -> None:
    assert [s for s in network.of_type("aws:ec2/subnet:Subnet").values() if s.get("mapPublicIpOnLaunch")] == []


def test_the_vpc_resolves_names(network: Recorder) -> None:
    vpc = network.of_type("aws:ec2/vpc:Vpc")["network-vpc"]
    assert (vpc["enableDnsHostnames"], vpc["enableDnsSupport"]) == (True, True)


def test_s3_is_reached_through_a_gateway_endpoint(network: Recorder) -> None:
    endpoint = network.of_type("aws:ec2/vpcEndpoint:VpcEndpoint")["network-s3"]
    assert (endpoint["vpcEndpointType"], endpoint["serviceName"], endpoint["routeTableIds"]) == (
        "Gateway",
        "com.amazonaws.us-east-1.s3",
        ["network-private-routes-id"],
    )


def test_the_heads_range_is_kept_from_automatic_assignment(network: Recorder) -> None:
    kept = network.of_type("aws:ec2/subnetCidrReservation:SubnetCidrReservation")["network-heads-use1-az1"]
    assert (kept["cidrBlock"], kept["reservationType"]) == ("10.64.0.0/26", "explicit")


def test_the_bucket_is_closed_versioned_and_encrypted_with_the_bases_key() -> None:
    args = ArtefactsArgs(
        plan=dev_base(), name="corral-dev", account="123456789012", key_arn="arn:key", retained_id=None
    )
    recorder = record(lambda: Artefacts("artefacts", args))
    settings = {name: inputs for name, (_, inputs) in recorder.resources.items()}
    rule = settings["artefacts-encryption"]["rules"][0]["applyServerSideEncryptionByDefault"]
    assert (
        settings["artefacts-private"]["restrictPublicBuckets"],
        settings["artefacts-versions"]["versioningConfiguration"]["status"],
        rule,
    ) == (True, "Enabled", {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": "arn:key"})


def test_the_bucket_has_the_policy_that_keeps_machines_from_writing_code() -> None:
    args = ArtefactsArgs(
        plan=dev_base(), name="corral-dev", account="123456789012", key_arn="arn:key", retained_id=None
    )
    (policy,) = record(lambda: Artefacts("artefacts", args)).of_type("aws:s3/bucketPolicy:BucketPolicy").values()
    statements = json.loads(str(policy["policy"]))["Statement"]
    assert [one["Sid"] for one in statements if one["Effect"] == "Deny"][1:] == ["MachinesWriteNoCode"]


def test_home_has_a_mount_target_in_every_zone() -> None:
    plan = dev_base()
    assert plan.home is not None
    args = HomeArgs(plan=plan, home=plan.home, vpc_id="vpc-1", subnets=SUBNETS, key_arn="arn:key", retained_id=None)
    targets = record(lambda: Home("home", args)).of_type("aws:efs/mountTarget:MountTarget")
    assert {name: target["subnetId"] for name, target in targets.items()} == {
        "home-mount-use1-az1": "subnet-1",
        "home-mount-use1-az2": "subnet-2",
    }


def test_the_budget_counts_what_carries_the_bases_tag() -> None:
    plan = BudgetPlan(usd_per_month=100, notify=("ann@example.com",))
    guards = record(lambda: Guards("guards", GuardsArgs(base="dev", budget=plan)))
    budget = guards.of_type("aws:budgets/budget:Budget")
    filters = budget["guards-budget"]["costFilters"]
    assert filters == [{"name": "TagKeyValue", "values": ["user:corral:base$dev"]}]


def test_the_machines_group_is_open_to_itself_both_ways() -> None:
    args = SecurityArgs(plan=dev_cluster(), vpc_id="vpc-1", home_group="sg-home", lustre_group=None)
    recorder = record(lambda: Security("security", args))
    rules = {name: i for name, (typ, i) in recorder.resources.items() if "GroupIngress" in typ or "GroupEgress" in typ}
    itself = [name for name, i in rules.items() if i.get("referencedSecurityGroupId") == i["securityGroupId"]]
    assert (sorted(itself), [rules[n]["ipProtocol"] for n in itself]) == (
        ["security-from-itself", "security-to-itself"],
        ["-1", "-1"],
    )


def test_nothing_is_reachable_from_outside() -> None:
    args = SecurityArgs(plan=dev_cluster(), vpc_id="vpc-1", home_group="sg-home", lustre_group=None)
    ingress = record(lambda: Security("security", args)).of_type(
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    )
    assert [name for name, rule in ingress.items() if "cidrIpv4" in rule] == []


def test_the_template_of_p4d_holds_five_interfaces(queues: Recorder) -> None:
    table = [
        (n["networkCardIndex"], n["deviceIndex"], n["interfaceType"]) for n in template(queues)["networkInterfaces"]
    ]
    assert table == [
        (0, 0, "interface"),
        (0, 1, "efa-only"),
        (1, 0, "efa-only"),
        (2, 0, "efa-only"),
        (3, 0, "efa-only"),
    ]


def test_the_template_of_p4d_with_ena_holds_four_interfaces_with_an_address() -> None:
    environment = read_environment(PROJECT, "dev")
    queue = environment.cluster.queues[0].model_copy(update={"efa": "with-ena"})
    plan = plan_cluster(environment.cluster.model_copy(update={"queues": (queue,)}), dev_base())
    made = record(lambda: Queues("queues", queues_args(plan)))
    table = [(n["networkCardIndex"], n["deviceIndex"], n["interfaceType"]) for n in template(made)["networkInterfaces"]]
    assert table == [(0, 0, "efa"), (1, 1, "efa"), (2, 1, "efa"), (3, 1, "efa")]


def test_the_interfaces_of_a_template_are_in_its_own_zone(queues: Recorder) -> None:
    zones = {name: {n["subnetId"] for n in t["networkInterfaces"]} for name, t in queues.of_type(TEMPLATE).items()}
    assert zones == {
        "queues-train-spot-use1-az1": {"subnet-1"},
        "queues-train-spot-use1-az2": {"subnet-2"},
        "queues-train-on-demand-use1-az1": {"subnet-1"},
        "queues-train-on-demand-use1-az2": {"subnet-2"},
    }


def test_a_spot_template_makes_one_time_requests_and_an_on_demand_one_names_no_market(queues: Recorder) -> None:
    markets = [
        template(queues, f"train-{market}-use1-az1").get("instanceMarketOptions") for market in ("spot", "on-demand")
    ]
    assert markets == [
        {
            "marketType": "spot",
            "spotOptions": {"spotInstanceType": "one-time", "instanceInterruptionBehavior": "terminate"},
        },
        None,
    ]


def test_a_machine_that_powers_off_is_gone(queues: Recorder) -> None:
    assert template(queues)["instanceInitiatedShutdownBehavior"] == "terminate"


def test_only_version_two_of_the_metadata_service_answers_by_ipv4_and_tags_are_in_it(queues: Recorder) -> None:
    assert template(queues)["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
        "httpProtocolIpv6": "disabled",
        "instanceMetadataTags": "enabled",
    }


def test_the_root_volume_is_encrypted_and_goes_with_the_machine(queues: Recorder) -> None:
    ebs = template(queues)["blockDeviceMappings"][0]["ebs"]
    assert (ebs["encrypted"], ebs["kmsKeyId"], ebs["deleteOnTermination"]) == ("true", "arn:key", "true")


def test_what_a_template_launches_carries_the_clusters_tags(queues: Recorder) -> None:
    tags = {spec["resourceType"]: spec["tags"]["corral:cluster"] for spec in template(queues)["tagSpecifications"]}
    assert tags == {"instance": "dev", "volume": "dev", "network-interface": "dev", "spot-instances-request": "dev"}


def test_user_data_is_encoded_once(queues: Recorder) -> None:
    assert base64.b64decode(template(queues)["userData"]) == b"#cloud-config\n"


@pytest.fixture(scope="module")
def head() -> Recorder:
    args = HeadArgs(
        plan=dev_cluster(),
        image_id="ami-1",
        profile_name="head",
        group="sg-1",
        key_arn="arn:key",
        subnet_id="subnet-1",
        zone_name="us-east-1a",
        user_data="#cloud-config\n",
        needs=[],
    )
    return record(lambda: Head("head", args))


def test_the_head_keeps_its_address_on_an_interface_of_its_own(head: Recorder) -> None:
    interface = head.of_type("aws:ec2/networkInterface:NetworkInterface")["head-interface"]
    instance = head.of_type("aws:ec2/instance:Instance")["head-instance"]
    assert (interface["privateIps"], instance["primaryNetworkInterface"]) == (
        ["10.64.0.23"],
        {"networkInterfaceId": "head-interface-id"},
    )


def test_the_heads_volume_is_detached_from_a_stopped_machine_for_a_mounted_one_does_not_let_go(head: Recorder) -> None:
    attachment = head.of_type("aws:ec2/volumeAttachment:VolumeAttachment")["head-state-attachment"]
    assert attachment == {
        "deviceName": "/dev/sdf",
        "volumeId": "head-state-id",
        "instanceId": "head-instance-id",
        "stopInstanceBeforeDetaching": True,
    }


def test_a_head_that_is_powered_off_is_terminated(head: Recorder) -> None:
    instance = head.of_type("aws:ec2/instance:Instance")["head-instance"]
    assert instance["instanceInitiatedShutdownBehavior"] == "terminate"


def test_no_policy_of_aws_is_attached_to_a_role() -> None:
    args = IdentityArgs(plan=dev_cluster(), account="123456789012")
    types = {typ for typ, _ in record(lambda: Identity("identity", args)).resources.values()}
    assert types == {"aws:iam/role:Role", "aws:iam/instanceProfile:InstanceProfile", "corral:aws:Identity"}


def test_every_role_is_at_corrals_path_below_the_regions_boundary() -> None:
    args = IdentityArgs(plan=dev_cluster(), account="123456789012")
    roles = record(lambda: Identity("identity", args)).of_type("aws:iam/role:Role")
    boundary = "arn:aws:iam::123456789012:policy/corral/guards-boundary-us-east-1"
    assert {name: (role["path"], role["permissionsBoundary"]) for name, role in roles.items()} == {
        "identity-head": ("/corral/", boundary),
        "identity-compute": ("/corral/", boundary),
        "identity-job": ("/corral/", boundary),
    }


def test_only_the_clusters_machines_can_take_on_the_job_role() -> None:
    args = IdentityArgs(plan=dev_cluster(), account="123456789012")
    job = record(lambda: Identity("identity", args)).of_type("aws:iam/role:Role")["identity-job"]
    trusted = json.loads(job["assumeRolePolicy"])["Statement"][0]["Principal"]
    assert trusted == {"AWS": ["arn:identity-head", "arn:identity-compute"]}


def lustre_args(systems: Sequence[LustrePlan], group_rules: Sequence[pulumi.Resource] = ()) -> LustreArgs:
    return LustreArgs(
        owner="dev", systems=systems, subnets=SUBNETS, group="sg-1", group_rules=group_rules, key_arn="arn:key"
    )


def test_a_clusters_lustre_is_created_after_the_rules_that_open_its_group_to_itself() -> None:
    args = SecurityArgs(plan=dev_cluster(), vpc_id="vpc-1", home_group=None, lustre_group=None)

    def build() -> None:
        Lustre("lustre", lustre_args(dev_cluster().own_lustre, Security("security", args).rules_to_itself))

    assert record(build).dependencies["lustre-scratch"] == {"security-from-itself", "security-to-itself"}


@pytest.mark.parametrize(
    ("efa", "rules"),
    [
        (True, {"access-in-all", "access-out-all"}),
        (False, {"access-in-988", "access-out-988", "access-in-1018", "access-out-1018"}),
    ],
)
def test_a_bases_lustre_is_created_after_the_rules_of_its_group(efa: bool, rules: set[str]) -> None:
    args = LustreGroupArgs(owner="dev", vpc_id="vpc-1", efa=efa)

    def build() -> None:
        Lustre("lustre", lustre_args(SYSTEMS, LustreGroup("access", args).rules))

    assert record(build).dependencies["lustre-fast"] == rules


def test_lustre_is_linked_to_s3_without_an_empty_export_policy() -> None:
    args = lustre_args(dev_cluster().own_lustre)
    links = record(lambda: Lustre("lustre", args)).of_type(
        "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
    )
    assert links["lustre-scratch-data"]["s3"] == {"autoImportPolicy": {"events": ["NEW", "CHANGED", "DELETED"]}}


LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"


def test_a_link_may_import_for_a_day_and_a_file_system_may_take_two_hours() -> None:
    args = lustre_args(dev_cluster().own_lustre)
    timeouts = record(lambda: Lustre("lustre", args)).timeouts
    assert timeouts == {"lustre-scratch": ("2h", "1h"), "lustre-scratch-data": ("24h", "1h")}


LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
# Between them they make the component pass everything that it can pass; the test below holds them to that.
SYSTEMS = (
    LustrePlan(
        name="fast",
        zone_id="use1-az1",
        size_gib=4800,
        deployment="PERSISTENT_2",
        mount="/fast",
        throughput_mbps_per_tib=1000,
        efa=True,
        metadata_iops=12000,
        backup_days=7,
        backup_at="04:00",
        root_squash="65534:65534",
        trusted_nids=("10.64.0.10@tcp",),
        data=(DataLinkPlan(path="/data", s3="s3://corpus", imports=("NEW",), exports=("CHANGED",)),),
    ),
    LustrePlan(
        name="cold",
        zone_id="use1-az1",
        size_gib=6000,
        deployment="PERSISTENT_1",
        mount="/cold",
        disks="HDD",
        throughput_mbps_per_tib=12,
        drive_cache=True,
        data=(),
    ),
)


@pytest.fixture(scope="module")
def lustre() -> Recorder:
    return record(lambda: Lustre("lustre", lustre_args(SYSTEMS)))


@pytest.mark.parametrize(("made_by", "token"), [("LustreFileSystem", LUSTRE), ("DataRepositoryAssociation", LINK)])
def test_every_argument_of_lustre_is_passed_here(lustre: Recorder, made_by: str, token: str) -> None:
    tree = ast.parse((PROJECT / "modules/corral/components/lustre.py").read_text())
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    written = {word.arg for one in calls if one.func.attr == made_by for word in one.keywords if word.arg} - {"opts"}
    passed = {name for inputs in lustre.of_type(token).values() for name in inputs}
    assert {pulumi_name(name) for name in written} == passed


@pytest.mark.parametrize("token", [LUSTRE, LINK])
def test_the_box_knows_every_argument_of_lustre(lustre: Recorder, token: str) -> None:
    naming = Autonaming(name="fast", seed=b"0" * 8)
    faults = [check_inputs(RESOURCES[token], inputs, {}, naming, {})[1] for inputs in lustre.of_type(token).values()]
    reasons = [fault.reason for found in faults for fault in found]
    assert [reason for reason in reasons if "does not support" in reason] == []  # the mocks make 4800.0 of 4800


def test_whom_root_is_goes_to_lustre_with_those_who_stay_root(lustre: Recorder) -> None:
    assert lustre.of_type(LUSTRE)["lustre-fast"]["rootSquashConfiguration"] == {
        "rootSquash": "65534:65534",
        "noSquashNids": ["10.64.0.10@tcp"],
    }


def pulumi_name(name: str) -> str:
    """An argument's name as the engine has it: perUnitStorageThroughput for per_unit_storage_throughput."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def test_the_head_is_in_the_private_zone_from_the_start() -> None:
    recorder = record(lambda: Names("names", NamesArgs(plan=dev_cluster(), vpc_id="vpc-1")))
    head = recorder.of_type("aws:route53/record:Record")["names-head"]
    assert (head["name"], head["records"]) == ("dev-head.dev.corral.internal", ["10.64.0.23"])


def test_pins_have_names_that_people_can_type() -> None:
    args = PinsArgs(plan=dev_cluster(), image_ids={"image": "ami-1"}, ends_at="2026-01-01T00:00:00Z")
    pins = record(lambda: Pins("pins", args)).of_type("aws:ssm/parameter:Parameter")
    assert {pin["name"]: pin["insecureValue"] for pin in pins.values()} == {
        "/corral/dev/image": "ami-1",
        "/corral/dev/ends-at": "2026-01-01T00:00:00Z",
    }


def test_the_alias_that_proves_the_key_outlives_the_base_and_is_found_again() -> None:
    args = EncryptionKeyArgs(plan=dev_base(), account="123456789012", retained_id="key-1")
    seen = record(lambda: EncryptionKey("key", args))
    assert (seen.retained, seen.imports) == (
        {"key-key", "key-alias"},
        {"key-key": "key-1", "key-alias": "alias/corral-dev"},
    )


def test_manifests_are_signed_by_a_key_of_their_own_that_goes_with_the_base() -> None:
    seen = record(lambda: SigningKey("signing", dev_base(), "123456789012"))
    key = seen.of_type("aws:kms/key:Key")["signing-key"]
    alias = seen.of_type("aws:kms/alias:Alias")["signing-alias"]
    assert (key["customerMasterKeySpec"], key["keyUsage"], alias["name"], seen.retained) == (
        "RSA_2048",
        "SIGN_VERIFY",
        "alias/corral-signing/dev",
        set(),
    )


def watch() -> Recorder:
    return record(lambda: Watch("watch", WatchArgs(plan=dev_cluster(), account="123456789012", key_arn="arn:key")))


def test_the_topic_has_a_policy_of_its_own_and_not_awss() -> None:
    topic = watch().of_type("aws:sns/topic:Topic")["watch-topic"]
    (statement,) = json.loads(str(topic["policy"]))["Statement"]
    arn = "arn:aws:sns:us-east-1:123456789012:watch-topic-dev"
    assert (topic["name"], statement["Resource"]) == ("watch-topic-dev", [arn])


def test_the_munge_secret_is_created_without_a_value() -> None:
    recorder = watch()
    assert [typ for typ, _ in recorder.resources.values() if "SecretVersion" in typ] == []


def files() -> Mapping[str, Mapping[str, object]]:
    args = FilesArgs(
        plan=dev_cluster(),
        bucket="b",
        texts={"slurm/slurm.conf": "x"},
        agent=Archive(name="agent", content=b"a"),
        library=Archive(name="library", content=b"l"),
        sign=lambda bucket, manifest: f"signed for {bucket}: {manifest.bundle}",
    )
    return record(lambda: Files("files", args)).of_type("aws:s3/bucketObjectv2:BucketObjectv2")


def test_an_archives_path_names_its_content() -> None:
    keys = [files()[f"files-{name}"]["key"] for name in ("agent", "library")]
    assert keys == ["clusters/dev/agent/ca978112ca1bbdca.tar.gz", "clusters/dev/library/acac86c0e609ca90.tar.gz"]


def test_a_state_does_not_hold_the_librarys_bytes() -> None:
    assert not {"content", "contentBase64"} & set(files()["files-library"])


def test_objects_carry_no_default_tags_since_s3_takes_ten() -> None:
    assert files()["files-slurm/slurm.conf"] == {
        "bucket": "b",
        "key": "clusters/dev/slurm/slurm.conf",
        "content": "x",
        "overrideProvider": {"defaultTags": {"tags": {}}},
    }


def test_a_component_refuses_an_argument_that_the_sdk_does_not_know() -> None:
    """The recorder runs the SDK's own classes: a misspelt argument fails here, not in an account."""
    with pytest.raises(TypeError, match="securty_groups"):
        record(lambda: pulumi_network_interface(securty_groups=[]))


def pulumi_network_interface(**arguments: Any) -> pulumi.Resource:
    """A network interface with these arguments."""
    import pulumi_aws as aws

    return aws.ec2.NetworkInterface("x", subnet_id="subnet-1", **arguments)
