"""Rules that a table of wrong files does not reach: on values of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from specs import CLUSTER, edited, project

from corral.catalog.aws.images import find_image_profile
from corral.catalog.aws.instance_types import find_instance_type
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.loader import parse_cluster
from corral.spec.models.durations import format_duration, parse_duration
from corral.spec.models.image import ImageSpec, resolve_image
from corral.spec.models.lustre import LustreSpec
from corral.spec.rules import lustre_rules, tag_rules
from corral.spec.rules.cluster_rules import image_problem
from corral.spec.rules.name_rules import name_problem, s3_problem
from corral.spec.rules.tag_rules import looks_secret, names_secret
from corral.spec.spec_errors import SpecErrors, SpecFinding, SpecProblem, path_of
from corral.spec.validation_context import ValidationContext
from corral.spec.yaml.stack_files import read_environment
from corral.spec.yaml.yaml_reader import read_yaml

SPEC = read_yaml(CLUSTER.encode())["config"]["corral-cluster:spec"]


@given(st.integers(0, 10**9))
def test_a_duration_is_read_as_it_is_written(seconds: int) -> None:
    assert parse_duration(format_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("12h", 43200), ("1h30m", 5400), ("2d", 172800), ("0s", 0)]
)
def test_a_duration_means(text: str, seconds: int) -> None:
    assert parse_duration(text).total_seconds() == seconds


@pytest.mark.parametrize("value", ["", "10", "h", "1m1h", "1.5h", "-1h", " 1h", "1 h", "1H", "9999999d", 600, None])
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(value)


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("AKIAIOSFODNN7EXAMPLE", True),
        ("hf_abcdefghijklmnopqrstuvwxyzabcdefgh", True),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", True),
        ("0123456789abcdef0123456789abcdef01234567", True),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", True),
        ("llm-pretraining", False),
        ("team-large-language-models-and-their-friends", False),
        ("arn:aws:iam::123456789012:role/research", False),
        ("s3://corral-example-corpus/tokens/2026-11-21/shard-00017", False),
        ("datasets/tokenized/llama3/shard00017/of/65536", False),
        ("ml-team@example.com", False),
    ],
)
def test_a_secret_is_reported_from_a_label(value: str, secret: bool) -> None:
    assert looks_secret(value) is secret


@pytest.mark.parametrize(
    "key",
    [
        *("password", "DB_PASSWORD", "dbPassword", "admin.passwd", "password2", "secret", "hf_token", "AccessToken"),
        *("api_key", "apikey", "WandbAPIKey", "openai-api-key", "private-key", "aws:secret-access-key", "credentials"),
    ],
)
def test_a_key_that_ends_in_the_word_names_a_secret(key: str) -> None:
    assert names_secret(key)


@pytest.mark.parametrize(
    "key",
    [
        *("secret-owner", "password-policy", "token-budget", "tokens", "secretary", "api", "key", "monkey", "keynote"),
        *("partition-key", "api-keys-rotated", "tokenizer", "credentials-of", "project", "cost-center", ""),
    ],
)
def test_a_key_that_only_speaks_of_secrets_names_none(key: str) -> None:
    assert not names_secret(key)


@pytest.mark.parametrize("value", ["", "true", "No", "none"])
def test_whether_there_is_a_secret_is_no_secret(value: str) -> None:
    assert list(tag_rules.check({"needs-token": value})) == []


@pytest.mark.parametrize("name", ["a", "dev", "h100-16", "a--b", "a" * 28])
def test_a_name_that_all_of_aws_slurm_and_dns_take(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize("character", ["\x1b", "\x07", "\x9b", "\u202e", "\u200b"])
def test_a_prefix_that_controls_a_terminal_is_refused(character: str) -> None:
    url = f"s3://bucket/a{character}b"
    assert s3_problem(url) == SpecProblem(f"{url!r} is not an S3 URL", "write it like s3://bucket/prefix")


def test_a_machine_of_another_architecture_cannot_boot_the_image() -> None:
    machine = replace(find_instance_type("m7i.xlarge"), architecture="arm64")
    assert image_problem(machine, find_image_profile("ubuntu-24.04-dlami")) == SpecProblem(
        "m7i.xlarge is an arm64 machine, image 'ubuntu-24.04-dlami' is for x86_64", "use a matching type or image"
    )


def test_an_image_of_your_own_with_proprietary_kernel_modules_boots_a_v100() -> None:
    own = ImageSpec(id="ami-0123456789abcdef0", kernel_modules="proprietary")
    profile = resolve_image(own)
    assert profile and image_problem(find_instance_type("p3dn.24xlarge"), profile) is None


def test_china_has_no_scratch_file_system() -> None:
    scratch = LustreSpec(name="scratch", size_gib=1200)
    assert list(lustre_rules.check([scratch], ValidationContext(region="cn-north-1"))) == [
        SpecFinding(
            ("storage", "lustre", 0, "deployment"),
            "'SCRATCH_2' is not available in the China regions",
            "use PERSISTENT_2",
        )
    ]


def test_a_finding_has_its_fix_apart_from_what_is_wrong() -> None:
    assert list(tag_rules.check({"a b": "c"})) == [
        SpecFinding(("tags", "a b"), "invalid tag key", "use letters, digits and + - = . _ : @ only")
    ]


def test_the_printed_line_ends_with_the_fix() -> None:
    finding = SpecProblem("is listed twice", "keep one").at(("queues", 1, "name"))
    assert str(finding.in_file("dev.yaml")) == "dev.yaml: queues[1].name: is listed twice - keep one"


def test_an_error_without_a_fix_is_printed_without_a_hyphen() -> None:
    assert str(SpecFinding((), "is not UTF-8 text").in_file("catalog.toml")) == "catalog.toml: is not UTF-8 text"


def test_a_path_quotes_keys_that_are_no_words() -> None:
    assert path_of(("queues", 1, "capacity", 0, "zones")) + " " + path_of(("tags", "my key")) == (
        'queues[1].capacity[0].zones tags."my key"'
    )


def test_a_cluster_without_its_base_is_checked_against_its_region() -> None:
    with pytest.raises(SpecErrors) as caught:
        parse_cluster(SPEC, name="dev", where="Pulumi.dev.yaml", context=ValidationContext(region="us-east-2"))
    assert str(caught.value).split("\n") == [
        "Pulumi.dev.yaml: head.zone: 'use1-az2' is not a zone of us-east-2 - it has use2-az1, use2-az2, use2-az3",
        "Pulumi.dev.yaml: storage.lustre[0].zone:"
        " 'use1-az1' is not a zone of us-east-2 - it has use2-az1, use2-az2, use2-az3",
        "Pulumi.dev.yaml: queues[0].capacity[0].zones[0]:"
        " 'use1-az1' is not a zone of us-east-2 - it has use2-az1, use2-az2, use2-az3",
    ]


def test_a_parsed_spec_cannot_be_changed() -> None:
    spec = parse_cluster(SPEC, name="dev", where="Pulumi.dev.yaml", context=ValidationContext(region="us-east-1"))
    with pytest.raises(ValueError, match="frozen"):
        spec.head.root_gib = 5


OWN = "ami-0123456789abcdef0"
LUSTRE_REMOVED = (CLUSTER[CLUSTER.index("    storage:") : CLUSTER.index("    queues:")], "")


def images_planned(
    tmp_path: Path, *edits: tuple[str, str], override: str | None = None
) -> Mapping[str, tuple[str, str]]:
    """The profile and the Slurm of each image of the edited file's plan."""
    environment = read_environment(project(tmp_path, cluster=edited(CLUSTER, edits)), "dev")
    plan = plan_cluster(environment.cluster, plan_base(environment.base), image_profile=override)
    return {key: (image.profile, image.slurm_version) for key, image in plan.images.items()}


def test_an_own_image_is_described_by_the_profile_next_to_its_id(tmp_path: Path) -> None:
    own = f"instance_type: trn1.32xlarge\n        image: {{id: {OWN}, profile: ubuntu-24.04-neuron-dlami}}"
    assert images_planned(tmp_path, ("instance_type: g5.xlarge", own)) == {
        "image": ("ubuntu-24.04-dlami", "23.11"),
        f"image-{OWN}": ("ubuntu-24.04-neuron-dlami", "23.11"),
    }


@pytest.mark.parametrize(
    ("slurm", "read"), [("24.11", "24.11"), ("22.05", "22.05"), ("'25.11.2'", "25.11.2"), ("27.02", "27.02")]
)
def test_an_own_image_states_its_slurm(tmp_path: Path, slurm: str, read: str) -> None:
    own = f"id: {OWN}\n      slurm: {slurm}"
    assert images_planned(tmp_path, ("profile: ubuntu-24.04-dlami", own)) == {"image": ("ubuntu-24.04-dlami", read)}


def test_own_keys_are_validated_by_the_own_images_slurm(tmp_path: Path) -> None:
    own = ("profile: ubuntu-24.04-dlami", f"id: {OWN}\n      slurm: 25.05")
    key = ("    tags: {project: llm}\n", "    slurm:\n      extra: {PrologTimeout: 60}\n")
    assert images_planned(tmp_path, own, key) == {"image": ("ubuntu-24.04-dlami", "25.05")}


def test_in_the_box_an_own_images_slurm_is_the_boxs(tmp_path: Path) -> None:
    own = ("profile: ubuntu-24.04-dlami", f"id: {OWN}\n      slurm: 25.05")
    assert images_planned(tmp_path, own, override="box-debian-12") == {"image": ("box-debian-12", "22.05")}


@pytest.mark.parametrize("slurm", ["25.11", "25.05", "24.11"])
def test_nodes_may_have_an_older_slurm_than_the_head(tmp_path: Path, slurm: str) -> None:
    head = ("profile: ubuntu-24.04-dlami", f"id: {OWN}\n      slurm: 26.05")
    queue = ("nodes: {max: 8}", f"nodes: {{max: 8}}\n        image: {{id: ami-0123456789abcdef1, slurm: {slurm}}}")
    assert images_planned(tmp_path, head, queue)["image-ami-0123456789abcdef1"] == ("ubuntu-24.04-dlami", slurm)


DLAMI_QUEUES = tuple(
    (type_, f"{type_}\n        image: {{profile: ubuntu-24.04-dlami}}")
    for type_ in ("instance_type: p4d.24xlarge", "instance_type: g5.xlarge")
)


def test_a_head_on_debian_may_have_queues_on_the_deep_learning_image(tmp_path: Path) -> None:
    head, lustre = ("image:\n      profile: ubuntu-24.04-dlami", "image: {profile: debian-13}"), LUSTRE_REMOVED
    assert images_planned(tmp_path, head, lustre, *DLAMI_QUEUES) == {
        "image": ("debian-13", "24.11"),
        "image-ubuntu-24.04-dlami": ("ubuntu-24.04-dlami", "23.11"),
    }


def test_an_own_image_of_debian_may_have_nvidia_efa_and_lustre(tmp_path: Path) -> None:
    own = ("profile: ubuntu-24.04-dlami", f"profile: debian-13\n      id: {OWN}\n      kernel_modules: open")
    assert images_planned(tmp_path, own) == {"image": ("debian-13", "24.11")}


def test_without_efa_a_machine_that_has_it_boots_debian(tmp_path: Path) -> None:
    image = ("profile: ubuntu-24.04-dlami", "profile: debian-13")
    big = ("instance_type: p4d.24xlarge", "instance_type: c7i.48xlarge")
    small = ("instance_type: g5.xlarge", "instance_type: c7i.xlarge")
    assert images_planned(tmp_path, image, big, small, ("efa: on", 'efa: "off"'), LUSTRE_REMOVED) == {
        "image": ("debian-13", "24.11")
    }


def test_tags_that_differ_by_case_alone_are_one_to_iam() -> None:
    found = [(finding.loc[-1], finding.message) for finding in tag_rules.check({"Owner": "a", "owner": "b"})]
    assert found == [("owner", "equals 'Owner' for IAM, which ignores case")]


def test_a_tag_name_is_not_the_users_in_any_case() -> None:
    assert [finding.loc for finding in tag_rules.check({"name": "a"})] == [("tags", "name")]
