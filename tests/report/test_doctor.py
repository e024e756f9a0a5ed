"""What doctor says of a system, from what systems really tell of themselves."""

from __future__ import annotations

import pytest

from corral.report.doctor import Platform, clock_finding, doctor_document, is_at_least, platform_notes

MAC = Platform(system="Darwin", release="24.5.0", machine="arm64", directory="/Users/ann/my-cluster")
UBUNTU = Platform(system="Linux", release="6.8.0-60-generic", directory="/home/ann")
WSL_1 = Platform(system="Linux", release="4.4.0-19041-Microsoft", directory="/home/ann")
WSL_2 = Platform(system="Linux", release="5.15.167.4-microsoft-standard-WSL2", directory="/home/ann")
WSL_2_OLD = Platform(system="Linux", release="4.19.104-microsoft-standard", directory="/home/ann")
WINDOWS = Platform(system="Windows", release="11", machine="AMD64", directory="")


def test_an_ordinary_linux_needs_no_word() -> None:
    assert platform_notes(UBUNTU) == ()


def test_macos_is_told_what_works_and_how_to_get_the_rest() -> None:
    assert platform_notes(MAC) == (
        "macOS: plan, render, up, status, down and sweep on AWS work here; the box, and the real Slurm in it, need"
        " Linux - a virtual machine has it (lima, UTM, Docker Desktop's do)",
        "macOS: brew install pulumi/tap/pulumi awscli; brew install --cask session-manager-plugin (Homebrew in"
        " /opt/homebrew)",
    )


@pytest.mark.parametrize("platform", [WSL_2, WSL_2_OLD])
def test_wsl_2_is_told_of_its_clock(platform: Platform) -> None:
    assert platform_notes(platform) == (
        "WSL: its clock may be late after the computer slept, and AWS then refuses calls: `sudo hwclock -s`",
    )


def test_wsl_on_a_disk_of_windows_is_told_to_leave_it() -> None:
    on_disk = Platform(system="Linux", release=WSL_2.release, directory="/mnt/c/work")
    assert platform_notes(on_disk)[1] == (
        "WSL: /mnt/c/work is on a disk of Windows, which is slow and knows no file modes: work below your home"
    )


def test_wsl_1_is_told_to_become_wsl_2() -> None:
    assert platform_notes(WSL_1) == (
        "WSL 1 has no Linux kernel: the box cannot run - `wsl --set-version DISTRIBUTION 2`",
    )


def test_windows_is_sent_to_wsl() -> None:
    assert platform_notes(WINDOWS) == ("Windows: corral runs in WSL 2: `wsl --install`, then install it there",)


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
    ("told", "found"),
    [
        ("yes", "follows a time server"),
        ("no", None),
        (None, "whether it follows a time server is not known here"),
    ],
)
def test_a_clock_that_follows_nothing_is_missing(told: str | None, found: str | None) -> None:
    assert clock_finding(told).found == found


def test_the_document_has_the_notes() -> None:
    assert doctor_document((), platform_notes(WINDOWS))["notes"] == list(platform_notes(WINDOWS))
