"""The image's user and sshd settings in a copy of /etc."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.box.machines.image_setup import write_image_settings

PASSWD = "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/bash\n"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A copy of /etc with a user, a group, and sshd settings of the host."""
    texts = {
        "passwd": PASSWD,
        "group": "root:x:0:\nann:x:1000:\ncrew:x:1001:ann\n",
        "shadow": "root:*:::::::\nann:*:::::::\n",
        "ssh/sshd_config": "Port 2222\nAllowUsers ann\n",
        "ssh/sshd_config.d/own.conf": "ListenAddress 192.0.2.1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_images_user_has_the_first_unused_uid_and_gid(settings: Path) -> None:
    write_image_settings(settings, "admin")
    assert [(settings / name).read_text().splitlines()[-1] for name in ("passwd", "group", "shadow")] == [
        "admin:x:1002:1002::/home/admin:/bin/bash",
        "admin:x:1002:",
        "admin:*:::::::",
    ]


def test_an_existing_user_of_the_same_name_is_unchanged(settings: Path) -> None:
    write_image_settings(settings, "ann")
    assert (settings / "passwd").read_text() == PASSWD


def test_a_system_without_group_and_shadow_files_gets_the_user(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/bash")
    write_image_settings(tmp_path, "admin")
    assert (tmp_path / "passwd").read_text().splitlines()[1:] == ["admin:x:1000:1000::/home/admin:/bin/bash"]


def test_the_hosts_sshd_settings_are_removed(settings: Path) -> None:
    write_image_settings(settings, "admin")
    files = sorted(file for file in settings.rglob("ssh*/**/*") if file.is_file())
    assert [(file.name, "2222" in file.read_text()) for file in files] == [
        ("sshd_config", False),
        ("60-cloudimg-settings.conf", False),
    ]


def test_sshd_reads_what_the_agent_adds(settings: Path) -> None:
    write_image_settings(settings, "admin")
    assert "Include /etc/ssh/sshd_config.d/*.conf" in (settings / "ssh/sshd_config").read_text().splitlines()
