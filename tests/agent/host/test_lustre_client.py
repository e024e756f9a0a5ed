"""The Lustre client's tuning by machine size."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.agent.host.lustre_client import (
    MachineSize,
    default_interface,
    efa_devices,
    module_options,
    parameters,
)


@pytest.mark.parametrize(
    ("vcpus", "options"),
    [(64, ""), (65, "options ptlrpc ptlrpcd_per_cpt_max=32\noptions ksocklnd credits=2560\n")],
)
def test_modules_have_options_on_more_than_64_cpus(vcpus: int, options: str) -> None:
    assert module_options(MachineSize(vcpus=vcpus, memory_mib=1024)) == options


@pytest.mark.parametrize(("gib", "more"), [(64, []), (65, ["ldlm.namespaces.*.lru_max_age=600000"])])
def test_locks_are_kept_for_less_long_with_more_than_64_gib(gib: int, more: list[str]) -> None:
    assert list(parameters(MachineSize(vcpus=8, memory_mib=gib * 1024)))[4:] == more


def test_modifying_requests_are_fewer_than_all_and_set_after_them() -> None:
    assert parameters(MachineSize(vcpus=8, memory_mib=1024))[2:] == (
        "mdc.*.max_rpcs_in_flight=64",
        "mdc.*.max_mod_rpcs_in_flight=50",
    )


def with_devices(root: Path, *names: str, driver: str = "efa") -> Path:
    """Sysfs's class infiniband with these devices of a driver."""
    directory = root / "infiniband"
    (root / driver).mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name / "device").mkdir(parents=True)
        (directory / name / "device/driver").symlink_to(root / driver)
    return directory


P5 = tuple(f"rdmap{number}s0" for number in range(79, 111))  # 32 devices


@pytest.mark.parametrize(
    ("names", "count", "expected"),
    [
        (P5, 8, tuple(f"rdmap{number}s0" for number in (79, 83, 87, 91, 95, 99, 103, 107))),
        (("rdmap36s0", "rdmap42s0", "rdmap9s0", "rdmap100s0"), 2, ("rdmap9s0", "rdmap100s0")),
        (("rdmap36s0",), 2, ("rdmap36s0",)),
        (("rdmap36s0",), 1, ("rdmap36s0",)),
        ((), 8, ()),
    ],
)
def test_efa_devices_are_those_that_awss_script_takes(
    tmp_path: Path, names: tuple[str, ...], count: int, expected: tuple[str, ...]
) -> None:
    assert efa_devices(with_devices(tmp_path, *names), count) == expected


def test_devices_of_other_drivers_are_left_out(tmp_path: Path) -> None:
    with_devices(tmp_path, "mlx5_0", driver="mlx5_core")
    assert efa_devices(with_devices(tmp_path, "rdmap36s0"), 8) == ("rdmap36s0",)


def test_tcp_has_the_interface_of_the_preferred_default_route() -> None:
    routes = '[{"dst":"default","dev":"enp72s0","metric":300},{"dst":"default","dev":"enp71s0","metric":100}]'
    assert default_interface(routes) == "enp71s0"
