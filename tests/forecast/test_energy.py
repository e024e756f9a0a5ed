"""Power and energy compared with published figures; each test has its assumptions."""

from __future__ import annotations

import pytest

from corral.catalog.accelerators.accelerators import accelerators, find_accelerator
from corral.catalog.accelerators.power import ServerPower, server_of, training_load
from corral.forecast.energy import Site, cluster_power

BARE = Site(pue=1.0)


def server(name: str) -> ServerPower:
    found = server_of(find_accelerator(name))
    assert found is not None
    return found


def test_220000_gpus_of_the_h100_s_class_come_out_near_300_mw() -> None:
    # Colossus 1: "more than 300 megawatts" and "over 220,000 NVIDIA GPUs" (Anthropic, May 2026). Assumed: all in
    # servers like DGX H100 (10.2 kW for eight) at full load, liquid cooling with PUE 1.07, no network.
    assert cluster_power(server("H100-80"), 220_000, Site(pue=1.07)).total_kw == pytest.approx(300_000, rel=0.01)


def test_a_mix_of_150000_h100_50000_h200_and_20000_gb200_comes_out_near_300_mw() -> None:
    # The same, as H100, H200 and GB200 (xAI). Assumed: the mix; 80 % load, 10 % for network and storage, PUE 1.15.
    parts = [(server("H100-80"), 150_000), (server("H200"), 50_000), (server("GB200"), 20_000)]
    site = Site(pue=1.15, load=0.8, network_part=0.1)
    assert sum(cluster_power(*part, site).total_kw for part in parts) == pytest.approx(300_000, rel=0.05)


def test_32_dgx_b200_draw_458_kw() -> None:
    assert cluster_power(server("B200"), 32 * 8, BARE).total_kw == pytest.approx(458, rel=0.002)


def test_dgx_h100_draws_10_2_kw_of_which_gpus_5_6() -> None:
    power = cluster_power(server("H100-80"), 8, BARE)
    assert (power.total_kw, power.accelerators_kw) == (pytest.approx(10.2), pytest.approx(5.6))


def test_site_power_follows_from_pue() -> None:
    power = cluster_power(server("H100-80"), 80, Site(pue=1.15, load=0.5, network_part=0.1))
    assert (power.computers_kw, power.site_kw) == (pytest.approx(56.1), pytest.approx(8.415))


def test_energy_is_power_by_time() -> None:
    assert cluster_power(server("H100-80"), 8, BARE).energy_mwh(1000) == pytest.approx(10.2)


def test_accelerator_without_a_published_server_has_a_marked_estimate() -> None:
    found = server("L40S")
    assert (found.estimated, found.most_w) == (True, pytest.approx(8 * 350 * 1.8))


def test_an_accelerator_without_published_power_has_none() -> None:
    assert server_of(find_accelerator("Trainium2")) is None


def test_every_server_has_power_left_for_its_host() -> None:
    servers = [found for model in accelerators().values() if (found := server_of(model))]
    assert [found.name for found in servers if found.host_w <= 0] == []


def test_load_in_training_is_a_range() -> None:
    assert (training_load().low, training_load().high) == (0.7, 1.0)
