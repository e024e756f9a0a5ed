"""A node's metrics on its address: who reads them, and what a scrape gets when something hangs."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from agent.event_loops import serving
from agent.health_fixtures import Recorded
from agent.waiting import until
from corral.agent.health.probes import SystemProbe, Tool, ToolOutput
from corral.agent.local_http import LocalServer, listen
from corral.agent.metrics.node_exporter import NodeExporter, Sampled, TokenResponder
from corral.agent.metrics.node_token import node_token
from corral.model.job_evidence import NodeSamples
from corral.model.serialization import from_json

PAGE = "corral_gpu_xid 1\n"
HISTORY = '{"gpus":[]}\n'
TOKEN = "0f" * 32


@contextmanager
def metrics(address: str = "127.0.0.2") -> Iterator[int]:
    """A block during which these metrics are served on this address; yields their port."""
    respond = TokenResponder(lambda: PAGE, lambda _: HISTORY, TOKEN)
    with listen(0, address) as listener, serving(LocalServer(respond, listener)):
        yield listener.getsockname()[1]


def fetched(port: int, headers: Mapping[str, str], path: str = "/metrics") -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.2", port, timeout=20)
    connection.request("GET", path, headers=dict(headers))
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_whoever_shows_the_token_reads_the_metrics() -> None:
    with metrics() as port:
        assert fetched(port, {"Authorization": f"Bearer {TOKEN}"}) == (200, PAGE)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="without a token"),
        pytest.param({"Authorization": "Bearer"}, id="an empty token"),
        pytest.param({"Authorization": f"Bearer {TOKEN[:-1]}"}, id="a shorter one"),
        pytest.param({"Authorization": f"Basic {TOKEN}"}, id="another scheme"),
        pytest.param({"Authorization": "Bearer \xe9"}, id="not ASCII"),
    ],
)
@pytest.mark.parametrize("path", ["/metrics", "/", "/history?seconds=600"])
def test_nobody_else_reads_anything(headers: Mapping[str, str], path: str) -> None:
    with metrics() as port:
        assert fetched(port, headers, path) == (401, "metrics of nodes are for the Prometheus of their head\n")


def test_whoever_shows_the_token_reads_the_last_minutes() -> None:
    with metrics() as port:
        assert fetched(port, {"Authorization": f"Bearer {TOKEN}"}, "/history?seconds=600") == (200, HISTORY)


def test_another_path_is_not_found() -> None:
    with metrics() as port:
        assert fetched(port, {"Authorization": f"Bearer {TOKEN}"}, "/")[0] == 404


def test_metrics_are_on_one_address_alone() -> None:
    with metrics() as port, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=20)


def key(root: Path, content: bytes) -> Path:
    (root / "etc/munge").mkdir(parents=True)
    (root / "etc/munge/munge.key").write_bytes(content)
    return root


def test_head_and_nodes_have_the_same_token_and_other_clusters_another(tmp_path: Path) -> None:
    head, node, other = (
        node_token(key(tmp_path / name, content * 128))
        for name, content in (("head", b"a"), ("node", b"a"), ("other", b"b"))
    )
    assert (head == node, head == other, len(head)) == (True, False, 64)


def test_a_machine_without_the_munge_key_has_no_token(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        node_token(tmp_path)


def test_a_scrape_gets_what_was_read_last() -> None:
    exporter = NodeExporter(node="train-1", probe=Recorded("h200-loaded"))
    exporter.parts["gpus"]()
    assert 'corral_gpu_power_watts{gpu="0"} 627.4' in exporter.text().splitlines()


def test_a_node_without_gpus_and_jobs_has_an_empty_page(tmp_path: Path) -> None:
    exporter = NodeExporter(node="cpu-1", probe=SystemProbe(tmp_path, path=str(tmp_path)))
    for part in exporter.parts.values():
        part()
    assert exporter.text() == ""


def test_what_was_not_read_for_two_minutes_is_left_out() -> None:
    now = 0.0
    part = Sampled(read=lambda: (1,), nothing=(), clock=lambda: now)
    part()
    fresh = part.latest
    now = 121.0
    assert (fresh, part.latest) == ((1,), ())


def test_the_readings_of_some_seconds_are_kept() -> None:
    times = iter((0.0, 300.0, 580.0, 610.0, 610.0))
    values = iter("abc")
    part = Sampled(read=lambda: (next(values),), nothing=(), clock=lambda: next(times), kept=20)
    for _ in range(3):
        part()
    assert (part.recent(400), part.recent(30)) == ([(310.0, ("b",)), (30.0, ("c",))], [(30.0, ("c",))])


def test_readings_are_nothing_if_the_newest_is_old() -> None:
    now = 0.0
    part = Sampled(read=lambda: (1,), nothing=(), clock=lambda: now, kept=20)
    part()
    now = 121.0
    assert part.recent(600) == []


def test_a_nodes_last_minutes_are_those_of_its_gpus_and_its_efa() -> None:
    exporter = NodeExporter(node="train-1", probe=Recorded("h200-loaded", "efa-counters"))
    for _ in range(2):
        exporter.parts["gpus"]()
        exporter.parts["efa"]()
    found = from_json(NodeSamples, exporter.history(600))
    assert [(one.gpu, one.samples, one.utilization) for one in found.gpus] == [(0, 2, 1.0)]
    assert found.efa_sent_bytes == 0


class Hangs:
    """A machine whose nvidia-smi hangs; EFA's counters are recorded."""

    def query(self, tool: Tool, level: int) -> ToolOutput | None:
        return ToolOutput(hung=True) if tool is Tool.LOAD else Recorded("efa-counters").query(tool, level)


def test_a_tool_that_hangs_hides_nothing_else() -> None:
    exporter = NodeExporter(node="train-1", probe=Hangs())
    exporter.start()
    until(exporter.text)
    assert [line.split()[0] for line in exporter.text().splitlines() if "sent_bytes" in line and line[0] != "#"] == [
        'corral_efa_sent_bytes_total{device="rdmap144s27"}'
    ]


def test_a_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    NodeExporter(node="train-1", probe=Hangs()).start()
    until(lambda: "metrics, gpus: nvidia-smi did not end within 4 s" in caplog.messages)


def test_counters_are_read_from_sysfs(tmp_path: Path) -> None:
    counters = tmp_path / "sys/class/infiniband/rdmap16s27/ports/1/hw_counters"
    counters.mkdir(parents=True)
    (counters / "tx_bytes").write_text("12\n")
    assert SystemProbe(tmp_path).query(Tool.EFA_COUNTERS, 1) == ToolOutput(text="rdmap16s27 tx_bytes 12")
