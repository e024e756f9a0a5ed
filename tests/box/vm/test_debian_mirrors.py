"""Which mirrors the host has, and what a machine may have of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corral.box.vm.debian_mirrors import (
    DebianMirrors,
    ForbiddenRequestError,
    Mirror,
    choose_mirrors,
    host_mirrors,
    requested_file,
)

MIRRORS = DebianMirrors(
    archive=Mirror(url="https://mirror.example/linux/debian", proxy="http://proxy.example:3128"),
    security=Mirror(url="http://mirror.example:8080/updates"),
)
ARCHIVE = "https://mirror.example/linux/debian"
DEBIAN = Mirror(url="http://deb.debian.org/debian")
SECURITY = Mirror(url="http://deb.debian.org/debian-security")


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("http://deb.debian.org/debian/dists/trixie/InRelease", f"{ARCHIVE}/dists/trixie/InRelease"),
        ("http://DEB.debian.org:80/debian/dists/trixie/InRelease", f"{ARCHIVE}/dists/trixie/InRelease"),
        ("http://deb.debian.org/debian-security/dists/a", "http://mirror.example:8080/updates/dists/a"),
        ("http://security.debian.org/debian-security/dists/a", "http://mirror.example:8080/updates/dists/a"),
        ("http://mirror.example/linux/debian/dists/a", f"{ARCHIVE}/dists/a"),
        ("http://mirror.example:8080/updates/dists/a", "http://mirror.example:8080/updates/dists/a"),
        ("http://deb.debian.org/debian/pool/g%2b%2b_1%7e2%3a3.deb", f"{ARCHIVE}/pool/g%2B%2B_1~2%3A3.deb"),
        ("http://deb.debian.org/debian/pool/g++_1~2:3.deb", f"{ARCHIVE}/pool/g%2B%2B_1~2%3A3.deb"),
    ],
)
def test_url_of_the_archives_is_that_of_the_host_mirror(target: str, url: str) -> None:
    assert requested_file(MIRRORS, "GET", target).url == url


@pytest.mark.parametrize(
    "target",
    [
        "http://other.example/debian/dists/a",
        "http://deb.debian.org.other.example/debian/dists/a",
        "http://user:password@deb.debian.org/debian/dists/a",
        "http://deb.debian.org@other.example/debian/dists/a",
        "http://deb.debian.org:81/debian/dists/a",
        "https://deb.debian.org/debian/dists/a",
        "http://deb.debian.org/other/dists/a",
        "http://deb.debian.org/debian",
        "http://deb.debian.org/debian/",
        "http://deb.debian.org/debian-other/a",
        "http://deb.debian.org/debian/../other/a",
        "http://deb.debian.org/debian/dists/../../other/a",
        "http://deb.debian.org/debian/%2e%2e/other/a",
        "http://deb.debian.org/debian/..%2fother/a",
        "http://deb.debian.org/debian/%252e%252e/other/a",
        "http://deb.debian.org/debian//other.example/a",
        "http://deb.debian.org/debian/a?b=c",
        "http://deb.debian.org/debian/a#b",
        "http://deb.debian.org/debian\\@other.example/a",
        "http://deb.debian.org/debian/a\t",
        "http://deb.debian.org/debian/a\n",
        "http://deb.debian.org/debian/\xe9",
        "http://deb.debian.org/debian/\u212a",  # the Kelvin sign, which is a k in lower case
        "http://mirror.example/other/a",
        "/debian/dists/a",
        "deb.debian.org:80",
        "file:///etc/passwd",
        "",
    ],
)
def test_other_urls_are_refused(target: str) -> None:
    with pytest.raises(ForbiddenRequestError, match=r"http://deb\.debian\.org/debian-security"):
        requested_file(MIRRORS, "GET", target)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "CONNECT"])
def test_other_methods_are_refused(method: str) -> None:
    with pytest.raises(ForbiddenRequestError, match="only GET and HEAD"):
        requested_file(MIRRORS, method, "http://deb.debian.org/debian/dists/a")


@pytest.mark.parametrize(
    ("path", "cached"),
    [
        ("pool/main/h/hello/hello_2.10-5_amd64.deb", True),
        ("dists/trixie/main/binary-amd64/by-hash/SHA256/00ff", True),
        ("dists/trixie/InRelease", False),
        ("dists/trixie/main/binary-amd64/Packages.xz", False),
        ("pool/main/h/hello/hello_2.10-5.dsc", False),
    ],
)
def test_files_that_never_change_are_cached(path: str, cached: bool) -> None:
    file = requested_file(MIRRORS, "GET", f"http://deb.debian.org/debian/{path}")
    assert bool(file.cached_as) is cached


def test_one_file_has_one_cached_copy_however_its_url_is_written() -> None:
    targets = ("http://deb.debian.org/debian/a%2b.deb", "http://mirror.example/linux/debian/a+.deb")
    assert len({requested_file(MIRRORS, "GET", target).cached_as for target in targets}) == 1


def test_file_has_the_proxy_of_its_mirror() -> None:
    file = requested_file(MIRRORS, "GET", "http://deb.debian.org/debian/dists/a")
    assert file.proxy == "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("targets", "environment", "mirrors"),
    [
        pytest.param((), {}, (DEBIAN, SECURITY), id="no apt"),
        pytest.param(
            (
                "Debian|Debian|file:/srv/debian/",
                "Debian|Debian|https://mirror.example/debian/",
                "Debian|Debian-Security|http://mirror.example/updates/",
            ),
            {},
            (Mirror(url="https://mirror.example/debian"), Mirror(url="http://mirror.example/updates")),
            id="sources with lists",
        ),
        pytest.param(
            ("||http://mirror.example/other/", "||http://mirror.example/debian/"),
            {},
            (Mirror(url="http://mirror.example/debian"), SECURITY),
            id="sources without lists",
        ),
        pytest.param(("Ubuntu|Ubuntu|http://mirror.example/ubuntu/",), {}, (DEBIAN, SECURITY), id="not Debian"),
        pytest.param(
            ("Debian|Debian|http://mirror.example/debian/",),
            {"CORRAL_DEBIAN_MIRROR": "https://named.example/debian/"},
            (Mirror(url="https://named.example/debian"), SECURITY),
            id="named",
        ),
    ],
)
def test_mirrors_are_those_of_apt(
    targets: tuple[str, ...], environment: dict[str, str], mirrors: tuple[Mirror, Mirror]
) -> None:
    assert choose_mirrors(targets, (), environment) == DebianMirrors(archive=mirrors[0], security=mirrors[1])


@pytest.mark.parametrize(
    ("mirror", "settings", "environment", "proxy"),
    [
        ("http://m.example/debian", ("Acquire::http::Proxy|http://p:1",), {"http_proxy": "http://q:2"}, "http://p:1"),
        ("http://m.example/debian", (), {"http_proxy": "http://q:2"}, "http://q:2"),
        ("http://m.example/debian", (), {"https_proxy": "http://q:2"}, None),
        ("https://m.example/debian", (), {"https_proxy": "http://q:2"}, "http://q:2"),
        ("https://m.example/debian", ("Acquire::http::Proxy|http://p:1",), {}, "http://p:1"),
        (
            "https://m.example/debian",
            ("Acquire::http::Proxy|http://p:1", "Acquire::https::Proxy|http://s:3"),
            {},
            "http://s:3",
        ),
        ("http://m.example/debian", ("Acquire::https::Proxy|http://s:3",), {}, None),
        (
            "http://m.example/debian",
            ("Acquire::http::Proxy|http://p:1", "Acquire::http::Proxy::m.example|DIRECT"),
            {"http_proxy": "http://q:2"},
            None,
        ),
        ("http://m.example/debian", (), {"http_proxy": "http://q:2", "no_proxy": "a.example, .example"}, None),
        ("http://m.example/debian", (), {"http_proxy": "http://q:2", "no_proxy": "xample"}, "http://q:2"),
    ],
)
def test_proxy_is_that_of_apt(
    mirror: str, settings: tuple[str, ...], environment: dict[str, str], proxy: str | None
) -> None:
    found = choose_mirrors((), settings, {"CORRAL_DEBIAN_MIRROR": mirror, **environment})
    assert found.archive == Mirror(url=mirror, proxy=proxy)


def test_host_mirrors_are_read_from_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources, settings = tmp_path / "sources.list", tmp_path / "apt.conf"
    sources.write_text("deb http://mirror.example/debian trixie main\n")
    settings.write_text(
        f'Dir::Etc::sourcelist "{sources}"; Dir::Etc::sourceparts "-"; Acquire::http::Proxy "http://proxy.example:1";'
    )
    monkeypatch.setenv("APT_CONFIG", str(settings))
    monkeypatch.delenv("CORRAL_DEBIAN_MIRROR", raising=False)
    assert host_mirrors().archive == Mirror(url="http://mirror.example/debian", proxy="http://proxy.example:1")


def test_host_without_apt_uses_the_mirrors_of_debian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"PATH": "/nonexistent"})
    assert host_mirrors() == DebianMirrors(archive=DEBIAN, security=SECURITY)
