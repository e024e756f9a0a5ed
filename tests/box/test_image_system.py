"""What a copy of /etc gets of an image's: its user, and the settings of its sshd."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.box.image_system import lay_image_settings

PASSWD = "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/bash\n"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A copy of the /etc of a system with a user, a group of its own, and an sshd that is for somebody else."""
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


def test_the_images_user_has_the_first_number_that_is_no_users_and_no_groups(settings: Path) -> None:
    lay_image_settings(settings, "admin")
    assert [(settings / name).read_text().splitlines()[-1] for name in ("passwd", "group", "shadow")] == [
        "admin:x:1002:1002::/home/admin:/bin/bash",
        "admin:x:1002:",
        "admin:*:::::::",
    ]


def test_a_user_of_this_system_who_has_the_name_stays_as_he_is(settings: Path) -> None:
    lay_image_settings(settings, "ann")
    assert (settings / "passwd").read_text() == PASSWD


def test_a_system_without_groups_and_shadow_has_the_user_too(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/bash")
    lay_image_settings(tmp_path, "admin")
    assert (tmp_path / "passwd").read_text().splitlines()[1:] == ["admin:x:1000:1000::/home/admin:/bin/bash"]


def test_nothing_is_left_of_what_this_systems_sshd_is_told(settings: Path) -> None:
    lay_image_settings(settings, "admin")
    files = sorted(file for file in settings.rglob("ssh*/**/*") if file.is_file())
    assert [(file.name, "2222" in file.read_text()) for file in files] == [
        ("sshd_config", False),
        ("60-cloudimg-settings.conf", False),
    ]


def test_sshd_reads_what_the_agent_adds(settings: Path) -> None:
    lay_image_settings(settings, "admin")
    assert "Include /etc/ssh/sshd_config.d/*.conf" in (settings / "ssh/sshd_config").read_text().splitlines()
