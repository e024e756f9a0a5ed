"""The proxy for packages, with Debian's own apt as its client and a mirror on this machine."""

from __future__ import annotations

import http.client
import os
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from package_mirrors import (
    CALLER,
    LARGE,
    LARGE_BYTES,
    SMALL,
    MachineApt,
    TestMirror,
    build_archive,
    relay,
    running_mirror,
    running_proxy,
    trusted_context,
)

from corral.box.vm import package_cache
from corral.box.vm.debian_mirrors import Mirror
from corral.box.vpc.vpc_state import DAEMON_SOCKET

ARCHIVE = "http://deb.debian.org/debian"
SMALL_DEB, LARGE_DEB = (f"{name}_1.0~1_amd64.deb" for name in (SMALL, LARGE))
LARGE_URL = f"{ARCHIVE}/pool/main/{LARGE_DEB}"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an archive of two packages, in debian/."""
    root = tmp_path_factory.mktemp("archive")
    build_archive(root / "debian")
    return root


@pytest.fixture
def mirror(archive: Path) -> Iterator[TestMirror]:
    with running_mirror(archive) as running:
        yield running


@pytest.fixture
def cache(mirror: TestMirror, tmp_path: Path) -> Iterator[Path]:
    with running_proxy(tmp_path, Mirror(url=mirror.url)) as directory:
        yield directory


@pytest.fixture
def proxy(cache: Path, tmp_path: Path) -> Iterator[str]:
    with relay(tmp_path) as url:
        yield url


@pytest.fixture
def apt(proxy: str, tmp_path: Path) -> MachineApt:
    return MachineApt(root=tmp_path / "apt", proxy=proxy)


def cached(cache: Path) -> list[int]:
    """The sizes of the files in the cache, once no download is left."""
    limit = time.monotonic() + 10
    while list(cache.glob("*.part")) and time.monotonic() < limit:
        time.sleep(0.01)
    return sorted(path.stat().st_size for path in cache.glob("*"))


def get(proxy: str, target: str, method: str = "GET", **headers: str) -> tuple[int, str, bytes]:
    """Status, reason and body of a request."""
    connection = http.client.HTTPConnection(urlsplit(proxy).netloc, timeout=20)
    connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    try:
        return answer.status, answer.reason, answer.read()
    finally:
        connection.close()


def test_apt_updates_and_downloads(apt: MachineApt, mirror: TestMirror) -> None:
    update = apt.get("update")
    download = apt.get("download", SMALL, LARGE)
    assert (update.returncode, download.returncode) == (0, 0), update.stdout + download.stdout
    assert apt.package(LARGE).read_bytes() == (mirror.root / "debian/pool/main" / LARGE_DEB).read_bytes()


def test_second_download_is_from_the_cache(apt: MachineApt, mirror: TestMirror) -> None:
    apt.get("update")
    apt.get("download", LARGE)
    apt.package(LARGE).unlink()
    mirror.stop()
    download = apt.get("download", LARGE)
    assert (download.returncode, apt.package(LARGE).is_file()) == (0, True), download.stdout


def test_index_by_hash_is_from_the_cache(apt: MachineApt, proxy: str, mirror: TestMirror, tmp_path: Path) -> None:
    apt.get("update")
    other = MachineApt(root=tmp_path / "other", proxy=proxy)
    update = other.get("update")
    assert update.returncode == 0, update.stdout
    assert [count for name, count in mirror.requests.items() if len(name) == 64] == [1]


def test_unchanged_release_is_not_read_again(apt: MachineApt) -> None:
    apt.get("update")
    assert "Hit:" in apt.get("update").stdout


def test_apt_prints_why_another_host_is_refused(apt: MachineApt, mirror: TestMirror, tmp_path: Path) -> None:
    url = mirror.url.removesuffix("/debian") + "/other"
    other = MachineApt(root=apt.root, proxy=apt.proxy, sources=f"deb [trusted=yes] {url} trixie main\n")
    update = other.get("update")
    assert update.returncode != 0
    assert "is no mirror of this host: use http://deb.debian.org/debian or" in update.stdout
    assert not mirror.requests


@pytest.mark.parametrize("cut", [0, 10_000, 1_000_000, 2_000_000])
def test_download_that_is_cut_is_not_cached(apt: MachineApt, mirror: TestMirror, cache: Path, cut: int) -> None:
    apt.get("update")
    before = cached(cache)
    mirror.cuts[LARGE_DEB] = cut
    download = apt.get("download", LARGE)
    assert (download.returncode, cached(cache)) == (100, before), download.stdout


@pytest.mark.parametrize("cut", [0, 10_000, 1_000_000, 2_000_000])
def test_apt_repeats_a_download_that_was_cut(apt: MachineApt, mirror: TestMirror, cut: int) -> None:
    apt.get("update")
    mirror.cuts[LARGE_DEB] = cut
    download = apt.get("download", LARGE, retries=1)
    assert (download.returncode, apt.package(LARGE).is_file()) == (0, True), download.stdout
    assert mirror.requests[LARGE_DEB] == 2


def test_download_that_is_cut_early_is_an_error_with_a_text(proxy: str, mirror: TestMirror) -> None:
    mirror.cuts[LARGE_DEB] = 10_000
    status, reason, _ = get(proxy, LARGE_URL)
    assert (status, "could not fetch" in reason) == (502, True)


def test_index_that_is_cut_is_an_error_with_a_text(proxy: str, mirror: TestMirror) -> None:
    mirror.cuts["Release"] = 10
    status, reason, _ = get(proxy, f"{ARCHIVE}/dists/trixie/Release")
    assert (status, "could not fetch" in reason) == (502, True)


def test_machines_that_request_a_package_at_once_share_its_download(proxy: str, mirror: TestMirror) -> None:
    mirror.proceed.clear()
    connections = [http.client.HTTPConnection(urlsplit(proxy).netloc, timeout=20) for _ in range(3)]
    for connection in connections:
        connection.request("GET", LARGE_URL)
    answers = [connection.getresponse() for connection in connections]
    starts = [answer.read(1000) for answer in answers]  # each has a part of the body before the mirror has sent it all
    mirror.proceed.set()
    bodies = {start + answer.read() for start, answer in zip(starts, answers, strict=True)}
    for connection in connections:
        connection.close()
    assert bodies == {(mirror.root / "debian/pool/main" / LARGE_DEB).read_bytes()}
    assert mirror.requests[LARGE_DEB] == 1


def test_download_of_a_machine_that_ends_is_completed(proxy: str, mirror: TestMirror, cache: Path) -> None:
    mirror.proceed.clear()
    connection = http.client.HTTPConnection(urlsplit(proxy).netloc, timeout=20)
    connection.request("GET", LARGE_URL)
    connection.getresponse().read(1000)
    connection.close()
    mirror.proceed.set()
    assert len(get(proxy, LARGE_URL)[2]) > LARGE_BYTES
    assert (mirror.requests[LARGE_DEB], len(cached(cache))) == (1, 1)


def test_whole_package_is_sent_for_a_range(proxy: str, mirror: TestMirror) -> None:
    status, _, body = get(proxy, LARGE_URL, Range="bytes=1000-", If_Range="Sat, 09 Aug 2025 09:00:00 GMT")
    assert (status, len(body) > LARGE_BYTES) == (200, True)


def test_package_is_served_but_not_cached_on_a_full_disk(apt: MachineApt, mirror: TestMirror, cache: Path) -> None:
    apt.get("update")
    before = cached(cache)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGE_BYTES // 2, limits[1]))
    try:
        status, _, body = get(apt.proxy, LARGE_URL)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (status, len(body) > LARGE_BYTES, cached(cache)) == (200, True, before)


def test_old_part_of_a_killed_process_is_deleted(proxy: str, cache: Path) -> None:
    cache.mkdir()
    (cache / "new.part").write_bytes(b"")
    (cache / "old.part").write_bytes(b"")
    os.utime(cache / "old.part", (0, 0))
    get(proxy, f"{ARCHIVE}/pool/main/{SMALL_DEB}")
    assert [(cache / name).exists() for name in ("new.part", "old.part")] == [True, False]


def test_full_cache_drops_the_files_that_were_used_longest_ago(
    proxy: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get(proxy, LARGE_URL)
    cached(cache)
    (large,) = cache.iterdir()
    size = large.stat().st_size
    monkeypatch.setattr(package_cache, "LIMIT", 2 * size)
    for name, used in (("unused", 1), ("used", 2)):
        (cache / name).write_bytes(bytes(size // 2))
        os.utime(cache / name, (used, used))
    os.utime(large, (0, 0))
    get(proxy, LARGE_URL)  # from now on it is the newest
    get(proxy, f"{ARCHIVE}/pool/main/{SMALL_DEB}")
    assert [(cache / name).exists() for name in (large.name, "used", "unused")] == [True, True, False]


def test_mirror_that_is_away_is_an_error_at_once(proxy: str, mirror: TestMirror) -> None:
    mirror.stop()
    index, package = get(proxy, f"{ARCHIVE}/dists/trixie/Release"), get(proxy, LARGE_URL)
    assert (index[0], package[0]) == (502, 502)
    assert index[1] == f"the host cannot connect to its mirror for {mirror.url}/dists/trixie/Release"


def test_file_that_the_mirror_lacks_is_not_found(proxy: str, cache: Path) -> None:
    assert (get(proxy, f"{ARCHIVE}/pool/main/other.deb")[0], get(proxy, f"{ARCHIVE}/dists/a")[0]) == (404, 404)
    assert cached(cache) == []


def test_redirect_is_not_followed(proxy: str, mirror: TestMirror) -> None:
    mirror.redirects = {"Release": f"{mirror.url}/dists/trixie/other", SMALL_DEB: f"{mirror.url}/other"}
    index, package = get(proxy, f"{ARCHIVE}/dists/trixie/Release"), get(proxy, f"{ARCHIVE}/pool/main/{SMALL_DEB}")
    assert (index[0], package[0], mirror.requests["other"]) == (502, 502, 0)
    assert "set CORRAL_DEBIAN_MIRROR to where the files are" in index[1]


@pytest.mark.parametrize("method", ["CONNECT", "POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(proxy: str, method: str) -> None:
    assert get(proxy, "deb.debian.org:80" if method == "CONNECT" else LARGE_URL, method)[0] == 403


def test_connection_without_the_address_of_its_machine_is_closed(cache: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(tmp_path / DAEMON_SOCKET))
        connection.sendall(f"GET {LARGE_URL} HTTP/1.1\r\n\r\n".encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1000) == b""


def test_mirror_fails_for_one_machine(mirror: TestMirror, tmp_path: Path) -> None:
    def refuses(address: str, url: str) -> bool:
        return address == CALLER and url.startswith(mirror.url)

    with (
        running_proxy(tmp_path, Mirror(url=mirror.url), refuses=refuses),
        relay(tmp_path) as failing,
        relay(tmp_path, "10.64.1.8") as other,
    ):
        assert (get(failing, LARGE_URL)[0], get(other, LARGE_URL)[0]) == (503, 200)


def test_mirror_is_reached_through_the_proxy_of_the_host(mirror: TestMirror, tmp_path: Path) -> None:
    outside = Mirror(url="http://mirror.invalid/debian", proxy=mirror.url.removesuffix("/debian"))
    with running_proxy(tmp_path, outside), relay(tmp_path) as proxy:
        apt = MachineApt(root=tmp_path / "apt", proxy=proxy)
        update = apt.get("update")
    assert (update.returncode, mirror.requests["Release"]) == (0, 1), update.stdout


def test_mirror_with_https(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, authority = trusted_context(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with (
        running_mirror(archive, context) as mirror,
        running_proxy(tmp_path, Mirror(url=mirror.url)),
        relay(tmp_path) as proxy,
    ):
        apt = MachineApt(root=tmp_path / "apt", proxy=proxy)
        apt.get("update")
        download = apt.get("download", LARGE)
    assert download.returncode == 0, download.stdout
