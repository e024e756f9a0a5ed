"""The Lustre client's tuning by machine size."""

from __future__ import annotations

import pytest

from corral.agent.host.lustre_client import MachineSize, module_options, parameters


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
