"""CloudWatch in Smithy RPC v2 CBOR, which the SDKs of newer providers speak alone: by botocore's own client."""

from __future__ import annotations

from typing import Any

import boto3
import botocore.session
import pytest
from botocore.exceptions import ClientError

from boxes import client, owner_keys
from corral.box.client import BoxStatus


@pytest.fixture
def cbor(box: BoxStatus) -> Any:
    """A client of CloudWatch that knows no other protocol."""
    session = botocore.session.get_session()
    loader = session.get_component("data_loader")
    load = loader.load_service_model

    def load_without_others(name: str, type_name: str, api_version: str | None = None) -> Any:
        model = load(name, type_name, api_version)
        if (name, type_name) == ("cloudwatch", "service-2"):
            return model | {"metadata": model["metadata"] | {"protocols": ["smithy-rpc-v2-cbor"]}}
        return model

    loader.load_service_model = load_without_others
    found = boto3.Session(botocore_session=session, **owner_keys(box)).client(
        "cloudwatch", endpoint_url=box.url, region_name="us-east-1"
    )
    assert found.meta.service_model.resolved_protocol == "smithy-rpc-v2-cbor"
    return found


def put_alarm(cloudwatch: Any, name: str) -> None:
    cloudwatch.put_metric_alarm(
        AlarmName=name,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        EvaluationPeriods=2,
        MetricName="StatusCheckFailed_System",
        Namespace="AWS/EC2",
        Period=60,
        Statistic="Maximum",
        Threshold=1,
        Dimensions=[{"Name": "InstanceId", "Value": "i-1"}],
        Tags=[{"Key": "corral:base", "Value": "dev"}],
    )


def test_an_alarm_that_was_put_in_cbor_is_the_one_that_json_describes(cbor: Any, box: BoxStatus) -> None:
    put_alarm(cbor, "in-cbor")
    (alarm,) = client(box, "cloudwatch").describe_alarms(AlarmNames=["in-cbor"])["MetricAlarms"]
    assert (alarm["Threshold"], alarm["Period"], alarm["Dimensions"]) == (
        1.0,
        60,
        [{"Name": "InstanceId", "Value": "i-1"}],
    )


def test_an_alarm_is_described_in_cbor_with_numbers_and_times(cbor: Any, box: BoxStatus) -> None:
    put_alarm(client(box, "cloudwatch"), "in-json")
    described, as_json = (
        one.describe_alarms(AlarmNames=["in-json"])["MetricAlarms"] for one in (cbor, client(box, "cloudwatch"))
    )
    assert described == as_json


def test_tags_and_the_end_of_an_alarm_are_called_in_cbor(cbor: Any) -> None:
    put_alarm(cbor, "tagged")
    (alarm,) = cbor.describe_alarms(AlarmNames=["tagged"])["MetricAlarms"]
    assert cbor.list_tags_for_resource(ResourceARN=alarm["AlarmArn"])["Tags"] == [
        {"Key": "corral:base", "Value": "dev"}
    ]
    cbor.delete_alarms(AlarmNames=["tagged"])
    assert cbor.describe_alarms(AlarmNames=["tagged"])["MetricAlarms"] == []


def test_an_error_in_cbor_has_its_code(cbor: Any) -> None:
    with pytest.raises(ClientError) as raised:
        cbor.list_metric_streams()
    assert raised.value.response["Error"]["Code"] == "InvalidAction"
