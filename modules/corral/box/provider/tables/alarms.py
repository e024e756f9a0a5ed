"""CloudWatch alarms on metrics."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import (
    flag,
    number,
    text,
    texts,
    whole,
    wordset,
)
from corral.box.provider.translate import record, request, tag_list, tag_map


def _put_alarm(cloud: Cloud, inputs: State) -> str:
    asked = request(ALARM.props, inputs, ALARM.props.keys() - {"dimensions"})
    asked["Dimensions"] = [{"Name": key, "Value": value} for key, value in (inputs.get("dimensions") or {}).items()]
    cloud.cloudwatch.put_metric_alarm(**asked, Tags=tag_list(inputs.get("tagsAll")))
    return str(inputs["name"])


def _read_alarm(cloud: Cloud, id: str, known: State) -> State:
    found = cloud.cloudwatch.describe_alarms(AlarmNames=[id])["MetricAlarms"]
    if not found:
        raise Gone(f"alarm {id} does not exist")
    alarm = found[0]
    tags = cloud.cloudwatch.list_tags_for_resource(ResourceARN=alarm["AlarmArn"])["Tags"]
    return {
        **record(ALARM.state, {key: value for key, value in alarm.items() if key != "Dimensions"}),
        "dimensions": {one["Name"]: one["Value"] for one in alarm.get("Dimensions", [])},
        "tagsAll": tag_map(tags),
    }


def _update_alarm(cloud: Cloud, change: Change) -> None:
    if change.names - {"tags", "tagsAll"}:
        _put_alarm(cloud, change.new)


def _delete_alarm(cloud: Cloud, id: str, state: State) -> None:
    cloud.cloudwatch.delete_alarms(AlarmNames=[id])


def _retag_alarm(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
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
        "evaluationPeriods": whole(required=True),
        "datapointsToAlarm": whole(),
        "metricName": text(required=True),
        "namespace": text(required=True),
        "dimensions": texts(),
        "period": whole(required=True),
        "statistic": text(),
        "extendedStatistic": text(),
        "threshold": number(required=True),
        "unit": text(),
        "treatMissingData": text(default="missing"),
        "actionsEnabled": flag(default=True),
        "alarmActions": wordset(),
        "okActions": wordset(aws="OKActions"),
        "insufficientDataActions": wordset(),
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
