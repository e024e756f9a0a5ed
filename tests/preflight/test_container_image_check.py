"""Container images of jobs: whether they are in ECR, and for the queues' machines."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from defects import BoxSession
from finding_lines import dev, finding_lines

import boxes
from corral.box.client import BoxStatus
from corral.model.cluster import ContainerImagePlan, JobsPlan
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.container_image_check import (
    ContainerImageFacts,
    FoundImage,
    architectures_in,
    evaluate,
    fetch,
)
from corral.preflight.preflight_findings import PreflightRequest
from environments import dev_cluster

DIGEST = f"sha256:{'0' * 64}"
TRAIN = ContainerImagePlan(account=None, repository="team/train", version="1")
BASE = ContainerImagePlan(account="210987654321", repository="base/jax", version=DIGEST)
LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
INDEX = {"manifests": [{"platform": {"architecture": "amd64", "os": "linux"}, "digest": "sha256:1"}]}
ONE = {"config": {"digest": "sha256:2"}, "layers": []}


def request(*images: ContainerImagePlan) -> PreflightRequest:
    """A request for `dev`, whose machines are all x86_64, with these images."""
    return dev(replace(dev_cluster(), jobs=JobsPlan(images=images)))


def test_an_environment_without_images_has_no_findings() -> None:
    assert finding_lines(evaluate(dev(), ContainerImageFacts())) == []


@pytest.mark.parametrize(
    ("image", "found", "expected"),
    [
        (TRAIN, FoundImage(architectures=("amd64",)), "ok team/train:1: is for amd64"),
        (TRAIN, FoundImage(architectures=("amd64", "arm64")), "ok team/train:1: is for amd64, arm64"),
        (TRAIN, FoundImage(), "ok team/train:1: is there; its architecture is unknown"),
        (
            TRAIN,
            FoundImage(architectures=("arm64",)),
            "fail team/train:1: is for arm64; the machines of the queues need amd64",
        ),
        (TRAIN, FoundImage(refusal="ImageNotFound"), "fail team/train:1: team/train has no image 1"),
        (
            TRAIN,
            FoundImage(refusal="RepositoryNotFoundException"),
            "fail team/train:1: there is no repository team/train in this account, us-east-1",
        ),
        (
            BASE,
            FoundImage(refusal="RepositoryNotFoundException"),
            f"fail 210987654321: base/jax@{DIGEST}: there is no repository base/jax in 210987654321, us-east-1",
        ),
        (
            TRAIN,
            FoundImage(refusal="AccessDeniedException"),
            "warn team/train:1: cannot be checked: these credentials may not call BatchGetImage on its repository",
        ),
        (TRAIN, FoundImage(refusal="ServerException"), "fail team/train:1: cannot be checked: ServerException"),
    ],
)
def test_findings_of_an_image(image: ContainerImagePlan, found: FoundImage, expected: str) -> None:
    assert finding_lines(evaluate(request(image), ContainerImageFacts(found={image: found}))) == [expected]


def test_an_image_for_other_machines_comes_with_the_option_that_builds_it() -> None:
    found = {TRAIN: FoundImage(architectures=("arm64",))}
    (finding,) = evaluate(request(TRAIN), ContainerImageFacts(found=found))
    assert finding.fix == "build it for them, such as with --platform linux/amd64"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (INDEX, ("amd64",)),
        (ONE, ()),
        ({"manifests": [{"platform": {"architecture": "unknown", "os": "unknown"}}, {"digest": "sha256:1"}]}, ()),
    ],
    ids=["a list", "one image", "attestations"],
)
def test_a_list_of_manifests_names_architectures(document: Mapping[str, Any], expected: tuple[str, ...]) -> None:
    assert architectures_in(document) == expected


@dataclass(kw_only=True)
class Ecr:
    """Answers with this manifest, or with this code; S3 with this configuration, or not at all."""

    manifest: Mapping[str, Any] = field(default_factory=dict)
    refusal: str = ""
    configuration: bytes | None = None
    requests: list[Mapping[str, Any]] = field(default_factory=list)

    def client(self, service: str) -> Any:
        assert service == "ecr"
        return SimpleNamespace(batch_get_image=self.images, get_download_url_for_layer=self.layer)

    def images(self, **request: Any) -> Mapping[str, Any]:
        self.requests.append(request)
        if self.refusal:
            raise ClientError({"Error": {"Code": self.refusal, "Message": ""}}, "BatchGetImage")
        return {"images": [{"imageManifest": json.dumps(self.manifest)}], "failures": []}

    def layer(self, **request: Any) -> Mapping[str, Any]:
        self.requests.append(request)
        return {"downloadUrl": "https://s3.example/2"}

    def open(self, url: str, timeout: float) -> io.BytesIO:
        assert (url, timeout) == ("https://s3.example/2", 10)
        if self.configuration is None:
            raise TimeoutError
        return io.BytesIO(self.configuration)


@pytest.mark.parametrize(
    ("ecr", "expected"),
    [
        (Ecr(manifest=INDEX), FoundImage(architectures=("amd64",))),
        (Ecr(manifest=ONE, configuration=b'{"architecture": "arm64"}'), FoundImage(architectures=("arm64",))),
        (Ecr(manifest=ONE, configuration=b"<Error/>"), FoundImage()),
        (Ecr(manifest=ONE), FoundImage()),
        (Ecr(refusal="AccessDeniedException"), FoundImage(refusal="AccessDeniedException")),
    ],
    ids=["a list", "one image", "something else", "S3 is away", "not allowed"],
)
def test_what_ecr_answers(ecr: Ecr, expected: FoundImage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.preflight.container_image_check.urlopen", ecr.open)
    assert fetch(AwsQueryCache(ecr), request(TRAIN)).found == {TRAIN: expected}


def test_an_image_of_another_account_is_looked_up_there_by_its_digest() -> None:
    ecr = Ecr(manifest=INDEX)
    fetch(AwsQueryCache(ecr), request(BASE))
    assert [(one["registryId"], one["repositoryName"], one["imageIds"]) for one in ecr.requests] == [
        ("210987654321", "base/jax", [{"imageDigest": DIGEST}])
    ]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("box")) as status:
        yield status


@pytest.mark.box
def test_images_of_the_boxs_ecr_are_found_by_name_and_tag(box: BoxStatus) -> None:
    ecr = boxes.client(box, "ecr", "us-east-1")
    ecr.create_repository(repositoryName="team/train")
    manifest = json.dumps({"schemaVersion": 2, "mediaType": LIST, **INDEX})
    ecr.put_image(repositoryName="team/train", imageManifest=manifest, imageTag="1")
    elsewhere = (replace(TRAIN, version="2"), replace(TRAIN, repository="team/none"))
    images = request(TRAIN, *elsewhere)
    assert finding_lines(evaluate(images, fetch(AwsQueryCache(BoxSession(box=box)), images))) == [
        "ok team/train:1: is for amd64",
        "fail team/train:2: team/train has no image 2",
        "fail team/none:1: there is no repository team/none in this account, us-east-1",
    ]
