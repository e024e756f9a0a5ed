"""The steps that deploy, change and delete the stacks. Each checks what it shows."""

from __future__ import annotations

import re
import shlex

from cluster_queries import DATA_BUCKET, compute_instances, head, queue
from session import DemoSession, Unexpected, expect

PULUMI_LINE = re.compile(r"\s*$|\s*[~+-]? *(pulumi:|corral:|aws:)|@ ")  # the engine's line for each resource
SCHEDULED = "(scheduled for deletion)"
RETAINED = {"efs/file-system", "kms/alias", "kms/key", "s3/bucket"}  # the alias proves later that the key is the base's
BOUNDARY = (
    "arn:aws:iam::123456789012:policy/corral/guards-boundary-us-east-1"  # the account's, as by `corral bootstrap`
)
BACKUP = re.compile(r".*/accounting/dev\.sql\.gz")  # the next cluster of this name restores it
HISTORY = re.compile(r".*/lives/dev/[\dTZ-]+\.json\.gz")  # `corral timeline` draws it when no head runs
PRICE = r"^  {} +[\d.,]+(?: - [\d.,]+)? an hour"
CLUSTER_FILE = "stacks/cluster/Pulumi.dev.yaml"
MONITORING = "    monitoring: {prometheus: true, alerts: {}}"
TEMPLATE, TYPE = "train-spot-use1-az1", "p4d.24xlarge"


def plan(demo: DemoSession) -> None:
    """Plan without an account and without a network."""
    output = demo.corral("plan", "dev", offline=True)
    words = ("Queue train", TYPE)
    prices = (PRICE.format(name) for name in ("idle cluster", "all nodes"))
    expect(
        {f"the plan contains {word!r}": word in output for word in words}
        | {f"the plan prices it: {price}": re.search(price, output, re.MULTILINE) for price in prices}
    )
    demo.explain("It sent no request: it ran in a network namespace without any interface.")


def start_box(demo: DemoSession) -> None:
    """Start the daemon, and create the bucket with training data that a user would have."""
    demo.corral("box", "start")
    demo.client("s3").create_bucket(Bucket=DATA_BUCKET)
    demo.initial_inventory = demo.inventory()
    if (held := {kind: ids for kind, ids in demo.initial_inventory.items() if ids}) != {"s3/bucket": [DATA_BUCKET]}:
        raise Unexpected(f"a new box should hold only the bucket {DATA_BUCKET}; it holds {held}")
    demo.explain(f"The box holds one resource: s3://{DATA_BUCKET}, which stands for your data.")


def up(demo: DemoSession) -> None:
    """Create both stacks, with one line more in the user's file."""
    with (demo.project / CLUSTER_FILE).open("a") as file:
        file.write(f"{MONITORING}\n")
    demo.explain(f"$ echo {shlex.quote(MONITORING)} >>{CLUSTER_FILE}")
    demo.explain("Prometheus and Alertmanager will run on the head, and alerts go to a topic.")
    demo.corral("up", "dev", "--box", "--yes")
    demo.corral("status", "dev", "--box")
    status = demo.query_json("status", "dev", "--box")
    found = status["head"]
    expect(
        {
            "both stacks are up": status["base_is_up"] and status["cluster_is_up"],
            "the status shows the running head": (found["instance_id"], found["state"]) == (head(demo)[0], "running"),
        }
    )


def launch_from_template(demo: DemoSession) -> None:
    """Launch two instances as the head does for a job of two nodes: one RunInstances with a launch template."""
    ec2 = demo.client("ec2")
    found = ec2.describe_launch_templates(Filters=[{"Name": "tag:Name", "Values": [f"corral-dev-{TEMPLATE}"]}])
    id = found["LaunchTemplates"][0]["LaunchTemplateId"]
    data = ec2.describe_launch_template_versions(LaunchTemplateId=id, Versions=["$Default"])
    demo.explain(f"{TEMPLATE} is {id}; DescribeLaunchTemplateVersions returns:")
    nics = data["LaunchTemplateVersions"][0]["LaunchTemplateData"]["NetworkInterfaces"]
    for nic in nics:
        demo.explain(f"  card {nic.get('NetworkCardIndex', 0)} device {nic['DeviceIndex']}  {nic['InterfaceType']}")
    template = {"LaunchTemplateId": id, "Version": "$Default"}
    launched = ec2.run_instances(LaunchTemplate=template, MinCount=2, MaxCount=2)["Instances"]
    expect({"two machines came from one request": [one["AmiLaunchIndex"] for one in launched] == [0, 1]})
    for instance in launched:
        kinds = [nic["InterfaceType"] for nic in instance["NetworkInterfaces"]]
        demo.explain(
            f"  {instance['InstanceId']}  index {instance['AmiLaunchIndex']}  {instance['InstanceLifecycle']}  "
            f"{instance['Placement']['AvailabilityZone']}  group {instance['Placement']['GroupName']}  "
            f"{kinds.count('interface')} ENA + {kinds.count('efa-only')} efa-only"
        )
        expect(
            {
                f"{instance['InstanceId']} has the interfaces of its template": sorted(kinds)
                == sorted(nic["InterfaceType"] for nic in nics),
                f"it is a {TYPE} of the spot market": (instance["InstanceType"], instance["InstanceLifecycle"])
                == (TYPE, "spot"),
                "it is in a placement group": instance["Placement"]["GroupName"],
            }
        )
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"] for instance in launched])


def grow(demo: DemoSession) -> None:
    """Change two numbers in the user's file, preview, and apply."""
    file = demo.project / CLUSTER_FILE
    text = file.read_text()
    expect({f"{file.name} has both numbers once": text.count("max: 4") == text.count("suspend_after: 10m") == 1})
    file.write_text(text.replace("max: 4", "max: 6").replace("suspend_after: 10m", "suspend_after: 1m"))
    changes = ("s/max: 4/max: 6/", "s/suspend_after: 10m/suspend_after: 1m/")
    demo.explain(f"$ sed -i {' '.join(f'-e {shlex.quote(change)}' for change in changes)} {CLUSTER_FILE}")
    head_before, queue_before = head(demo), queue(demo)
    # Else the step after this one would wait for nothing: it shows that idle machines terminate.
    expect({"machines of idle nodes run": len(compute_instances(demo)) >= 2})
    preview = demo.corral("up", "dev", "--box", "--preview")
    lines = (
        "-NodeName=train-[1-4] Sockets=",
        "+NodeName=train-[1-6] Sockets=",
        " SuspendTime=600 ",
        " SuspendTime=60 ",
    )
    expect({f"the preview shows {line.strip()!r}": line in preview for line in lines})
    if (now := queue(demo)) != queue_before:
        raise Unexpected(f"a preview should change nothing; slurmctld had {queue_before} and has {now}")
    demo.corral("up", "dev", "--box", "--yes")
    if (new := queue(demo)) != ("train-[1-6]", "60"):
        raise Unexpected(f"slurmctld should have 6 nodes and power them down after 60 s; it has {new}")
    if head(demo) != head_before:
        raise Unexpected("the change of a queue replaced the head")
    demo.explain("slurmctld has both, and the head keeps running.")


def expect_no_changes(demo: DemoSession) -> None:
    """Check that the engine's own command agrees with corral's."""
    for stack in ("base", "cluster"):
        demo.shell(
            f'pulumi -C "$CORRAL_STACKS/{stack}" -s dev up --expect-no-changes --skip-preview --yes --suppress-outputs',
            omit=PULUMI_LINE,
        )


def down(demo: DemoSession) -> None:
    """Delete everything but the data, the history of the cluster and the backup of its accounting."""
    output = demo.corral("down", "dev", "--box", "--with-base", "--yes", briefly=True)
    priced = re.findall(r"^  retained +(.+?)  .*(?:USD/month|free so far)$", output, re.MULTILINE)
    expect(
        {f"down lists the cost of each retained resource: {priced}": priced == ["home file system", "bucket", "key"]}
    )
    initial = demo.initial_inventory
    kept = {kind: sorted(set(ids) - set(initial.get(kind, []))) for kind, ids in demo.inventory().items()}
    demo.explain("Added to the box since before the first up, in every service, tagged or not:")
    for kind, ids in kept.items():
        for id in ids:
            demo.explain(f"  {kind}  {id}")
    objects = [id for kind, ids in kept.items() for id in ids if kind not in RETAINED]
    if unexpected := [id for id in objects if not (id == BOUNDARY or BACKUP.fullmatch(id) or HISTORY.fullmatch(id))]:
        raise Unexpected(f"left over: {unexpected}")
    for pattern, name in ((HISTORY, "history"), (BACKUP, "backup of the accounting")):
        if len([id for id in objects if pattern.fullmatch(id)]) != 1:
            raise Unexpected(f"one {name} should be kept; there is {objects}")
    kinds = [kind for kind, ids in kept.items() for id in ids if SCHEDULED not in id]
    expect({f"one {kind} is kept": kinds.count(kind) == 1 for kind in RETAINED})


def delete_data(demo: DemoSession) -> None:
    """Delete the data too. KMS deletes a key a week after the request at the earliest."""
    demo.corral("down", "dev", "--box", "--with-base", "--delete-data", "dev", "--yes", briefly=True)
    now, initial = (
        {(kind, id) for kind, ids in held.items() for id in ids} for held in (demo.inventory(), demo.initial_inventory)
    )
    left, lost = sorted(now - initial - {("iam/policy", BOUNDARY)}), sorted(initial - now)
    demo.explain(f"Added since before the first up: {', '.join(f'{kind} {id}' for kind, id in left) or 'nothing'}")
    if [kind for kind, id in left if SCHEDULED in id] != ["kms/key"] * 2 or len(left) != 2:
        raise Unexpected(f"only two keys that are scheduled for deletion should be left; there is {left}")
    expect({f"everything that was there before is still there; missing: {lost}": not lost})
