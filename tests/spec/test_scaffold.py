"""Environments made from the shipped ones: all of them in every region, two word for word, and every wrong wish."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from corral.catalog.instances import instance_types
from corral.catalog.project import shipped_catalogue
from corral.catalog.regions import regions
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.cost import forecast_cost
from corral.forecast.notes import Note, notes
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.files import read_environment
from corral.spec.scaffold import Scaffold, Shipped, Wanted, mistakes, read_shipped, scaffold

STACKS = Path(__file__).parents[2] / "stacks"
CATALOGUE = shipped_catalogue()
LIKES = ("dev", "mixed", "train")


@cache
def shipped(name: str) -> Shipped:
    base, cluster = ((STACKS / kind / f"Pulumi.{name}.yaml").read_text() for kind in ("base", "cluster"))
    return read_shipped(name, base, cluster, CATALOGUE)


def made(like: str, **wanted: object) -> Scaffold:
    return scaffold(shipped(like), Wanted(**wanted), CATALOGUE)  # type: ignore[arg-type]


def planned(directory: Path, one: Scaffold) -> tuple[Note, ...]:
    """What `corral plan` says beside the figures. Raises SpecErrors where it would refuse."""
    for kind, text in (("base", one.base_text), ("cluster", one.cluster_text)):
        file = directory / "stacks" / kind / f"Pulumi.{one.name}.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    spec = read_environment(directory, one.name)
    base = plan_base(spec.base)
    cluster = plan_cluster(spec.cluster, base, catalogue=spec.catalogue)
    prices = catalogue_prices(cluster.region, spec.catalogue)
    forecast_cost(base, cluster, prices)
    return notes(base, cluster, prices)


def about(sentences: list[str]) -> set[str]:
    """The queues of which these sentences say that something is not offered."""
    return {one.partition(":")[0] for one in sentences if "not offered" in one and one.startswith("queue")}


def zones(one: Scaffold) -> list[str]:
    found = re.findall(r"zones: \[(.*?)\]|- \{zone: (.*?),", one.base_text)
    return [listed or single for listed, single in found]


@pytest.mark.parametrize("region", regions())
@pytest.mark.parametrize("like", LIKES)
def test_every_shipped_environment_can_be_planned_in_every_region(like: str, region: str, tmp_path: Path) -> None:
    one = made(like, name="mine", region=region)
    noted = [f"{note.about}: {note.text}" for note in planned(tmp_path, one)]
    assert about(noted) == about(list(one.remarks))


@pytest.mark.parametrize("region", regions())
@pytest.mark.parametrize("like", LIKES)
def test_no_zone_of_the_shipped_region_stays(like: str, region: str) -> None:
    one = made(like, region=region)
    named = set(re.findall(r"\b[a-z]+\d-az\d\b", one.base_text + one.cluster_text))
    assert named <= set(regions()[region].zones)


def taken(like: str) -> list[str]:
    """The types that can stand in the first queue of this environment."""
    return [name for name in instance_types() if not mistakes(Wanted(instance_type=name), shipped(like), CATALOGUE)]


@pytest.mark.parametrize(("like", "name"), [(like, name) for like in LIKES for name in taken(like)])
def test_every_type_that_is_taken_can_be_planned(like: str, name: str, tmp_path: Path) -> None:
    planned(tmp_path, made(like, instance_type=name))


def test_types_that_are_not_sold_as_train_buys_them_are_not_taken() -> None:
    assert " ".join(taken("train")) == (
        "p4d.24xlarge p4de.24xlarge p5.48xlarge p5.4xlarge p5e.48xlarge p5en.48xlarge p6-b200.48xlarge"
        " p6-b300.48xlarge trn1.32xlarge trn2.3xlarge trn2.48xlarge"
    )


@pytest.mark.parametrize("like", LIKES)
def test_without_a_wish_the_texts_are_the_shipped_ones(like: str) -> None:
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


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ("us-west-2", "both offer p4d.24xlarge"),
        ("eu-north-1", "this one offers p4d.24xlarge"),
        ("eu-west-3", "p4d.24xlarge is not offered in eu-west-3"),
    ],
)
def test_comment_on_the_zones_stays_true(region: str, expected: str) -> None:
    assert f"# zone ids, the same in every account; {expected}\n" in made("dev", region=region).base_text


@pytest.mark.parametrize(("region", "is_there"), [("us-east-1", True), ("eu-north-1", False)])
def test_comment_on_trainium_is_there_where_it_is_true(region: str, is_there: bool) -> None:
    assert ("Trainium is offered here" in made("mixed", region=region).base_text) is is_there


@pytest.mark.parametrize(
    ("like", "wanted", "expected"),
    [
        ("dev", {"max_nodes": 1}, "# The cluster `dev`: up to one 8 x A100 machine, spot first."),
        ("dev", {"instance_type": "t3.large"}, "# The cluster `dev`: up to four t3.large machines, spot first."),
        ("train", {"max_nodes": 200}, "# The cluster `train`: 200 8 x H100 machines. A capacity block first, then"),
        ("mixed", {"instance_type": "p5.48xlarge"}, "machines behind one head - H100 to train, L40S to evaluate,"),
    ],
)
def test_first_line_tells_the_machines(like: str, wanted: dict[str, object], expected: str) -> None:
    assert expected in made(like, **wanted).cluster_text.splitlines()[0]


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


def test_reserved_capacity_is_to_be_put_in() -> None:
    assert made("train", region="us-east-2", bucket="s3://mine", notify="a@b.example").remarks == (
        "queue train: put in the id of your own capacity-block in use2-az1 for cr-0123456789abcdef0",
        "queue train: put in the id of your own reservation in use2-az1 for cr-0fedcba9876543210",
        "put in a bucket of your own for s3://corral-example-results",
    )


@pytest.mark.parametrize(
    ("like", "wanted", "expected"),
    [
        ("dev", {"name": "My Lab"}, "--name: 'My Lab' is not a name - use small letters, digits and hyphens,"),
        (
            "dev",
            {"region": "us-west-9"},
            "--region: 'us-west-9' is not in the catalogue - did you mean 'us-west-1' or 'us-west-2'?",
        ),
        ("dev", {"instance_type": "p5.48xl"}, "--instance-type: 'p5.48xl' is not in the catalogue - did you mean"),
        ("train", {"instance_type": "g5.xlarge"}, "--instance-type: g5.xlarge is not sold as capacity-block, of which"),
        ("dev", {"max_nodes": 0}, "--max-nodes: 0 cannot be - use 1 to 65533"),
        ("dev", {"bucket": "mine"}, "--bucket: 'mine' is not a place in S3 - write it like s3://bucket/prefix"),
        ("mixed", {"bucket": "s3://mine"}, "--bucket: 'mixed' has no data from S3 - leave it out, or use another"),
        ("dev", {"notify": "me"}, "--notify: 'me' is not a mail address - write it like a@b.example"),
        ("mixed", {"notify": "a@b.example"}, "--notify: 'mixed' has no budget to tell of - leave it out, or use"),
    ],
)
def test_wrong_wish_is_told(like: str, wanted: dict[str, object], expected: str) -> None:
    told = mistakes(Wanted(**wanted), shipped(like), CATALOGUE)  # type: ignore[arg-type]
    assert [one[: len(expected)] for one in told] == [expected]


LAB_BASE = """\
# The base `lab`: network and kept data for development clusters.
config:
  aws:region: eu-west-2
  corral-base:spec:
    network:
      cidr: 10.64.0.0/16
      zones: [euw2-az1, euw2-az2] # zone ids, the same in every account; both offer p5.48xlarge
    storage:
      home: {} # /home on EFS, kept when the base goes
    budget:
      usd_per_month: 2000 # an alarm, not a limit
      notify: [lab@lab.example]
"""
LAB_CLUSTER = """\
# The cluster `lab`: up to two 8 x H100 machines, spot first.
config:
  aws:region: eu-west-2
  corral-cluster:spec:
    base: lab # stacks/base/Pulumi.lab.yaml
    head:
      instance_type: m7i.2xlarge
    image:
      profile: ubuntu-24.04-dlami
    storage:
      lustre: # lives and dies with the cluster
        - name: scratch # mounted at /scratch
          size_gib: 1200
          deployment: SCRATCH_2
          data:
            - path: /data # /scratch/data shows what is in S3
              s3: s3://lab-corpus
    queues:
      - name: train
        instance_type: p5.48xlarge
        nodes: {min: 0, max: 2}
        suspend_after: 10m # idle nodes go
        capacity: # tried in this order
          - market: spot
          - market: on-demand
    lifetime:
      ttl: 12h # whatever happens, nothing runs longer than this
      idle: 1h # without a job
"""
TOKYO_BASE = """\
# The base `mixed`: in a VPC that somebody else looks after. Put in the ids of your own.
config:
  aws:region: ap-northeast-1
  corral-base:spec:
    network:
      adopt:
        vpc: vpc-0123456789abcdef0
        subnets: # private ones, with a way out and to S3
          - {zone: apne1-az4, id: subnet-0123456789abcdef0, cidr: 10.20.32.0/19}
          - {zone: apne1-az1, id: subnet-0123456789abcdef2, cidr: 10.20.96.0/19}
    storage:
      home: {}
"""
TOKYO_REMARKS = (
    "queue trainium: trn1.32xlarge is not offered in ap-northeast-1"
    " - it is in ap-south-1, ap-southeast-2, ap-southeast-4, us-east-1, us-east-2, us-west-2",
    "network: put in the id of your own VPC, and the ids and ranges of its subnets in apne1-az4, apne1-az1",
    "the head: put in a free address of the first subnet for 10.20.32.10",
)
