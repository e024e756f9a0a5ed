"""Measure what watching a cluster costs: a node's page, and a real Prometheus that scrapes many nodes.

The nodes are synthetic: 8 GPUs, 32 EFA interfaces and 8 processes of one job over all of them, whose values change with
each scrape. Prometheus has the files of a head, without Alertmanager. The pages come from another process, whose work
does not count. The exit code is 1 if a node is not scraped, a rule fails, or an alert fires: all nodes are healthy.
"""

import argparse
import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from corral import render
from corral.agent.metrics.efa_counters import EfaCounters
from corral.agent.metrics.gpu_load import GpuLoad
from corral.agent.metrics.job_steps import JobSteps
from corral.agent.metrics.node_metrics import NodeReading, node_families
from corral.agent.metrics.text_format import exposition
from corral.model.job_evidence import RankSteps
from corral.model.monitoring import METRICS_PORT, SCRAPE_S
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.loader import parse_base, parse_cluster
from corral.spec.validation_context import ValidationContext

GPUS, INTERFACES = 8, 32
BYTES_PER_S = 5e9  # of an interface: half of its 100 Gbit/s
STEP_S = 1.5
BASE = {"network": {"cidr": "10.64.0.0/16", "zones": ["use1-az1"]}}
QUEUE = {"name": "train", "instance_type": "p5.48xlarge", "capacity": [{"market": "spot"}]}
MIB = 1 << 20


def main() -> int:
    """Measure, and print a line for each figure."""
    parser = argparse.ArgumentParser(prog="benchmarks/watching.py", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of the job (default: 1000)")
    parser.add_argument("--minutes", type=float, default=11, help="how long Prometheus runs (default: 11)")
    chosen = parser.parse_args()
    show("a node's page", page_cost())
    with (
        tempfile.TemporaryDirectory() as directory,
        served(chosen.nodes) as pages,
        prometheus(Path(directory), chosen.nodes, pages) as own,
    ):
        time.sleep(chosen.minutes * 60)
        found, problems = cost(own, chosen.nodes, chosen.minutes * 60)
    show(f"Prometheus with {chosen.nodes:,} nodes, every {SCRAPE_S} s for {chosen.minutes:g} min", found)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    return 1 if problems else 0


def show(title: str, figures: Mapping[str, str]) -> None:
    """Print figures below a title."""
    print(f"{title}:")
    for name, value in figures.items():
        print(f"  {name:28} {value}")


def page(node: int, now: float) -> str:
    """The metrics of a healthy node of the job."""
    gpus = tuple(
        GpuLoad(
            index=gpu,
            bus_id=f"00000000:{gpu:02x}:00.0",
            utilization=0.97 + (int(now) + gpu) % 3 / 100,
            memory_used=70e9 + int(now) % 97 * 1e6,
            memory_total=85e9,
            temperature_c=55 + (int(now) + gpu) % 9,
            power_w=640 + (int(now) + gpu) % 50,
            clock_hz=1.98e9 - (int(now) + gpu) % 4 * 1.5e7,
            slowed_by=frozenset({"sw_power_cap"} if (int(now) + gpu) % 5 == 0 else ()),
            corrected=0,
            uncorrected=0,
        )
        for gpu in range(GPUS)
    )
    sent = int(now % 1e6 * BYTES_PER_S)
    efa = tuple(
        EfaCounters(device=f"rdmap{one}s0", sent_bytes=sent, received_bytes=sent, dropped=0, resent=int(now) % 1000)
        for one in range(INTERFACES)
    )
    step_s = STEP_S + int(now) % 7 / 500
    ranks = tuple(
        RankSteps(
            rank=node * GPUS + gpu,
            node=f"train-{node + 1}",
            size=8,
            restarts=0,
            steps=40,
            last_at=int(now) - 1,
            step_s=step_s,
            own_s=step_s * 0.8,
            data_share=0.01,
            communication_share=0.15,
            tokens_per_s=8192.0,
            saved_at=int(now) - 600,
            saved_after_s=1800.0,
        )
        for gpu in range(GPUS)
    )
    jobs = (JobSteps(job_id="17", user="ada", ranks=ranks, run=""),)
    return exposition(node_families(NodeReading(now=now, gpus=gpus, efa=efa, jobs=jobs)))


def page_cost() -> Mapping[str, str]:
    """Series, size and CPU time of a node's page."""
    rounds, start = 200, time.process_time()
    for _ in range(rounds):
        text = page(1, time.time())
    ms = (time.process_time() - start) / rounds * 1000
    series = sum(not line.startswith("#") for line in text.splitlines())
    return {"series": f"{series}", "size": f"{len(text) / 1000:.0f} kB", "CPU time": f"{ms:.1f} ms"}


@contextmanager
def served(nodes: int) -> Iterator[int]:
    """The pages of all nodes at `/NUMBER`, and of their head at `/metrics`; yields their port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(port, nodes), daemon=True)
    process.start()
    try:
        until(lambda: read(port, "/metrics"))
        yield port
    finally:
        process.kill()
        process.join()


def serve(port: int, nodes: int) -> None:
    """Serve the pages until the process is killed."""
    # Of the head's metrics only those that rules on nodes read.
    head = "corral_cluster_changing 0\n"
    head += "".join(f'corral_node_gpus_allocated{{node="train-{node + 1}"}} {GPUS}\n' for node in range(nodes))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = self.path.strip("/")
            text = (head if name == "metrics" else page(int(name), time.time())).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """A thousand lines a scrape help nobody."""

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


@contextmanager
def prometheus(directory: Path, nodes: int, port: int) -> Iterator[int]:
    """A real Prometheus with the files of a head below this directory; yields its port."""
    files = rendered()
    for name in ("alerts.yml", "prometheus.yml"):
        text = files[f"monitoring/{name}"].replace("/etc/corral/prometheus", str(directory))
        (directory / name).write_text(text.replace(f"127.0.0.1:{METRICS_PORT}", f"127.0.0.1:{port}"))
    (directory / "node-token").write_text("token")
    targets = [
        {
            "targets": [f"127.0.0.1:{port}"],
            "labels": {"__metrics_path__": f"/{node}", "instance": name, "node": name, "queue": "train"},
        }
        for node, name in ((node, f"train-{node + 1}") for node in range(nodes))
    ]
    (directory / "nodes.json").write_text(json.dumps(targets))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        own = int(listener.getsockname()[1])
    options = (
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address=127.0.0.1:{own}",
    )
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(["/usr/bin/prometheus", *options], stdout=log, stderr=log)
    try:
        until(lambda: read(own, "/-/ready"))
        yield own
    finally:
        process.terminate()
        process.wait(60)


def rendered() -> Mapping[str, str]:
    """The files of a cluster with Prometheus."""
    base = parse_base(BASE, name="big", where="base", context=ValidationContext(region="us-east-1"))
    context = ValidationContext(region="us-east-1", base=base)
    spec = {"base": "big", "queues": [{**QUEUE, "nodes": {"max": 10}}], "monitoring": {"prometheus": True}}
    return render.cluster_files(
        plan_cluster(parse_cluster(spec, name="big", where="cluster", context=context), plan_base(base))
    )


def cost(own: int, nodes: int, seconds: float) -> tuple[Mapping[str, str], list[str]]:
    """What Prometheus needs, by its own metrics; and what should not be."""
    metrics = read(own, "/metrics")
    (scrape,) = values(own, 'avg(scrape_duration_seconds{job="nodes"})')
    (up,) = values(own, 'count(up{job="nodes"} == 1)') or [0.0]
    groups = re.findall(r"^prometheus_rule_group_last_duration_seconds{.*} (\S+)$", metrics, re.MULTILINE)
    rules = json.loads(read(own, "/api/v1/rules"))["data"]["groups"]
    problems = [f"{nodes - up:.0f} nodes are not scraped"] if up != nodes else []
    for group in rules:
        for rule in group["rules"]:
            if rule["health"] == "err":
                problems.append(f"{rule['name']}: {rule['lastError']}")
            if rule.get("state") == "firing":
                problems.append(f"{rule['name']} fires")
    slowest = sorted(
        ((rule["evaluationTime"], rule["name"]) for group in rules for rule in group["rules"]), reverse=True
    )
    return {
        "series": f"{metric(metrics, 'prometheus_tsdb_head_series'):,.0f}",
        "memory": f"{metric(metrics, 'process_resident_memory_bytes') / MIB:,.0f} MiB",
        "cores": f"{metric(metrics, 'process_cpu_seconds_total') / seconds:.2f}",
        "a scrape": f"{scrape * 1000:.0f} ms",
        "all rules": f"{sum(map(float, groups)):.2f} s, every {SCRAPE_S} s",
        "slowest rules": ", ".join(f"{name} {took:.2f} s" for took, name in slowest[:3]),
    }, problems


def metric(text: str, name: str) -> float:
    """The value of a metric without labels."""
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def values(own: int, expression: str) -> list[float]:
    """The values of an expression."""
    found = json.loads(read(own, f"/api/v1/query?query={quote(expression)}"))
    return [float(one["value"][1]) for one in found["data"]["result"]]


def read(port: int, path: str) -> str:
    """The answer of a server on this machine; empty while it does not answer."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
        except OSError:
            return ""
        return answer.read().decode() if answer.status == 200 else ""


def until(is_ready: Callable[[], object]) -> None:
    """Wait up to a minute."""
    limit = time.monotonic() + 60
    while not is_ready():
        if time.monotonic() > limit:
            raise TimeoutError("no answer within a minute")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
