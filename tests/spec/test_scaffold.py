"""Environments made from the shipped ones: all of them in every region, two word for word, and every wrong option."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from corral.catalog.aws.instance_types import instance_types
from corral.catalog.aws.regions import regions
from corral.catalog.project_catalog import shipped_catalog
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.warnings import PlanWarning, plan_warnings
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.yaml.scaffold import (
    EnvironmentTemplate,
    Scaffold,
    ScaffoldOptions,
    option_errors,
    read_template,
    scaffold,
)
from corral.spec.yaml.stack_files import read_environment

STACKS = Path(__file__).parents[2] / "stacks"
CATALOG = shipped_catalog()
LIKES = ("dev", "mixed", "train")
OWN = {
    "dev": {"bucket": "s3://mine", "notify": "a@b.example"},
    "mixed": {},
    "train": {"bucket": "s3://mine", "notify": "a@b.example"},
}


@cache
def shipped(name: str) -> EnvironmentTemplate:
    base, cluster = ((STACKS / kind / f"Pulumi.{name}.yaml").read_text() for kind in ("base", "cluster"))
    return read_template(name, base, cluster, CATALOG)


def made(like: str, **wanted: object) -> Scaffold:
    return scaffold(shipped(like), ScaffoldOptions(**wanted), CATALOG)  # type: ignore[arg-type]


def planned(directory: Path, one: Scaffold) -> tuple[PlanWarning, ...]:
    """The warnings of `corral plan`. Raises SpecErrors if it refuses."""
    for kind, text in (("base", one.base_text), ("cluster", one.cluster_text)):
        file = directory / "stacks" / kind / f"Pulumi.{one.name}.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    spec = read_environment(directory, one.name)
    base = plan_base(spec.base)
    cluster = plan_cluster(spec.cluster, base, catalog=spec.catalog)
    prices = catalog_prices(cluster.region, spec.catalog)
    forecast_cost(base, cluster, prices)
    return plan_warnings(base, cluster, prices)


def about(sentences: list[str]) -> set[str]:
    """The queues of which these sentences say that something is not offered."""
    return {one.partition(":")[0] for one in sentences if "not offered" in one and one.startswith("queue")}


def zones(one: Scaffold) -> list[str]:
    found = re.findall(r"zones: \[(.*?)\]|- \{zone: (.*?),", one.base_text)
    return [listed or single for listed, single in found]


@pytest.mark.long
@pytest.mark.parametrize("region", regions())
@pytest.mark.parametrize("like", LIKES)
def test_every_shipped_environment_can_be_planned_in_every_region(like: str, region: str, tmp_path: Path) -> None:
    one = made(like, name="mine", region=region)
    warned = [f"{warning.about}: {warning.text}" for warning in planned(tmp_path, one)]
    assert about(warned) == about(list(one.remarks))


@pytest.mark.long
@pytest.mark.parametrize("region", regions())
@pytest.mark.parametrize("like", LIKES)
def test_no_zone_of_the_shipped_region_stays(like: str, region: str) -> None:
    one = made(like, region=region)
    named = set(re.findall(r"\b[a-z]+\d-az\d\b", one.base_text + one.cluster_text))
    assert named <= set(regions()[region].zones)


def taken(like: str) -> list[str]:
    """The possible types of the first queue of this environment."""
    return [
        name
        for name in instance_types()
        if not option_errors(ScaffoldOptions(instance_type=name), shipped(like), CATALOG)
    ]


@pytest.mark.long
@pytest.mark.parametrize(("like", "name"), [(like, name) for like in LIKES for name in taken(like)])
def test_every_type_that_is_taken_can_be_planned(like: str, name: str, tmp_path: Path) -> None:
    planned(tmp_path, made(like, instance_type=name))


def test_types_that_are_not_sold_as_train_buys_them_are_not_taken() -> None:
    assert " ".join(taken("train")) == (
        "p4d.24xlarge p4de.24xlarge p5.48xlarge p5.4xlarge p5e.48xlarge p5en.48xlarge p6-b200.48xlarge"
        " p6-b300.48xlarge trn1.32xlarge trn2.3xlarge trn2.48xlarge"
    )


@pytest.mark.parametrize("like", LIKES)
def test_without_options_the_texts_are_the_shipped_ones(like: str) -> None:
    one = made(like)
    assert (one.base_text, one.cluster_text) == (shipped(like).base_text, shipped(like).cluster_text)


@pytest.mark.parametrize(
    ("like", "region", "expected"),
    [
        ("dev", "us-west-2", ["usw2-az1, usw2-az2"]),
        ("dev", "eu-north-1", ["eun1-az3"]),
        ("dev", "ap-northeast-1", ["apne1-az1, apne1-az4"]),
        ("dev", "eu-west-3", ["euw3-az1, euw3-az2"]),  # offered in none of its zones
        ("train", "us-west-1", ["usw1-az1, usw1-az3"]),
        ("train", "ap-northeast-2", ["apne2-az1"]),
        ("train", "us-east-2", ["use2-az1, use2-az2, use2-az3"]),
        ("mixed", "us-east-1", ["use1-az2", "use1-az6", "use1-az4"]),
        ("mixed", "ap-northeast-1", ["apne1-az4", "apne1-az1"]),  # H200 in one zone, so two subnets became one
    ],
)
def test_zones_are_those_that_offer_the_types(like: str, region: str, expected: list[str]) -> None:
    assert zones(made(like, region=region)) == expected


def comments(*texts: str) -> list[str]:
    return [found for text in texts for found in re.findall(r"(?:^| )# (.*)", text, flags=re.M)]


@pytest.mark.parametrize("like", LIKES)
def test_no_shipped_comment_states_what_a_value_does(like: str) -> None:
    one = shipped(like)
    machine = instance_types()[one.queue.instance_type]
    assert machine.accelerator is not None
    changed = (one.base.region, *one.base.network.zone_names, machine.name, machine.accelerator.product)
    text = " ".join(comments(one.base_text, one.cluster_text))
    assert [value for value in (*changed, f"`{like}`", f"Pulumi.{like}.yaml") if value in text] == []


@pytest.mark.parametrize("like", LIKES)
def test_every_comment_is_kept(like: str) -> None:
    one = made(like, name="mine", region="us-east-2", instance_type="p5.48xlarge", max_nodes=3, **OWN[like])
    assert comments(one.base_text, one.cluster_text) == comments(shipped(like).base_text, shipped(like).cluster_text)


def test_trainium_gets_an_image_with_its_driver() -> None:
    lines = "        instance_type: trn1.32xlarge\n        image: {profile: ubuntu-24.04-neuron-dlami}\n"
    assert lines in made("dev", instance_type="trn1.32xlarge").cluster_text


@pytest.mark.parametrize("name", ["on", "null", "true", "yes", "mine"])
def test_any_good_name_is_read_as_text(name: str, tmp_path: Path) -> None:
    planned(tmp_path, made("dev", name=name))
    assert read_environment(tmp_path, name).cluster.base == name


@pytest.mark.parametrize("bucket", ["s3://mine", "s3://mine/a:", "s3://mine/it's#1", 's3://mine/"x"', "s3://mine/ä,]"])
def test_any_good_bucket_is_read_as_it_was_given(bucket: str, tmp_path: Path) -> None:
    planned(tmp_path, made("dev", bucket=bucket))
    assert read_environment(tmp_path, "dev").cluster.storage.lustre[0].data[0].s3 == bucket


def test_a_bucket_replaces_the_templates_in_a_base_too(tmp_path: Path) -> None:
    planned(tmp_path, made("train", bucket="s3://mine"))
    assert read_environment(tmp_path, "train").base.storage.lustre[0].data[0].s3 == "s3://mine"


def test_address_is_read_as_it_was_given(tmp_path: Path) -> None:
    planned(tmp_path, made("train", notify="a,b'#]@c.example"))
    budget = read_environment(tmp_path, "train").base.budget
    assert budget is not None and budget.notify == ("a,b'#]@c.example",)


def test_dev_elsewhere_word_for_word() -> None:
    wanted = {"name": "lab", "region": "eu-west-2", "instance_type": "p5.48xlarge", "max_nodes": 2}
    one = made("dev", **wanted, bucket="s3://lab-corpus", notify="lab@lab.example")
    assert (one.base_text, one.cluster_text, one.remarks) == (LAB_BASE, LAB_CLUSTER, ())


def test_mixed_where_some_is_not_offered_word_for_word() -> None:
    one = made("mixed", region="ap-northeast-1")
    assert (one.base_text, one.remarks) == (TOKYO_BASE, TOKYO_REMARKS)


def test_an_environment_in_china_has_a_persistent_file_system() -> None:
    one = made("dev", region="cn-north-1", bucket="s3://mine", notify="a@b.example")
    assert ("deployment: PERSISTENT_2\n          throughput: 125\n" in one.cluster_text, one.remarks) == (
        True,
        ("region: which instance types cn-north-1 offers is unknown to the catalog - `corral check` queries AWS",),
    )


def test_reserved_capacity_is_to_be_put_in() -> None:
    assert made("train", region="us-east-2", bucket="s3://mine", notify="a@b.example").remarks == (
        "queue train: set the id of your capacity-block in use2-az1 instead of cr-0123456789abcdef0",
        "queue train: set the id of your reservation in use2-az1 instead of cr-0fedcba9876543210",
        "set your own bucket instead of s3://corral-example-results",
    )


@pytest.mark.parametrize(
    ("like", "wanted", "expected"),
    [
        ("dev", {"name": "My Lab"}, "--name: 'My Lab' is not a valid name - use lowercase letters, digits and"),
        (
            "dev",
            {"region": "us-west-9"},
            "--region: 'us-west-9' is not in the catalog - did you mean 'us-west-1' or 'us-west-2'?",
        ),
        ("dev", {"instance_type": "p3dn.24xlarge"}, "--instance-type: no image in the catalog supports p3dn.24xlarge"),
        ("dev", {"instance_type": "p5.48xl"}, "--instance-type: 'p5.48xl' is not in the catalog - did you mean"),
        ("train", {"instance_type": "g5.xlarge"}, "--instance-type: g5.xlarge is not sold as capacity-block, which"),
        ("dev", {"max_nodes": 0}, "--max-nodes: 0 is out of range - use 1 to 65533"),
        ("dev", {"bucket": "mine"}, "--bucket: 'mine' is not an S3 URL - write it like s3://bucket/prefix"),
        ("mixed", {"bucket": "s3://mine"}, "--bucket: 'mixed' has no data from S3 - remove it, or use another"),
        ("dev", {"notify": "me"}, "--notify: 'me' is not an email address - write it like a@b.example"),
        ("dev", {"notify": "a@b.\x9b2Jx"}, r"--notify: 'a@b.\x9b2Jx' is not an email address - write it like a@b."),
        ("mixed", {"notify": "a@b.example"}, "--notify: 'mixed' has no budget - remove it, or use"),
    ],
)
def test_a_wrong_option_is_reported(like: str, wanted: dict[str, object], expected: str) -> None:
    errors = option_errors(ScaffoldOptions(**wanted), shipped(like), CATALOG)  # type: ignore[arg-type]
    assert [str(error)[: len(expected)] for error in errors] == [expected]


LAB_BASE = """\
# yaml-language-server: $schema=../base.schema.json
# A base for development clusters: network and retained data.
config:
  aws:region: eu-west-2
  corral-base:spec:
    network:
      cidr: 10.64.0.0/16
      # Zone ids: the same in every account, unlike zone names.
      zones: [euw2-az1, euw2-az2]
    storage:
      home: {} # /home on EFS, retained when the base is deleted
    budget:
      usd_per_month: 2000 # sends email, does not stop anything
      notify: [lab@lab.example]
"""
LAB_CLUSTER = """\
# yaml-language-server: $schema=../cluster.schema.json
# A cluster for development: one queue, spot first.
config:
  aws:region: eu-west-2
  corral-cluster:spec:
    # The base is declared in stacks/base/Pulumi.<base>.yaml.
    base: lab
    head:
      instance_type: m7i.2xlarge
    image:
      profile: ubuntu-24.04-dlami
    storage:
      lustre: # deleted with the cluster
        - name: scratch # mounted at /scratch
          size_gib: 1200
          deployment: SCRATCH_2
          data:
            - path: /data # /scratch/data shows the objects in S3
              s3: s3://lab-corpus
    queues:
      - name: train
        instance_type: p5.48xlarge
        nodes: {min: 0, max: 2}
        suspend_after: 10m # terminate nodes after this idle time
        capacity: # tried in this order
          - market: spot
          - market: on-demand
    lifetime:
      ttl: 12h # shut down after this time, even with running jobs
      idle: 1h # shut down after this time without a job
"""
TOKYO_BASE = """\
# yaml-language-server: $schema=../base.schema.json
# A base in an existing VPC. Replace the ids with your own.
config:
  aws:region: ap-northeast-1
  corral-base:spec:
    network:
      adopt:
        vpc: vpc-0123456789abcdef0
        subnets: # private, with internet and S3 access
          - {zone: apne1-az4, id: subnet-0123456789abcdef0, cidr: 10.20.32.0/19}
          - {zone: apne1-az1, id: subnet-0123456789abcdef2, cidr: 10.20.96.0/19} # for Trainium
    storage:
      home: {}
"""
TOKYO_REMARKS = (
    "queue trainium: trn1.32xlarge is not offered in ap-northeast-1"
    " - available in ap-south-1, ap-southeast-2, ap-southeast-4, us-east-1, us-east-2, us-west-2",
    "network: set the id of your VPC, and the ids and ranges of its subnets in apne1-az4, apne1-az1",
    "the head: set a free address of the first subnet instead of 10.20.32.10",
)
