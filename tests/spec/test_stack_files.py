"""Files and projects: what is read, and one sentence for each way in which a file can be missing or unreadable."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
from specs import BASE, CLUSTER, as_pulumi, edited, project

from corral.model.enums import Market
from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.stack_files import environments, read_base, read_environment

TAGGED = CLUSTER.encode()
ROOT = Path(__file__).resolve().parents[2]


def error_of(directory: Path, env: str = "dev", config: Mapping[str, Any] | None = None) -> str:
    """The error of reading this environment from its file or from Pulumi's config."""
    with pytest.raises(SpecErrors) as caught:
        read_environment(directory, env, config)
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
    assert error_of(project(tmp_path), "dve") == (
        "stacks/cluster/Pulumi.dve.yaml: unknown environment 'dve' - did you mean 'dev'?"
    )


def test_an_unknown_environment_is_answered_with_all(tmp_path: Path) -> None:
    project(tmp_path, name="train")
    assert error_of(project(tmp_path), "production") == (
        "stacks/cluster/Pulumi.production.yaml: unknown environment 'production' - expected one of dev, train"
    )


def test_a_project_without_environments_is_reported(tmp_path: Path) -> None:
    directory = project(tmp_path)
    (directory / "stacks/cluster/Pulumi.dev.yaml").unlink()
    assert error_of(directory) == "stacks/cluster/Pulumi.dev.yaml: unknown environment 'dev' - none exists yet"


def test_a_cluster_without_its_base_is_reported(tmp_path: Path) -> None:
    directory = project(tmp_path)
    (directory / "stacks/base/Pulumi.dev.yaml").unlink()
    assert error_of(directory) == "stacks/cluster/Pulumi.dev.yaml: base: unknown base 'dev' - none exists yet"


def test_a_directory_that_is_no_project_is_named(tmp_path: Path) -> None:
    assert error_of(tmp_path) == (
        f"{tmp_path}: is not a corral project: it has no stacks/cluster - change to a project, or add --project DIR"
    )


def test_an_environment_cannot_climb_out_of_its_directory(tmp_path: Path) -> None:
    assert error_of(project(tmp_path), "../base/Pulumi.dev").endswith(
        "unknown environment '../base/Pulumi.dev' - expected dev"
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    directory = project(tmp_path)
    (directory / "stacks/base/Pulumi.dev.yaml").unlink()
    (directory / "stacks/base/Pulumi.dev.yaml").mkdir()
    assert error_of(directory) == "stacks/base/Pulumi.dev.yaml: cannot be read: Is a directory"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty - add config"),
        (b"# nothing but words\n", "is empty - add config"),
        (b"- a\n- b\n", "expected config, found a list"),
        (b"dev\n", "expected config, found 'dev'"),
        (b"config:\n", "config: is empty - add aws:region and a spec"),
        (b"config: us-east-1\n", "config: expected aws:region and a spec, found 'us-east-1'"),
        (
            b"config: {aws:region: us-east-1}\n",
            "config: corral-cluster:spec is missing - see the shipped environment dev",
        ),
        (
            b"config: {aws:region: us-east-1, corral-cluster:spec: }\n",
            "corral-cluster:spec: is empty - add fields",
        ),
        (TAGGED.replace(b"llm", b"caf\xe9"), "line 46: byte 0xe9 is not UTF-8 - save the file as UTF-8"),
        (TAGGED.replace(b"llm", b"\x07"), "line 46, column 21: a character that YAML does not allow"),
        (
            TAGGED.replace(b"llm", b'"\\ud800"'),
            "line 46, column 21: an unpaired surrogate character",
        ),
        (b"\xff\xfec\0o\0", "line 1: byte 0xff is not UTF-8 - save the file as UTF-8"),
        (b"a: " + b"[" * 50 + b"]" * 50, "line 1, column 34: nested deeper than 30 levels"),
        (b"a: " + b"[" * 5000 + b"]" * 5000, "nested deeper than 30 levels"),
    ],
)
def test_a_file_that_is_no_stack_file_is_refused_in_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    assert error_of(project(tmp_path, cluster=content)) == f"stacks/cluster/Pulumi.dev.yaml: {message}"


def test_mistakes_of_the_base_are_reported_while_the_clusters_file_is_unreadable(tmp_path: Path) -> None:
    base = edited(BASE, [("usd_per_month: 2000", "usd_per_month: 0")])
    assert error_of(project(tmp_path, base=base, cluster="")).split("\n") == [
        "stacks/base/Pulumi.dev.yaml: budget.usd_per_month: 0 is too small - use 1 or more",
        "stacks/cluster/Pulumi.dev.yaml: is empty - add config",
    ]


def test_a_stack_name_that_aws_would_refuse_is_refused(tmp_path: Path) -> None:
    directory = project(tmp_path, cluster=edited(CLUSTER, [("base: dev", "base: Dev_1")]), name="Dev_1")
    message = "'Dev_1' is not a valid name - use lowercase letters, digits and hyphens, a letter first, no hyphen last"
    assert error_of(directory, "Dev_1").split("\n") == [
        f"stacks/base/Pulumi.Dev_1.yaml: invalid name in Pulumi.Dev_1.yaml: {message}",
        f"stacks/cluster/Pulumi.Dev_1.yaml: invalid name in Pulumi.Dev_1.yaml: {message}",
    ]


# --- two heads on one base: the address that follows from the name team-45 is that of dev, 10.64.32.23 in use1-az2

PLACED = "      zone: use1-az2\n      address: 10.64.32.20\n"
MET = (
    "stacks/cluster/Pulumi.dev.yaml: head.address: conflicts with the head of 'team-45' on base 'dev' - set"
    " head.address of the one that is not deployed yet, here or in stacks/cluster/Pulumi.team-45.yaml"
)


def with_second_cluster(directory: Path, *, own: str, other: str, base: str = "dev") -> Path:
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
    assert error_of(with_second_cluster(tmp_path, own=own, other=other)) == MET


def test_a_head_with_the_address_of_a_neighbours_is_refused_by_a_program_of_pulumi(tmp_path: Path) -> None:
    directory = with_second_cluster(tmp_path, own="", other="")
    assert error_of(directory, config=as_pulumi(edited(CLUSTER, [(PLACED, "")]))) == MET


@pytest.mark.parametrize(
    ("own", "other", "base"),
    [
        ("      address: 10.64.0.24\n", "", "dev"),
        ("", "      address: 10.64.0.24\n", "dev"),
        ("      zone: use1-az2\n", "", "dev"),
        ("", "", "other"),
        ("", "      address: nowhere\n", "dev"),  # its own deployment reports the error
        ("", "      zone: [\n", "dev"),
    ],
)
def test_a_neighbour_with_another_address_is_no_mistake(tmp_path: Path, own: str, other: str, base: str) -> None:
    directory = with_second_cluster(tmp_path, own=own, other=other, base=base)
    assert read_environment(directory, "dev").cluster.name == "dev"


def test_heads_in_adopted_subnets_meet_only_where_both_say_so(tmp_path: Path) -> None:
    adopted = """\
      adopt:
        vpc: vpc-0123456789abcdef0
        subnets: [{zone: use1-az1, id: subnet-0123456789abcdef0, cidr: 10.64.0.0/19}]
"""
    own = "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n"
    directory = with_second_cluster(tmp_path, own="      address: 10.64.0.23\n", other="")
    (directory / "stacks/base/Pulumi.dev.yaml").write_text(edited(BASE, [(own, adopted)]))
    assert read_environment(directory, "dev").cluster.name == "dev"


# --- Pulumi's config instead of the file


def test_what_the_command_line_of_pulumi_gives_counts_more_than_the_file(tmp_path: Path) -> None:
    config = as_pulumi(edited(CLUSTER, [("g5.xlarge", "g5.xlrge")]))
    assert error_of(project(tmp_path), config=config) == (
        "stacks/cluster/Pulumi.dev.yaml: queues[1].instance_type: 'g5.xlrge' is not in the catalog"
        " - did you mean 'g5.xlarge'?"
    )


def test_a_stack_without_a_file_is_declared_by_its_config(tmp_path: Path) -> None:
    directory = project(tmp_path)
    (directory / "stacks/cluster/Pulumi.dev.yaml").unlink()
    assert read_environment(directory, "dev", as_pulumi(CLUSTER)).cluster.head.root_gib == 150


def test_a_spec_without_its_namespace_is_refused_though_pulumi_takes_it(tmp_path: Path) -> None:
    directory = project(tmp_path, cluster=edited(CLUSTER, [("corral-cluster:spec:", "spec:")]))
    assert error_of(directory, config=as_pulumi(CLUSTER)) == (
        "stacks/cluster/Pulumi.dev.yaml: config: corral-cluster:spec is missing - rename 'spec'"
    )


def test_a_stack_with_no_spec_at_all_is_refused(tmp_path: Path) -> None:
    directory = project(tmp_path)
    (directory / "stacks/cluster/Pulumi.dev.yaml").unlink()
    assert error_of(directory, config={"aws:region": "us-east-1"}) == (
        "stacks/cluster/Pulumi.dev.yaml: config: corral-cluster:spec is missing - see the shipped environment dev"
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dev", "expected fields, found 'dev'"),
        (["dev"], "expected fields, found a list"),
        (None, "is empty - add fields"),
    ],
)
def test_a_spec_of_the_command_line_that_is_no_object_is_refused(spec: Any, message: str, tmp_path: Path) -> None:
    config = {"aws:region": "us-east-1", "corral-cluster:spec": spec}
    assert (
        error_of(project(tmp_path), config=config) == f"stacks/cluster/Pulumi.dev.yaml: corral-cluster:spec: {message}"
    )


def test_a_mistake_in_yaml_that_pulumi_lets_pass_is_one_all_the_same(tmp_path: Path) -> None:
    directory = project(tmp_path, cluster=edited(CLUSTER, [("project: llm", "project: 012")]))
    assert error_of(directory, config=as_pulumi(CLUSTER)) == (
        "stacks/cluster/Pulumi.dev.yaml: line 46, column 21: 012 is ambiguous in YAML - quote it"
    )


def test_a_spec_that_pulumi_has_decrypted_is_refused_as_its_file_is(tmp_path: Path) -> None:
    directory = project(tmp_path, cluster=edited(CLUSTER, [("project: llm", "project: {secure: v1:abc}")]))
    assert error_of(directory, config=as_pulumi(CLUSTER)) == (
        "stacks/cluster/Pulumi.dev.yaml: tags.project: expected text, found fields - quote it"
    )
