"""CloudWatch alarms on metrics."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import boolean, integer, number, text, text_map, text_set
from corral.box.provider.provider_errors import NotFound
from corral.box.provider.resource import Resource, ResourceUpdate, State


def _put_alarm(cloud: RegionClients, inputs: State) -> str:
    request = to_request(ALARM.props, inputs, ALARM.props.keys() - {"dimensions"})
    request["Dimensions"] = [{"Name": key, "Value": value} for key, value in (inputs.get("dimensions") or {}).items()]
    cloud.cloudwatch.put_metric_alarm(**request, Tags=tag_list(inputs.get("tagsAll")))
    return str(inputs["name"])


def _read_alarm(cloud: RegionClients, id: str, known: State) -> State:
    found = cloud.cloudwatch.describe_alarms(AlarmNames=[id])["MetricAlarms"]
    if not found:
        raise NotFound(f"alarm {id} does not exist")
    alarm = found[0]
    tags = cloud.cloudwatch.list_tags_for_resource(ResourceARN=alarm["AlarmArn"])["Tags"]
    return {
        **from_response(ALARM.state, {key: value for key, value in alarm.items() if key != "Dimensions"}),
        "dimensions": {one["Name"]: one["Value"] for one in alarm.get("Dimensions", [])},
        "tagsAll": tag_map(tags),
    }


def _update_alarm(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.names - {"tags", "tagsAll"}:
        _put_alarm(cloud, change.new)


def _delete_alarm(cloud: RegionClients, id: str, state: State) -> None:
    cloud.cloudwatch.delete_alarms(AlarmNames=[id])


def _retag_alarm(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.cloudwatch.untag_resource(ResourceARN=state["arn"], TagKeys=drop)
    if put:
        cloud.cloudwatch.tag_resource(ResourceARN=state["arn"], Tags=tag_list(put))


ALARM = Resource(
    token="aws:cloudwatch/metricAlarm:MetricAlarm",
    props={
        "name": text(replaces=True, aws="AlarmName"),
        "alarmDescription": text(),
        "comparisonOperator": text(required=True),
        "evaluationPeriods": integer(required=True),
        "datapointsToAlarm": integer(),
        "metricName": text(required=True),
        "namespace": text(required=True),
        "dimensions": text_map(),
        "period": integer(required=True),
        "statistic": text(),
        "extendedStatistic": text(),
        "threshold": number(required=True),
        "unit": text(),
        "treatMissingData": text(default="missing"),
        "actionsEnabled": boolean(default=True),
        "alarmActions": text_set(),
        "okActions": text_set(aws="OKActions"),
        "insufficientDataActions": text_set(),
    },
    outputs={"arn": text(aws="AlarmArn")},
    create=_put_alarm,
    read=_read_alarm,
    update=_update_alarm,
    delete=_delete_alarm,
    retag=_retag_alarm,
    autonamed="name",
)

RESOURCES = (ALARM,)
