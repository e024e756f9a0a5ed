"""All checks of an environment in a box with one defect: they report it and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import defects
import pytest
from defects import BoxSession, Defect

import boxes
from corral.box.client import BoxStatus
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.preflight.checks import CHECKS, run
from corral.preflight.preflight_findings import PreflightRequest
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT
from forked_corral import run_corral

pytestmark = [pytest.mark.box, pytest.mark.long]
EFS = "elasticfilesystem.amazonaws.com"
P5_SPOT = "All P5 Spot Instance Requests"
STANDARD = "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
GP3 = "Storage for General Purpose SSD (gp3) volumes, in TiB"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    """An account that was prepared, and what `train` and `mixed` refer to in it."""
    with boxes.running_box(tmp_path_factory.mktemp("box")) as status:
        environment = {**boxes.process_environment(status), "CORRAL_BOX_DIR": str(status.dir)}
        for words in (["bootstrap", "--box", "--yes"], ["check", "train", "--box"], ["check", "mixed", "--box"]):
            run_corral(*words, cwd=PROJECT, env=environment).check_returncode()
        yield status


def problems(session: BoxSession, name: str) -> list[str]:
    """`verdict check about` of all findings that are not ok."""
    environment = read_environment(PROJECT, name)
    base = plan_base(environment.base)
    cluster = plan_cluster(environment.cluster, base, catalog=environment.catalog, image_profile="box-debian-12")
    findings = run(
        CHECKS, InRegion(session, base.region), PreflightRequest(base=base, cluster=cluster, now=datetime.now(UTC))
    )
    return [f"{one.verdict} {one.check} {one.about}" for one in findings if one.verdict != "ok"]


class InRegion:
    """The session's clients, in the environment's region by default."""

    def __init__(self, session: BoxSession, region: str) -> None:
        self._session, self._region = session, region

    def client(self, service: str, region: str | None = None) -> object:
        return self._session.client(service, region or self._region)


@pytest.mark.parametrize("environment", ["train", "mixed"])
def test_without_a_defect_every_check_passes(box: BoxStatus, environment: str) -> None:
    assert problems(BoxSession(box=box), environment) == []


def test_a_role_with_all_permissions_passes_every_check(box: BoxStatus) -> None:
    with defects.as_role()(box) as session:
        assert problems(session, "train") == []


OF_TRAIN: dict[str, tuple[Defect, str]] = {
    "vcpus-head": (defects.quota("L-1216C47A", 8), f"fail quotas {STANDARD}"),
    "vcpus-spot": (defects.quota("L-C4BD4855", 0), f"warn quotas {P5_SPOT}"),  # what is reserved starts
    "addresses": (defects.quota("L-0263D0A3", 0), "fail quotas EC2-VPC Elastic IPs"),
    "vpcs": (defects.quota("L-F678F1CE", 1), "fail quotas VPCs per Region"),
    "nat": (defects.quota("L-FE5A380F", 0), "fail quotas NAT gateways per Availability Zone"),
    "efs": (defects.quota("L-848C634D", 0), "fail quotas File systems per account"),
    "lustre-size": (defects.quota("L-8F1B9C74", 19199), "fail quotas Lustre Persistent_2 storage capacity"),
    "lustre-count": (defects.quota("L-FD6F2F22", 0), "fail quotas Lustre Persistent_2 file systems"),
    "ebs": (defects.quota("L-7A658B76", 1), f"warn quotas {GP3}"),
    "interfaces": (defects.quota("L-DF5E4CA3", 100), "warn quotas Network interfaces per Region"),
    "address-units": (defects.quota("L-BB24F6E5", 100), "warn quotas Network Address Usage"),
    "reservation-open": (
        defects.reservation({"InstanceMatchCriteria": "open"}, {"InstanceMatchCriteria": "targeted"}),
        f"warn reservations queue train, {defects.RESERVED}",
    ),
    "reservation-ends": (defects.ends_soon(), f"warn reservations queue train, {defects.RESERVED}"),
    "spot-scarce": (defects.fault("no-capacity", market="spot", type="p5.48xlarge"), "warn spot queue train"),
    "spot-refused": (
        defects.fault("refuse", call="DescribeSpotPriceHistory", code="UnauthorizedOperation"),
        "warn spot account",
    ),
    "zones-refused": (
        defects.fault("refuse", call="DescribeInstanceTypeOfferings", code="UnauthorizedOperation"),
        "warn types account",
    ),
    "regions-refused": (
        defects.fault("refuse", call="DescribeRegions", code="OptInRequired"),
        "fail identity account",
    ),
    "image-gone": (defects.image_gone, "fail images head and nodes"),
    "bucket-gone": (defects.without_bucket(defects.RESULTS), f"fail buckets s3://{defects.RESULTS}"),
    "bucket-elsewhere": (defects.bucket_elsewhere, f"fail buckets s3://{defects.CORPUS}"),
    "spot-role": (
        defects.without_role("AWSServiceRoleForEC2Spot", "spot.amazonaws.com"),
        "fail service-roles spot.amazonaws.com",
    ),
    "efs-role": (
        defects.without_role_or_permission("AWSServiceRoleForAmazonElasticFileSystem", EFS),
        f"fail service-roles {EFS}",
    ),
    "key-disabled": (defects.kept_key(state="Disabled"), "fail keys base train"),
    "key-going": (defects.kept_key(state="PendingDeletion"), "fail keys base train"),
    "key-shut": (defects.kept_key(state="shut"), "fail keys base train"),
    "bucket-key": (defects.bucket_behind_a_key, f"warn keys s3://{defects.RESULTS}"),
    "efa-rule": (defects.group_without_its_rule, "fail groups group of train"),
    "home-elsewhere": (defects.home_in_another_vpc, "fail file-systems home"),
    "lustre-larger": (defects.lustre_of_another_size, "fail file-systems Lustre data"),
    "may-not-create": (defects.as_role("fsx:CreateFileSystem"), "fail permissions deployer"),
    "organization-files": (defects.organization(Action="fsx:CreateFileSystem"), "fail permissions deployer"),
    "organization-types": (
        defects.organization(Action="ec2:RunInstances", Condition={"StringLike": {"ec2:InstanceType": "p5.*"}}),
        "fail permissions queue train",
    ),
    "organization-head": (defects.organization(Action="ssm:UpdateInstanceInformation"), "fail permissions head"),
    "boundary": (defects.within_a_boundary("fsx:CreateFileSystem"), "fail permissions deployer"),
    "may-not-simulate": (defects.as_role("iam:SimulatePrincipalPolicy"), "warn permissions deployer"),
}
OF_MIXED: dict[str, tuple[Defect, str]] = {
    "names-off": (defects.vpc_without_names(), f"fail network {defects.MIXED_VPC}"),
    "address-taken": (defects.address_taken, "fail network 10.20.32.10"),
}


@pytest.mark.parametrize("defect", OF_TRAIN)
def test_a_defect_changes_only_its_own_finding(box: BoxStatus, defect: str) -> None:
    make, row = OF_TRAIN[defect]
    with make(box) as session:
        found = problems(session, "train")
    assert found == [row]


@pytest.mark.parametrize("defect", OF_MIXED)
def test_a_defect_of_an_adopted_network_changes_only_its_own_finding(box: BoxStatus, defect: str) -> None:
    make, row = OF_MIXED[defect]
    with make(box) as session:
        found = problems(session, "mixed")
    assert found == [row]


def test_each_subnet_without_a_route_out_is_a_finding(box: BoxStatus) -> None:
    with defects.vpc_without_a_way_out(box) as session:
        found = problems(session, "mixed")
    assert set(found) == {f"fail network subnet-0123456789abcdef{number}" for number in range(3)}
