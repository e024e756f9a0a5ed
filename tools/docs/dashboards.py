"""The dashboards of docs/grafana for Grafana, from the metrics that corral exports, by Grafana's own builder library.

The variable `datasource` is the Prometheus of a cluster's head, or one that it writes to; `job` also has `job`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import dashboard as boards
from grafana_foundation_sdk.builders.common import ReduceDataOptions, VizLegendOptions
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import BigValueGraphMode, LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef, VariableRefresh

_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelQuery:
    """A curve or several: an expression of Prometheus, and the legend with its labels."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPlan:
    """A panel. `unit`: Grafana's id. `is_number`: the newest value instead of a curve. `width`: of 24 columns."""

    title: str
    text: str
    queries: tuple[PanelQuery, ...]
    unit: str = "short"
    is_number: bool = False
    width: int = 12


def _curve(title: str, text: str, expression: str, legend: str, unit: str = "short") -> PanelPlan:
    return PanelPlan(title=title, text=text, queries=(PanelQuery(expression=expression, legend=legend),), unit=unit)


def _with_forecast(title: str, text: str, metric: str, forecast: str, unit: str = "short") -> PanelPlan:
    """A job's value, and the forecast's of its run."""
    own = f'{metric}{{job_id=~"$job"}}'
    of_run = PanelQuery(expression=f"{forecast} and on (run, queue) {own}", legend="forecast of {{run}}")
    return PanelPlan(
        title=title, text=text, queries=(PanelQuery(expression=own, legend="{{job_id}}"), of_run), unit=unit
    )


def _number(title: str, text: str, expression: str, unit: str = "short") -> PanelPlan:
    query = PanelQuery(expression=expression, legend=title)
    return PanelPlan(title=title, text=text, queries=(query,), unit=unit, is_number=True, width=6)


DASHBOARDS: Mapping[str, Sequence[PanelPlan]] = {
    "cluster": (
        _number("Nodes with a job", "", 'sum(corral_nodes{state="allocated"})'),
        _number("Jobs that wait", "", 'sum(corral_jobs{state="pending"}) or vector(0)'),
        _number("Offers that back off", "A launch failed; they are tried again later.",
                "count(corral_offer_backoff_seconds > 0) or vector(0)"),
        _number("Age of the autoscaler's last cycle", "Above 5 minutes it launches and ends nothing.",
                "corral_autoscaler_cycle_age_seconds", "s"),
        _curve("Nodes by state", "", "sum by (state) (corral_nodes)", "{{state}}"),
        _curve("GPUs", "Of machines that are up.", "sum by (queue, state) (corral_gpus)", "{{queue}} {{state}}"),
        _curve("Jobs", "That have not ended.", "sum by (queue, state) (corral_jobs)", "{{queue}} {{state}}"),
        _curve("Longest wait", "Of a pending job.", "max by (queue) (corral_job_wait_seconds)", "{{queue}}", "s"),
        _curve("Launches an hour", "Failed ones found no offer at all.",
               "sum by (offer, outcome) (increase(corral_launches_total[1h]))", "{{offer}} {{outcome}}"),
        _curve("Time to boot, 95th percentile", "From the launch to the start of slurmd.",
               "histogram_quantile(0.95, sum by (queue, le) (increase(corral_node_boot_seconds_bucket[6h])))",
               "{{queue}}", "s"),
        _curve("Backoff of offers", "Until an offer is tried again.", "max by (offer) (corral_offer_backoff_seconds)",
               "{{offer}}", "s"),
        _curve("Spot notices and requeues an hour", "", "sum by (queue) (increase(corral_spot_notices_total[1h]))"
               " + on (queue) sum by (queue) (increase(corral_job_requeues_total[1h]))", "{{queue}}"),
        _curve("File systems", "Used part.", "1 - corral_file_system_free_bytes / corral_file_system_size_bytes",
               "{{mount}}", "percentunit"),
        _curve("Time left", "Until the cluster shuts itself down.", "corral_cluster_time_left_seconds", "cluster", "s"),
    ),
    "money": (
        _number("USD an hour, at least", "By catalog prices, without the base's network.",
                'corral_cost_usd_per_hour{estimate="low"}', "currencyUSD"),
        _number("USD so far, at least", "Since monitoring began.", 'corral_cost_usd_total{estimate="low"}',
                "currencyUSD"),
        _number("USD in the last day, at least", "", 'increase(corral_cost_usd_total{estimate="low"}[1d])',
                "currencyUSD"),
        _number("Share of the budget, at least", "A month at the mean cost of the last day.",
                'avg_over_time(corral_cost_usd_per_hour{estimate="low"}[1d]) * 730'
                " / ignoring (estimate) corral_budget_usd_per_month", "percentunit"),
        _curve("USD an hour", "Spot prices vary between the two.", "corral_cost_usd_per_hour", "{{estimate}}",
               "currencyUSD"),
        _curve("USD so far", "", "corral_cost_usd_total", "{{estimate}}", "currencyUSD"),
        _curve("Machines by offer", "", "sum by (offer, market) (corral_machines)", "{{offer}} {{market}}"),
        _curve("GPUs that are paid and idle", "", 'sum by (queue) (corral_gpus{state=~"idle|unavailable"})',
               "{{queue}}"),
    ),
    "job": (
        _number("Tokens a second", "Of all processes.",
                'sum(corral_job_tokens_per_second{job_id=~"$job"})'),
        _number("Step", "Median of the first process.",
                'max(corral_job_step_seconds{job_id=~"$job", rank="0"})', "s"),
        _number("Communication, at least", "Of the process that waits least for others.",
                'min(corral_job_communication_ratio{job_id=~"$job"})', "percentunit"),
        _number("Age of the last checkpoint", "", 'min(corral_job_checkpoint_age_seconds{job_id=~"$job"})', "s"),
        _curve("Tokens a second", "", 'sum by (job_id) (corral_job_tokens_per_second{job_id=~"$job"})', "{{job_id}}"),
        _with_forecast("Tokens a second for each GPU", "Of jobs that are declared runs.",
                         "corral_job_tokens_per_second_per_gpu", "corral_forecast_tokens_per_second_per_gpu"),
        _with_forecast("MFU", "Of jobs that are declared runs, as the forecast counts FLOPs.",
                         "corral_job_mfu_ratio", "corral_forecast_mfu_ratio", "percentunit"),
        _curve("Step", "", 'max by (job_id, node) (corral_job_step_seconds{job_id=~"$job"})', "{{job_id}} {{node}}",
               "s"),
        _curve("Own work in a step", "A node above the others slows all of them down.",
               'max by (job_id, node) (corral_job_own_step_seconds{job_id=~"$job"})', "{{job_id}} {{node}}", "s"),
        _curve("Waiting for data", "", 'max by (job_id, node) (corral_job_data_wait_ratio{job_id=~"$job"})',
               "{{job_id}} {{node}}", "percentunit"),
        _curve("Communication", "", 'min by (job_id, node) (corral_job_communication_ratio{job_id=~"$job"})',
               "{{job_id}} {{node}}", "percentunit"),
        _curve("Time since the last step", "", 'min by (job_id) (corral_job_step_age_seconds{job_id=~"$job"})',
               "{{job_id}}", "s"),
        _curve("GPUs at work", "On the nodes of the job.", "avg by (node) (corral_gpu_utilization_ratio) and on (node)"
               ' corral_job_step_seconds{job_id=~"$job"}', "{{node}}", "percentunit"),
        _curve("GPU memory in use", "On the nodes of the job.", "max by (node)"
               " (corral_gpu_memory_used_bytes / corral_gpu_memory_total_bytes) and on (node)"
               ' corral_job_step_seconds{job_id=~"$job"}', "{{node}}", "percentunit"),
    ),
    "network": (
        _curve("Sent by EFA", "With RDMA.", "8 * sum by (node) (rate(corral_efa_sent_bytes_total[5m]))", "{{node}}",
               "bps"),
        _curve("Received by EFA", "With RDMA.", "8 * sum by (node) (rate(corral_efa_received_bytes_total[5m]))",
               "{{node}}", "bps"),
        _curve("Sent again", "Packets a second.", "sum by (node) (rate(corral_efa_resent_packets_total[5m]))",
               "{{node}}"),
        _curve("Dropped", "Packets a second.", "sum by (node) (rate(corral_efa_dropped_packets_total[5m]))",
               "{{node}}"),
        _curve("Communication of jobs", "Of the process that waits least for others.",
               "min by (job_id) (corral_job_communication_ratio)", "{{job_id}}", "percentunit"),
    ),
}  # fmt: skip


def dashboard_json(name: str) -> str:
    """The dashboard as a file that Grafana imports."""
    return json.dumps(_board(name, DASHBOARDS[name]), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def _board(name: str, panels: Sequence[PanelPlan]) -> Any:
    board = (
        boards.Dashboard(f"corral: {name}")
        .uid(f"corral-{name}")
        .tags(["corral"])
        .time("now-6h", "now")
        .refresh("30s")
        .timezone("utc")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(boards.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    if name == "job":
        board = board.with_variable(_job())
    for number, plan in enumerate(panels, start=1):
        board = board.with_panel(_panel(number, plan))
    return board.build()


def _job() -> Any:
    """The jobs that have recorded steps in the time that is shown."""
    jobs = boards.QueryVariable("job").label("Job").datasource(_SOURCE).multi(True).include_all(True)
    return jobs.query("label_values(corral_job_step_seconds, job_id)").refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)


def _stat() -> Any:
    newest = ReduceDataOptions().calcs(["lastNotNull"])
    return Stat().graph_mode(BigValueGraphMode.NONE).reduce_options(newest)


def _curves() -> Any:
    legend = VizLegendOptions().show_legend(True)
    legend = legend.placement(LegendPlacement.BOTTOM).display_mode(LegendDisplayMode.LIST)
    return Timeseries().fill_opacity(10).legend(legend)


def _panel(number: int, plan: PanelPlan) -> Any:
    panel = _stat() if plan.is_number else _curves()
    panel = panel.id(number).title(plan.title).unit(plan.unit).datasource(_SOURCE)
    panel = panel.span(plan.width).height(4 if plan.is_number else 8)
    if plan.text:
        panel = panel.description(plan.text)
    for index, query in enumerate(plan.queries):
        target = Dataquery().expr(query.expression).legend_format(query.legend).ref_id(chr(ord("A") + index))
        panel = panel.with_target(target.instant() if plan.is_number else target.range())
    return panel
