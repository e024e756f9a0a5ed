"""The findings of the health checks for recorded outputs (see recorded/README.md)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from agent.health_fixtures import H100, ONE_H100, RECORDED, TRN1, findings_of, found
from corral.agent.health.evaluate import Expected, evaluate, expected_of
from corral.agent.health.gpus import QUERY, ROWS_QUERY, Gpu, RemappedRows, read_gpus, read_remapped_rows
from corral.agent.health.probes import Tool, ToolOutput
from corral.agent.health.xids import read_xids, xid_meanings
from corral.model.cluster import ClusterPlan
from environments import PROJECT
from render.plans import cpu, dev, train


def test_a_healthy_machine_has_no_findings() -> None:
    assert found("healthy") == []


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        ("gpu-missing", "7 of 8 GPUs answer: replace the machine"),
        (
            "gpu-lost",
            "nvidia-smi printed: Unable to determine the device handle for GPU0000:A8:00.0: Unknown Error:"
            " replace the machine",
        ),
        (
            "uncorrected-ecc",
            "GPU 3: 2 uncorrected memory errors since the driver was loaded: replace the machine",
        ),
        ("row-remap-pending", "GPU 2: a bad row of its memory waits for a reset: replace the machine"),
        ("row-remap-failed", "GPU 6: a bad row of its memory could not be remapped: replace the machine"),
        ("nvlink-down", "GPU 4: NVLink 7, 8 is down: replace the machine"),
        ("efa-missing", "31 of 32 EFA interfaces are up: replace the machine"),
        ("efa-down", "31 of 32 EFA interfaces are up: replace the machine"),
        ("lustre-missing", "/scratch is not mounted: replace the machine, or check the file system"),
        ("clock-off", "the clock is 73 s fast: replace the machine"),
        ("slowed-by-heat", "GPU 1: slowed down by heat at 88 C: replace the machine"),
        ("smi-hangs", "nvidia-smi did not answer in 4 s: replace the machine"),
        ("disk-missing", "7 of 8 NVMe disks exist: replace the machine"),
        (
            "dcgm-memory",
            "GPU 6: DCGM's test GPU Memory failed (GPU 6 had uncorrectable memory errors and row remapping failed."
            " Run a field diagnostic on the GPU.): replace the machine",
        ),
        ("dcgm-4-memory", "GPU 2: DCGM's test memory failed (Detected a memory error in GPU 2.): replace the machine"),
    ],
)
def test_a_fault_is_found_and_named_with_what_to_do(machine: str, text: str) -> None:
    assert found(machine) == [f"sick: {text}"]


def test_a_gpu_off_the_bus_is_named_by_its_number_in_the_kernels_log() -> None:
    assert found("xid-79") == [
        "sick: GPU 5: GPU has fallen off the bus (Xid 79): replace the machine",
        "sick: GPU 5: GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required) (Xid 154):"
        " replace the machine",
    ]


def test_the_fault_of_a_program_is_not_the_machines() -> None:
    assert found("xid-of-the-program") == []


def test_faults_of_programs_on_a_real_gpu_are_not_the_machines() -> None:
    assert found("h100-program-faults", ONE_H100) == []


def test_faults_of_programs_on_a_real_gpu_are_read() -> None:
    log = (RECORDED / "h100-program-faults/kernel.log").read_text()
    assert [(one.bus_id, one.number) for one in read_xids(log)] == [("00:06", 31), ("00:06", 13), ("00:06", 43)]


@pytest.mark.parametrize("machine", ["h100", "h100-loaded"])
def test_a_real_gpu_is_healthy_idle_and_at_its_power_limit(machine: str) -> None:
    assert found(machine, ONE_H100) == []


@pytest.mark.parametrize(("machine", "temperature_c"), [("h100", 40), ("h100-loaded", 66)])
def test_a_real_gpu_is_read(machine: str, temperature_c: int) -> None:
    assert read_gpus((RECORDED / machine / "nvidia-smi.csv").read_text()) == (
        Gpu(index=0, bus_id="00:06", uncorrected=0, slowed_by_heat=False, temperature_c=temperature_c),
    )


def test_remapped_rows_of_a_real_gpu_are_read() -> None:
    text = (RECORDED / "h100/remapped-rows.csv").read_text()
    assert read_remapped_rows(text) == (RemappedRows(bus_id="00:06", pending=False, failed=False),)


def test_a_machine_whose_driver_has_no_gpu_is_sick() -> None:
    assert found("h100-no-gpu", ONE_H100) == ["sick: nvidia-smi printed: No devices were found: replace the machine"]


@pytest.mark.parametrize(
    ("file", "query"), [("help-query-gpu.txt", QUERY), ("help-query-remapped-rows.txt", ROWS_QUERY)]
)
def test_a_real_nvidia_smi_knows_every_name_that_is_queried(file: str, query: tuple[str, ...]) -> None:
    known = re.findall(r'"([a-z._]+)"', (RECORDED / "h100" / file).read_text())
    assert [name for name in query if name not in known] == []


def test_an_older_drivers_name_of_a_column_is_read_as_the_newer_one() -> None:
    newer = (RECORDED / "slowed-by-heat/nvidia-smi.csv").read_text()
    older = newer.replace("clocks_event_reasons", "clocks_throttle_reasons")
    assert [[gpu.index for gpu in read_gpus(text) if gpu.slowed_by_heat] for text in (newer, older)] == [[1], [1]]


@pytest.mark.parametrize(
    "text", ["", "No devices were found\n", "0, 00000000:53:00.0, 0, Not Active, 28\n", "index, pci.bus_id\n0, 1\n"]
)
def test_a_text_without_the_heading_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"^no heading of 5 columns in "):
        read_gpus(text)


def test_a_row_that_was_remapped_is_a_warning() -> None:
    assert found("xid-63") == ["warning: GPU 2: a row of the memory is remapped (Xid 63)"]


def test_gpus_without_ecc_have_no_memory_errors() -> None:
    assert found("ecc-off") == []


def test_a_clock_that_is_not_synchronised_yet_is_a_warning() -> None:
    assert found("clock-unsynchronised") == ["warning: the clock is not synchronised yet"]


def test_neuron_devices_are_counted() -> None:
    both = [found("healthy-trn1", TRN1), found("neuron-missing", TRN1)]
    assert both == [[], ["sick: 15 of 16 Neuron devices answer: replace the machine"]]


def test_a_machine_without_the_drivers_tool_is_sick() -> None:
    (one,) = evaluate(Expected(gpus=8), {Tool.GPUS: ToolOutput(absent=True)})
    assert (one.is_sick, one.message, one.fix) == (True, "nvidia-smi is not installed", "use an image with the driver")


def test_a_machine_without_dcgm_is_a_warning() -> None:
    (one,) = evaluate(Expected(gpus=8), {Tool.DIAGNOSTIC: ToolOutput(absent=True)})
    assert (one.is_sick, one.message, one.fix) == (False, "dcgmi diag is not installed: its tests are skipped", "")


def test_a_finding_states_what_is_wrong_apart_from_what_to_do() -> None:
    (one,) = findings_of("lustre-missing")
    assert (one.message, one.fix) == ("/scratch is not mounted", "replace the machine, or check the file system")


@pytest.mark.parametrize("machine", sorted(one.name for one in RECORDED.iterdir() if one.is_dir()))
def test_no_message_of_a_recorded_machine_contains_its_fix(machine: str) -> None:
    messages = [one.message for one in (*findings_of(machine), *findings_of(machine, TRN1))]
    assert [text for text in messages if " - " in text or "replace" in text] == []


@pytest.mark.parametrize("output", [ToolOutput(absent=True), ToolOutput(hung=True, after_s=4), ToolOutput(text="?")])
def test_no_message_about_a_tool_contains_its_fix(output: ToolOutput) -> None:
    messages = [one.message for one in evaluate(H100, dict.fromkeys(Tool, output))]
    assert [text for text in messages if " - " in text or "replace" in text or "use an image" in text] == []


def test_sick_findings_come_before_warnings() -> None:
    answers = {Tool.MOUNTS: ToolOutput(text=""), Tool.DIAGNOSTIC: ToolOutput(absent=True)}
    assert [one.severity for one in evaluate(Expected(gpus=8, mounts=("/home",)), answers)] == ["sick", "warning"]


def test_pcie_gpus_without_nvlinks_are_healthy() -> None:
    text = "GPU 0: NVIDIA L40S (UUID: GPU-1)\n\t Link 0: <inactive>\n"
    assert evaluate(H100, {Tool.LINKS: ToolOutput(text=text)}) == ()


def test_the_plan_defines_the_hardware_of_a_node() -> None:
    assert expected_of(dev(train()), "train") == Expected(
        gpus=8, neuron=0, efa=4, disks=8, mounts=("/home", "/scratch")
    )


LNET = """net:
    - net type: lo
      local NI(s):
        - nid: 0@lo
          status: up
    - net type: tcp
      local NI(s):
        - nid: 10.1.1.61@tcp
          status: up
          interfaces:
              0: enp71s0
    - net type: efa
      local NI(s):
        - nid: 1.61.92.0@efa
          status: up
          interfaces:
              0: rdmap79s0
        - nid: 2.61.92.0@efa
          status: down
          interfaces:
              0: rdmap83s0
"""


@pytest.mark.parametrize(
    ("text", "wanted", "findings"),
    [
        (LNET, 1, []),
        (LNET, 2, ["Lustre uses 1 of 2 EFA interfaces"]),
        (LNET.partition("    - net type: efa")[0], 8, ["Lustre uses 0 of 8 EFA interfaces; it uses TCP"]),
        ("show:\n    - net:\n", 8, ["lnetctl printed: show:"]),
    ],
)
def test_lustre_without_efa_is_a_warning(text: str, wanted: int, findings: list[str]) -> None:
    found = evaluate(Expected(lustre_efa=wanted), {Tool.LNET: ToolOutput(text=text)})
    assert [(one.is_sick, one.message) for one in found] == [(False, message) for message in findings]


def with_efa(zone_id: str) -> ClusterPlan:
    """A cluster whose Lustre file system has EFA, in this zone."""
    plan = dev(replace(train(), lustre_efa=2))
    return replace(plan, lustre=tuple(replace(system, efa=True, zone_id=zone_id) for system in plan.lustre))


@pytest.mark.parametrize(("zone_id", "wanted"), [("use1-az1", 2), ("use1-az2", 0), ("", 0)])
def test_efa_for_lustre_is_expected_in_the_zone_of_its_file_system(zone_id: str, wanted: int) -> None:
    assert expected_of(with_efa("use1-az1"), "train", zone_id).lustre_efa == wanted


def test_a_queue_without_devices_has_mounts_a_scope_and_a_clock() -> None:
    assert expected_of(dev(train(), cpu()), "cpu").tools == {Tool.MOUNTS, Tool.SCOPE, Tool.CLOCK}


def test_the_page_has_the_table_of_xids() -> None:
    text = (PROJECT / "docs/health.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \| (\w+) \| (replaces|logs)", text, re.MULTILINE)
    assert rows == [
        (str(one.number), one.name, one.bucket, "replaces" if one.replaces else "logs")
        for one in xid_meanings().values()
    ]
