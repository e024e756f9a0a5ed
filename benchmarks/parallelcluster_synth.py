"""Create the CloudFormation template of one cluster with AWS ParallelCluster, as `pcluster create-cluster` does.

Run it with the Python of the environment that has aws-parallelcluster, in a process of its own, because users wait for
the first template. Responses of AWS are immediate stand-ins, and nothing is validated or uploaded, so the real command
does more. It needs Node.js, as the real one does.
"""

import os
from collections.abc import Callable
from types import SimpleNamespace

REGION = "us-east-1"
CLUSTER = """
Region: us-east-1
Image: {Os: alinux2023}
HeadNode: {InstanceType: m7i.2xlarge, Networking: {SubnetId: subnet-0123456789abcdef0}}
Scheduling:
  Scheduler: slurm
  SlurmQueues:
    - Name: train
      CapacityType: SPOT
      ComputeResources:
        - {Name: p4d, InstanceType: p4d.24xlarge, MinCount: 0, MaxCount: 4, Efa: {Enabled: true}}
      Networking: {SubnetIds: [subnet-0123456789abcdef0], PlacementGroup: {Enabled: true}}
SharedStorage:
  - {Name: scratch, StorageType: FsxLustre, MountDir: /scratch, FsxLustreSettings: {StorageCapacity: 1200}}
"""
INSTANCE_TYPE = {
    "InstanceType": "p4d.24xlarge",
    "VCpuInfo": {"DefaultVCpus": 96, "DefaultCores": 48, "DefaultThreadsPerCore": 2},
    "MemoryInfo": {"SizeInMiB": 1179648},
    "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
    "NetworkInfo": {
        "EfaSupported": True,
        "EfaInfo": {"MaximumEfaInterfaces": 4},
        "MaximumNetworkCards": 4,
        "DefaultNetworkCardIndex": 0,
        "NetworkCards": [{"NetworkCardIndex": card, "MaximumNetworkInterfaces": 15} for card in range(4)],
    },
    "GpuInfo": {"Gpus": [{"Name": "A100", "Manufacturer": "NVIDIA", "Count": 8}]},
    "EbsInfo": {"EbsOptimizedSupport": "default"},
    "SupportedUsageClasses": ["on-demand", "spot"],
    "InstanceStorageSupported": True,
}


class Service:
    """Returns a name for every call to an AWS service; no call needs a number."""

    def __getattr__(self, action: str) -> Callable[..., str]:
        return lambda *_, **__: f"{action}-0123456789abcdef0"


class Ec2(Service):
    """The EC2 calls for which a name is not enough."""

    def get_instance_type_info(self, _: str) -> object:
        """Return the DescribeInstanceTypes data of p4d.24xlarge for any type."""
        from pcluster.aws.aws_resources import InstanceTypeInfo

        return InstanceTypeInfo(INSTANCE_TYPE)

    def describe_image(self, _: str) -> object:
        """Return the root device of any image."""
        return SimpleNamespace(device_name="/dev/xvda", volume_size=45)


class Cloud:
    """Replaces ParallelCluster's object for all AWS calls."""

    aws_region = REGION
    ec2 = Ec2()

    def __getattr__(self, _: str) -> Service:
        return Service()


def main() -> None:
    """Load the declared cluster, build its template, and print the number of its resources."""
    os.environ["AWS_DEFAULT_REGION"] = REGION
    from pcluster.aws.aws_api import AWSApi

    AWSApi._instance = Cloud()
    import yaml
    from pcluster.models.s3_bucket import S3Bucket
    from pcluster.schemas.cluster_schema import ClusterSchema
    from pcluster.templates.cdk_builder import CDKTemplateBuilder

    declared = yaml.safe_load(CLUSTER)
    cluster = ClusterSchema(cluster_name="bench").load(declared)
    cluster.source_config = declared
    bucket = S3Bucket(service_name="bench", stack_name="bench", artifact_directory="bench", name="bench")
    template, _ = CDKTemplateBuilder().build_cluster_template(cluster, bucket, "bench")
    print(len(template["Resources"]))


if __name__ == "__main__":
    main()
