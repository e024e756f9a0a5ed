"""Hints of doctor about a system, from reports of real systems."""

from __future__ import annotations

import pytest

from corral.report.doctor_view import Platform, clock_finding, doctor_document, is_at_least, platform_hints

MAC = Platform(system="Darwin", release="24.5.0", machine="arm64", directory="/Users/ann/my-cluster")
UBUNTU = Platform(system="Linux", release="6.8.0-60-generic", directory="/home/ann")
WSL_1 = Platform(system="Linux", release="4.4.0-19041-Microsoft", directory="/home/ann")
WSL_2 = Platform(system="Linux", release="5.15.167.4-microsoft-standard-WSL2", directory="/home/ann")
WSL_2_OLD = Platform(system="Linux", release="4.19.104-microsoft-standard", directory="/home/ann")
WINDOWS = Platform(system="Windows", release="11", machine="AMD64", directory="")


def test_linux_has_no_hints() -> None:
    assert platform_hints(UBUNTU) == ()


def test_macos_hints_name_what_works_and_the_alternatives() -> None:
    assert platform_hints(MAC) == (
        "macOS: plan, render, up, status, down and cleanup on AWS work here; the box, and the real Slurm in it, need"
        " Linux - use a Linux virtual machine (lima, UTM, Docker Desktop)",
        "macOS: brew install pulumi/tap/pulumi awscli; brew install --cask session-manager-plugin (Homebrew in"
        " /opt/homebrew)",
    )


@pytest.mark.parametrize("platform", [WSL_2, WSL_2_OLD])
def test_wsl_2_hint_is_about_its_clock(platform: Platform) -> None:
    assert platform_hints(platform) == (
        "WSL: after the computer slept, the clock may be slow and AWS refuses calls - `sudo hwclock -s` sets it",
    )


def test_wsl_on_a_windows_disk_has_a_hint_to_move() -> None:
    on_disk = Platform(system="Linux", release=WSL_2.release, directory="/mnt/c/work")
    assert platform_hints(on_disk)[1] == (
        "WSL: /mnt/c/work is on a Windows disk, which is slow and has no file modes - work below your home directory"
    )


def test_wsl_1_hint_is_to_use_wsl_2() -> None:
    assert platform_hints(WSL_1) == (
        "WSL 1 has no Linux kernel: the box cannot run - run `wsl --set-version DISTRIBUTION 2`",
    )


def test_windows_hint_is_to_use_wsl() -> None:
    assert platform_hints(WINDOWS) == (
        "Windows: corral runs in WSL 2 - run `wsl --install`, then install corral there",
    )


@pytest.mark.parametrize(
    ("found", "least", "enough"),
    [
        ("2.17.5", "2", True),
        ("1.45.11", "2", False),
        ("1.2.764.0", "1.2.764.0", True),
        ("1.2.694.0", "1.2.764.0", False),
        ("1.3.0.0", "1.2.764.0", True),
    ],
)
def test_versions_are_compared_by_their_numbers(found: str, least: str, enough: bool) -> None:
    assert is_at_least(found, least) is enough


@pytest.mark.parametrize(
    ("synchronised", "found"),
    [
        ("yes", "synchronised with a time server"),
        ("no", None),
        (None, "synchronisation unknown"),
    ],
)
def test_unsynchronised_clock_is_missing(synchronised: str | None, found: str | None) -> None:
    assert clock_finding(synchronised).found == found


def test_document_has_the_hints() -> None:
    assert doctor_document((), platform_hints(WINDOWS))["hints"] == list(platform_hints(WINDOWS))
