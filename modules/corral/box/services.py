"""Which classes of ours moto uses in place of its own: two assignments a service, made before the first request."""

from __future__ import annotations

import os

from corral.box import budgets, ec2, efs, fsx, iam, quotas, s3, ssm, sts, tagging
from corral.box.control import ACCOUNT


def install() -> None:
    """Puts the services of the box in moto's place."""
    os.environ["MOTO_ACCOUNT_ID"] = ACCOUNT
    ec2.install()
    iam.install()
    fsx.install()
    ssm.install()
    efs.install()
    budgets.install()
    s3.install()
    sts.install()
    tagging.install()
    quotas.install()
