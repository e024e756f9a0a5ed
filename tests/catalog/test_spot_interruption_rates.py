"""How often AWS takes spot instances back, by type and region."""

from __future__ import annotations

import pytest

from corral.catalog.aws.instance_types import instance_types
from corral.catalog.aws.spot_interruption_rates import BANDS, published_spot_band
from corral.catalog.loader.data_files import read_csv
from corral.spec.models.run import RunSpecInput


@pytest.mark.parametrize(
    ("instance_type", "region", "label"),
    [
        ("p5.48xlarge", "us-east-1", "<5%"),
        ("p4d.24xlarge", "us-east-1", "15-20%"),
        ("p4d.24xlarge", "us-west-2", ">20%"),
        ("p6-b200.48xlarge", "us-west-2", "10-15%"),
    ],
)
def test_a_type_has_the_band_of_its_region(instance_type: str, region: str, label: str) -> None:
    band = published_spot_band(instance_type, region)
    assert band is not None
    assert band.label == label


def test_a_type_that_the_advisor_does_not_have_has_none() -> None:
    assert published_spot_band("trn2.48xlarge", "us-east-1") is None


def test_every_row_is_of_a_type_of_the_catalog() -> None:
    assert {row["instance_type"] for row in read_csv("spot_bands.csv")} <= instance_types().keys()


def test_no_row_is_there_twice() -> None:
    rows = [(row["instance_type"], row["region"]) for row in read_csv("spot_bands.csv")]
    assert len(rows) == len(set(rows))


def test_a_run_file_can_say_each_band() -> None:
    shares = RunSpecInput.model_json_schema()["properties"]["spot_interruptions"]["anyOf"][0]["enum"]
    assert shares == [band.label for band in BANDS]
