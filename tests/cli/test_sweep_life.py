"""The worst for an environment that is up: its state is lost. A sweep still ends all that costs money."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from calls import corral

from boxes import client, running_box
from corral.box import control

pytestmark = [pytest.mark.box, pytest.mark.pulumi]


def test_sweep_of_an_environment_whose_state_is_lost_leaves_kept_data_alone(tmp_path: Path) -> None:
    box, environment = tmp_path / "box", {**os.environ, "COLUMNS": "160"}
    with running_box(box) as place:
        up = corral("up", "dev", "--yes", "--box-dir", str(box), environment=environment)
        living = corral("sweep", "--box-dir", str(box), environment=environment)
        status = corral("status", "dev", "--box-dir", str(box), environment=environment)
        shutil.rmtree(box / "pulumi/.pulumi/stacks")
        swept = corral("sweep", "--delete", "--yes", "--box-dir", str(box), environment=environment)
        left = control.inventory(box)
        bucket = next(name for name in left["s3/bucket"] if name.startswith("corral-dev-"))
        files = client(place, "s3").list_objects_v2(Bucket=bucket, Prefix="clusters/")["KeyCount"]
    assert (up.returncode, up.stderr.count("Traceback")) == (0, 0)
    assert "Left behind in us-east-1  nothing" in living.stdout
    assert "is running at 10.64.0.23" in status.stdout
    assert swept.returncode == 0, swept.stderr
    assert sorted(left) == ["efs/file-system", "kms/key", "s3/bucket", "s3/object"]
    assert files == 0  # their old versions stay for as long as the bucket keeps any
