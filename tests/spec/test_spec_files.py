"""Files and projects: what is read, and one sentence for each way in which a file can be missing or unreadable."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
from specs import BASE, CLUSTER, edited, project

from corral.model.markets import Market
from corral.spec.errors import SpecErrors
from corral.spec.files import environments, read_base, read_environment

TAGGED = CLUSTER.encode()
ROOT = Path(__file__).resolve().parents[2]


def said(directory: Path, env: str = "dev") -> str:
    """What reading this environment says."""
    with pytest.raises(SpecErrors) as caught:
        read_environment(directory, env)
    return str(caught.value)


def test_the_shipped_base_is_read() -> None:
    base = read_base(ROOT, "dev")
    assert (base.name, base.region, base.network.cidr, base.network.zones, base.budget and base.budget.notify) == (
        "dev",
        "us-east-1",
        IPv4Network("10.64.0.0/16"),
        ("use1-az1", "use1-az2"),
        ("ml-team@example.com",),
    )


def test_the_shipped_cluster_is_read() -> None:
    cluster = read_environment(ROOT, "dev").cluster
    queue = cluster.queues[0]
    assert (cluster.base, queue.instance_type, queue.nodes.max, queue.suspend_after, cluster.lifetime.ttl) == (
        "dev",
        "p4d.24xlarge",
        4,
        timedelta(minutes=10),
        timedelta(hours=12),
    )


def test_errors_of_the_shipped_cluster_would_name_its_file() -> None:
    assert read_environment(ROOT, "dev").cluster.file == "stacks/cluster/Pulumi.dev.yaml"


def test_every_field_is_read(tmp_path: Path) -> None:
    cluster = read_environment(project(tmp_path), "dev").cluster
    train, lustre = cluster.queues[0], cluster.storage.lustre[0]
    assert (
        cluster.head.address,
        cluster.head.zone,
        lustre.mount_point,
        lustre.data[0].imports,
        lustre.data[0].exports,
        [(pool.market, pool.zones, pool.max_price) for pool in train.capacity],
        train.efa,
        cluster.tags,
    ) == (
        IPv4Address("10.64.32.20"),
        "use1-az2",
        "/scratch",
        ("NEW", "CHANGED"),
        ("NEW",),
        [(Market.SPOT, ("use1-az1",), 8.5), (Market.ON_DEMAND, None, None)],
        "on",
        {"project": "llm"},
    )


def test_a_cluster_that_names_no_base_stands_on_the_one_of_its_name(tmp_path: Path) -> None:
    directory = project(tmp_path, cluster=edited(CLUSTER, [("    base: dev\n", "")]))
    assert read_environment(directory, "dev").cluster.base == "dev"


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert read_base(project(tmp_path, base=b"\xef\xbb\xbf" + BASE.encode()), "dev").name == "dev"


def test_environments_are_listed_by_name(tmp_path: Path) -> None:
    project(tmp_path, name="train")
    assert environments(project(tmp_path, name="dev")) == ("dev", "train")


def test_a_misspelt_environment_is_answered_with_the_nearest(tmp_path: Path) -> None:
    project(tmp_path, name="train")
    assert said(project(tmp_path), "dve") == (
        "stacks/cluster/Pulumi.dve.yaml: there is no environment 'dve' - did you mean 'dev'?"
    )


def test_an_unknown_environment_is_answered_with_all(tmp_path: Path) -> None:
    project(tmp_path, name="train")
    assert said(project(tmp_path), "production") == (
        "stacks/cluster/Pulumi.production.yaml: there is no environment 'production' - known are dev, train"
    )


def test_a_project_without_environments_says_so(tmp_path: Path) -> None:
    directory = project(tmp_path)
    (directory / "stacks/cluster/Pulumi.dev.yaml").unlink()
    assert said(directory) == "stacks/cluster/Pulumi.dev.yaml: there is no environment 'dev' - there is none yet"


def test_a_cluster_without_its_base_says_so(tmp_path: Path) -> None:
    directory = project(tmp_path)
    (directory / "stacks/base/Pulumi.dev.yaml").unlink()
    assert said(directory) == "stacks/cluster/Pulumi.dev.yaml: base: there is no base 'dev' - there is none yet"


def test_a_directory_that_is_no_project_is_named(tmp_path: Path) -> None:
    assert said(tmp_path) == (
        f"{tmp_path}: is no corral project: it has no stacks/cluster - go to one, or name it with --project DIR"
    )


def test_an_environment_cannot_climb_out_of_its_directory(tmp_path: Path) -> None:
    assert said(project(tmp_path), "../base/Pulumi.dev").endswith(
        "there is no environment '../base/Pulumi.dev' - known is dev"
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    directory = project(tmp_path)
    (directory / "stacks/base/Pulumi.dev.yaml").unlink()
    (directory / "stacks/base/Pulumi.dev.yaml").mkdir()
    assert said(directory) == "stacks/base/Pulumi.dev.yaml: cannot be read: Is a directory"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty - it needs config"),
        (b"# nothing but words\n", "is empty - it needs config"),
        (b"- a\n- b\n", "expected config, found a list"),
        (b"dev\n", "expected config, found 'dev'"),
        (b"config:\n", "config: is empty - it needs aws:region and a spec"),
        (b"config: us-east-1\n", "config: expected aws:region and a spec, found 'us-east-1'"),
        (b"config: {aws:region: us-east-1}\n", "config: corral-cluster:spec is missing - see the shipped dev"),
        (
            b"config: {aws:region: us-east-1, corral-cluster:spec: }\n",
            "corral-cluster:spec: is empty - it needs fields",
        ),
        (TAGGED.replace(b"llm", b"caf\xe9"), "line 46: byte 0xe9 is not UTF-8 - save the file as UTF-8"),
        (TAGGED.replace(b"llm", b"\x07"), "line 46, column 21: a character that YAML does not allow"),
        (
            TAGGED.replace(b"llm", b'"\\ud800"'),
            "line 46, column 21: half of a character (a surrogate) cannot stand alone",
        ),
        (b"\xff\xfec\0o\0", "line 1: byte 0xff is not UTF-8 - save the file as UTF-8"),
        (b"a: " + b"[" * 50 + b"]" * 50, "line 1, column 34: nested deeper than 30 levels"),
        (b"a: " + b"[" * 5000 + b"]" * 5000, "nested deeper than 30 levels"),
    ],
)
def test_a_file_that_is_no_stack_file_is_refused_in_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    assert said(project(tmp_path, cluster=content)) == f"stacks/cluster/Pulumi.dev.yaml: {message}"


def test_mistakes_of_the_base_are_told_while_the_clusters_file_is_unreadable(tmp_path: Path) -> None:
    base = edited(BASE, [("usd_per_month: 2000", "usd_per_month: 0")])
    assert said(project(tmp_path, base=base, cluster="")).split("\n") == [
        "stacks/base/Pulumi.dev.yaml: budget.usd_per_month: 0 is too small - use 1 or more",
        "stacks/cluster/Pulumi.dev.yaml: is empty - it needs config",
    ]


def test_a_stack_name_that_aws_would_refuse_is_refused(tmp_path: Path) -> None:
    directory = project(tmp_path, cluster=edited(CLUSTER, [("base: dev", "base: Dev_1")]), name="Dev_1")
    message = "'Dev_1' is not a name - use small letters, digits and hyphens, a letter first, no hyphen last"
    assert said(directory, "Dev_1").split("\n") == [
        f"stacks/base/Pulumi.Dev_1.yaml: the name in Pulumi.Dev_1.yaml cannot be used: {message}",
        f"stacks/cluster/Pulumi.Dev_1.yaml: the name in Pulumi.Dev_1.yaml cannot be used: {message}",
    ]


# --- two heads on one base: the address that follows from the name team-45 is that of dev, 10.64.32.23 in use1-az2

PLACED = "      zone: use1-az2\n      address: 10.64.32.20\n"
MET = (
    "stacks/cluster/Pulumi.dev.yaml: head.address: the head would have the address of the head of 'team-45', on the"
    " same base 'dev' - set head.address for the one that is not up yet, here or in stacks/cluster/Pulumi.team-45.yaml"
)


def beside(directory: Path, *, own: str, other: str, base: str = "dev") -> Path:
    """A project in which dev has the neighbour team-45, on this base; `own` and `other` are lines of their heads."""
    neighbour = edited(CLUSTER, [(PLACED, other), ("    base: dev\n", f"    base: {base}\n")])
    project(directory, cluster=edited(CLUSTER, [(PLACED, own)]))
    (directory / "stacks/cluster/Pulumi.team-45.yaml").write_text(neighbour)
    return directory


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("", ""),
        ("", "      zone: use1-az1\n"),  # the base's first zone, which the other takes by itself
        ("      address: 10.64.0.23\n", ""),
        ("", "      address: 10.64.0.23\n"),
        (PLACED, PLACED),
    ],
)
def test_a_head_with_the_address_of_a_neighbours_is_refused(tmp_path: Path, own: str, other: str) -> None:
    assert said(beside(tmp_path, own=own, other=other)) == MET


@pytest.mark.parametrize(
    ("own", "other", "base"),
    [
        ("      address: 10.64.0.24\n", "", "dev"),
        ("", "      address: 10.64.0.24\n", "dev"),
        ("      zone: use1-az2\n", "", "dev"),
        ("", "", "other"),
        ("", "      address: nowhere\n", "dev"),  # its own up says what is wrong with it
        ("", "      zone: [\n", "dev"),
    ],
)
def test_a_neighbour_with_another_address_is_no_mistake(tmp_path: Path, own: str, other: str, base: str) -> None:
    directory = beside(tmp_path, own=own, other=other, base=base)
    assert read_environment(directory, "dev").cluster.name == "dev"


def test_heads_in_adopted_subnets_meet_only_where_both_say_so(tmp_path: Path) -> None:
    adopted = """\
      adopt:
        vpc: vpc-0123456789abcdef0
        subnets: [{zone: use1-az1, id: subnet-0123456789abcdef0, cidr: 10.64.0.0/19}]
"""
    own = "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n"
    directory = beside(tmp_path, own="      address: 10.64.0.23\n", other="")
    (directory / "stacks/base/Pulumi.dev.yaml").write_text(edited(BASE, [(own, adopted)]))
    assert read_environment(directory, "dev").cluster.name == "dev"
