"""The packages that a boot adds to an image: by role, mounts and versions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.agent.host.packages import (
    Package,
    archives,
    file_commands,
    head_packages,
    key_commands,
    missing_packages,
    node_packages,
)
from corral.model.cluster import ArchivePlan, ClusterPlan, ImagePlan
from corral.plan.cluster import plan_image
from corral.spec.models.image import ImageSpec
from render.plans import cpu, dev, image, train

ARCHIVE = ArchivePlan(line="https://lustre.example/ubuntu noble main", key="https://lustre.example/key.asc")


def pinned() -> ImagePlan:
    versions = {"lustre-client-modules": "2.15.*", "mariadb-server": "1:10.11.*", "munge": "0.5.*", "mdadm": "4.3-*"}
    return replace(image(), packages=versions, lustre=ARCHIVE)


def plan(*, home: bool = True, nvme_count: int = 8, own: ImagePlan | None = None) -> ClusterPlan:
    """A cluster with a queue of machines with disks, and one without."""
    disks = replace(train(), nvme_count=nvme_count, nvme_mount="/nvme", image=own)
    return replace(dev(disks, cpu()), image=pinned(), home=home)


def of_node(cluster: ClusterPlan, number: int = 0) -> dict[str, str]:
    return {package.name: package.version for package in node_packages(cluster, cluster.queues[number])}


def test_a_head_has_the_database_and_the_daemons_of_the_head() -> None:
    assert {package.name: package.version for package in head_packages(plan())} == {
        "lustre-client-modules": "2.15.*",
        "mariadb-server": "1:10.11.*",
        "munge": "0.5.*",
        "nfs-common": "",
        "slurm-client": "23.11.*",
        "slurmctld": "23.11.*",
        "slurmdbd": "23.11.*",
    }


def test_a_node_with_disks_can_make_one_of_them() -> None:
    assert of_node(plan()) == {
        "lustre-client-modules": "2.15.*",
        "mdadm": "4.3-*",
        "munge": "0.5.*",
        "nfs-common": "",
        "slurm-client": "23.11.*",
        "slurmd": "23.11.*",
        "xfsprogs": "",
    }


def test_one_disk_needs_no_array() -> None:
    assert of_node(plan()).keys() - of_node(plan(nvme_count=1)).keys() == {"mdadm"}


def test_a_node_without_disks_has_nothing_for_them() -> None:
    assert of_node(plan()).keys() - of_node(plan(), 1).keys() == {"mdadm", "xfsprogs"}


def test_without_a_home_nfs_is_not_installed() -> None:
    assert of_node(plan()).keys() - of_node(plan(home=False)).keys() == {"nfs-common"}


def test_without_lustre_its_archive_is_not_used() -> None:
    assert of_node(plan()).keys() - of_node(replace(plan(), lustre=())).keys() == {"lustre-client-modules"}


def test_an_image_without_an_archive_of_lustre_is_taken_to_have_the_client() -> None:
    assert "lustre-client-modules" not in of_node(plan(own=image()))


@pytest.mark.parametrize(
    ("region", "url"),
    [
        (
            "eu-west-1",
            "https://s3.eu-west-1.amazonaws.com/amazon-ssm-eu-west-1/latest/debian_amd64/amazon-ssm-agent.deb",
        ),
        (
            "cn-north-1",
            "https://s3.cn-north-1.amazonaws.com.cn/amazon-ssm-cn-north-1/latest/debian_amd64/amazon-ssm-agent.deb",
        ),
    ],
)
def test_debian_gets_systems_managers_agent_from_the_regions_bucket(region: str, url: str) -> None:
    debian = plan_image(ImageSpec(profile="debian-13"), None)
    cluster = replace(plan(), image=debian, region=region)
    assert [package.url for package in head_packages(cluster) if package.name == "amazon-ssm-agent"] == [url]


def test_no_redirection_leads_a_download_away_from_https() -> None:
    agent = Package(name="agent", program="/usr/bin/agent", url="https://ssm.example/agent.deb", unit="agent")
    downloads = (*key_commands(head_packages(plan())), file_commands(agent)[0])
    https = ("--proto", "=https", "--proto-redir", "=https")
    assert [https == command[6:10] for command in downloads] == [True, True]


def test_each_node_has_the_packages_of_its_own_image() -> None:
    cluster = replace(plan(home=False), image=plan_image(ImageSpec(profile="debian-13"), None), lustre=())
    cpu_on_debian, own = of_node(cluster, 1), of_node(replace(plan(own=pinned()), home=False, lustre=()))
    assert (cpu_on_debian, own) == (
        {"amazon-ssm-agent": "", "munge": "0.5.*", "slurm-client": "24.11.*", "slurmd": "24.11.*"},
        {"mdadm": "4.3-*", "munge": "0.5.*", "slurm-client": "23.11.*", "slurmd": "23.11.*", "xfsprogs": ""},
    )


def test_the_slurm_is_that_which_slurm_conf_is_written_for() -> None:
    assert of_node(plan(own=replace(image(), slurm_version="24.11")))["slurmd"] == "24.11.*"


def test_programs_are_looked_for_where_the_image_has_its_slurm() -> None:
    cluster = plan(own=replace(image(), slurm_sbin="/opt/slurm/sbin"))
    programs = {package.name: package.program for package in node_packages(cluster, cluster.queues[0])}
    assert (programs["slurmd"], programs["slurm-client"]) == ("/opt/slurm/sbin/slurmd", "/opt/slurm/bin/scontrol")


def test_a_package_whose_program_exists_is_not_installed() -> None:
    missing = missing_packages(head_packages(plan()), lambda program: program != "/usr/sbin/slurmctld")
    assert [package.name for package in missing] == ["slurmctld"]


@pytest.mark.parametrize(
    ("cluster", "files"),
    [
        (
            plan(),
            ["/etc/apt/sources.list.d/corral-lustre-client-modules.list", "/etc/apt/preferences.d/60-corral-kernel"],
        ),
        (replace(plan(), lustre=()), []),
    ],
    ids=["lustre", "without"],
)
def test_the_kernel_is_pinned_if_the_lustre_client_fits_only_it(cluster: ClusterPlan, files: list[str]) -> None:
    assert [placement.path for placement in archives(head_packages(cluster))] == files
