"""The errors in which calls of `stolen_calls` end for who may make them, each after the call has been allowed.

Everything else succeeds. A call that ends in another error is badly asked, and nothing is known about its refusals.
"""

from __future__ import annotations

from dataclasses import dataclass

from stolen_account import NEAR, OWN, STATES, THEIRS
from stolen_call import APS, EC2, EFS, FSX, IAM, LOGS, SSM

from corral.box.account import REGION

NOT_IN_BOX = "not in the box"  # AWS has the action, and the box judges it and does no more
BOTH = (NEAR, THEIRS)


@dataclass(frozen=True, slots=True)
class LateError:
    """An error of a call on these owners' resources. `reason`: why it comes after the decision who may."""

    code: str
    action: str
    resource: str
    owners: tuple[str, ...]
    reason: str


_INSTANCE, _HOME, _LUSTRE = f"{EC2}:instance/{{head}}", f"{EFS}/{{home}}", f"{FSX}/{{lustre}}"
_SHELL_SCRIPT = f"arn:aws:ssm:{REGION}::document/AWS-RunShellScript"
_LEFT_OUT = "the box judges the action and does not do it"
_NO_MACHINES = "the box's instances are records here, and no agent of Systems Manager answers"
_NO_DOCUMENTS = "the box has none of AWS's documents; who may send a command is decided before the document is read"
_IN_USE = "what is in use is not deleted, which depends on the resource's state"
_ONLY_NEAR, _ONLY_THEIRS = (NEAR,), (THEIRS,)
LATE_ERRORS = (
    LateError(NOT_IN_BOX, "ec2:SendDiagnosticInterrupt", _INSTANCE, BOTH, _LEFT_OUT),
    LateError(NOT_IN_BOX, "ec2:CreateReplaceRootVolumeTask", _INSTANCE, BOTH, _LEFT_OUT),
    LateError(NOT_IN_BOX, "ec2:EnableSerialConsoleAccess", "*", _ONLY_NEAR, _LEFT_OUT),
    LateError(NOT_IN_BOX, "fsx:CreateDataRepositoryTask", _LUSTRE, BOTH, _LEFT_OUT),
    LateError(NOT_IN_BOX, "elasticfilesystem:DeleteFileSystemPolicy", _HOME, BOTH, _LEFT_OUT),
    LateError(NOT_IN_BOX, "aps:RemoteWrite", f"{APS}/{{workspace}}", (OWN, *BOTH), _LEFT_OUT),
    LateError(NOT_IN_BOX, "aps:QueryMetrics", f"{APS}/{{workspace}}", (OWN, *BOTH), _LEFT_OUT),
    LateError("InvalidDocument", "ssm:SendCommand", _SHELL_SCRIPT, (OWN, *BOTH), _NO_DOCUMENTS),
    LateError("InvalidDocument", "ssm:StartSession", _INSTANCE, _ONLY_NEAR, _NO_DOCUMENTS),
    LateError("InvalidInstanceId", "ssm:SendCommand", _INSTANCE, BOTH, _NO_MACHINES),
    LateError("InvalidInstanceId", "ssm:SendCommand", f"{EC2}:instance/{{node}}", _ONLY_NEAR, _NO_MACHINES),
    LateError("InvalidInstanceId", "ssm:SendCommand", f"{SSM}:document/corral-control", _ONLY_NEAR, _NO_MACHINES),
    LateError("TargetNotConnected", "ssm:StartSession", _INSTANCE, BOTH, _NO_MACHINES),
    LateError("TargetNotConnected", "ssm:StartSession", f"{EC2}:instance/{{node}}", _ONLY_NEAR, _NO_MACHINES),
    LateError("TargetNotConnected", "ssm:StartSession", f"{EC2}:instance/{{login}}", _ONLY_NEAR, _NO_MACHINES),
    LateError("TargetNotConnected", "ssm:StartSession", f"{SSM}:document/corral-root-shell", _ONLY_NEAR, _NO_MACHINES),
    LateError(
        "IncorrectState", "ec2:AssociateIamInstanceProfile", _INSTANCE, _ONLY_NEAR, "the head has its profile already"
    ),
    LateError(
        "MountTargetConflict",
        "elasticfilesystem:CreateMountTarget",
        _HOME,
        _ONLY_NEAR,
        "the base's file system has one in each zone already",
    ),
    LateError(
        "InvalidGroup.NotFound", "ec2:RequestSpotInstances", "*", _ONLY_NEAR, "the box looks for a group named default"
    ),
    LateError("BadRequest", "fsx:CreateBackup", _LUSTRE, BOTH, "a scratch file system has no backups"),
    LateError(
        "InvalidParameterException",
        "logs:PutSubscriptionFilter",
        f"{LOGS}:{{log_group}}",
        BOTH,
        "the box has no destination that logs can be sent to",
    ),
    LateError("VolumeInUse", "ec2:DeleteVolume", f"{EC2}:volume/{{volume}}", _ONLY_NEAR, _IN_USE),
    LateError("FileSystemInUse", "elasticfilesystem:DeleteFileSystem", _HOME, BOTH, _IN_USE),
    LateError("DependencyViolation", "ec2:DeleteSecurityGroup", f"{EC2}:security-group/{{group}}", _ONLY_NEAR, _IN_USE),
    LateError("DependencyViolation", "ec2:DeleteRouteTable", f"{EC2}:route-table/{{table}}", BOTH, _IN_USE),
    LateError("DependencyViolation", "ec2:DeleteSubnet", f"{EC2}:subnet/{{subnet}}", BOTH, _IN_USE),
    LateError("DependencyViolation", "ec2:DeleteVpc", f"{EC2}:vpc/{{vpc}}", BOTH, _IN_USE),
    LateError("InvalidIPAddress.InUse", "ec2:ReleaseAddress", f"{EC2}:elastic-ip/{{address}}", _ONLY_NEAR, _IN_USE),
    LateError("DeleteConflict", "iam:DeleteRole", f"{IAM}:role/corral/{{head_role}}", _ONLY_NEAR, _IN_USE),
    LateError("DeleteConflict", "iam:DeleteRole", f"{IAM}:role/{{head_role}}", _ONLY_THEIRS, _IN_USE),
    LateError(
        "InvalidPlacementGroup.InUse",
        "ec2:RunInstances",
        f"{EC2}:network-interface/{{interface}}",
        _ONLY_THEIRS,
        "the interface is in another zone than the placement group of the template, which is known after the decision",
    ),
    LateError("BucketNotEmpty", "s3:DeleteBucket", "arn:aws:s3:::{bucket}", BOTH, _IN_USE),
    LateError("BucketNotEmpty", "s3:DeleteBucket", f"arn:aws:s3:::{STATES}", _ONLY_THEIRS, _IN_USE),
)
