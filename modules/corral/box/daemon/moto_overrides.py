"""Replace moto's services with the box's: each module sets its backend and actions before the first request."""

from __future__ import annotations

import os

from corral.box.account import ACCOUNT
from corral.box.api import budgets, efs, elbv2, fsx, iam, kms, route53, s3, service_quotas, ssm, sts, tagging
from corral.box.daemon import authorized_action
from corral.box.ec2 import actions


def install() -> None:
    """Replace moto's services with the box's."""
    os.environ["MOTO_ACCOUNT_ID"] = ACCOUNT
    actions.install()
    iam.install()
    fsx.install()
    ssm.install()
    efs.install()
    elbv2.install()
    budgets.install()
    s3.install()
    kms.install()
    route53.install()
    sts.install()
    tagging.install()
    service_quotas.install()
    authorized_action.install()
