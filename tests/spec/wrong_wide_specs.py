"""Wrong specs of the wide fields: markets, disks, Lustre of every kind, adopted VPCs, jobs, access."""

from __future__ import annotations

from wrong_specs import B, C, Wrong

WIDE = (
    Wrong(
        name="reservation without an id and zone",
        cluster=(("          - market: on-demand\n", "          - market: reservation\n"),),
        says=(
            C + "queues[0].capacity[1].ids: is missing - a reservation has an id, such as [cr-0123456789abcdef0]",
            C + "queues[0].capacity[1].zones: a reservation is in one zone - give that one, and other ids another pool",
        ),
    ),
    Wrong(
        name="reservation id of another kind",
        cluster=(
            (
                "          - market: on-demand\n",
                "          - {market: reservation, zones: [use1-az1], ids: [i-0123456789abcdef0]}\n",
            ),
        ),
        says=(
            C
            + "queues[0].capacity[1].ids[0]: 'i-0123456789abcdef0' is not the id of a reservation - it looks like cr-0123456789abcdef0",
        ),
    ),
    Wrong(
        name="reservation in two zones",
        cluster=(
            (
                "          - market: on-demand\n",
                "          - {market: reservation, zones: [use1-az1, use1-az2], ids: [cr-0123456789abcdef0]}\n",
            ),
        ),
        says=(
            C + "queues[0].capacity[1].zones: a reservation is in one zone - give that one, and other ids another pool",
        ),
    ),
    Wrong(
        name="reservation used by two pools",
        cluster=(
            (
                "          - market: on-demand\n",
                "          - {market: reservation, zones: [use1-az1], ids: [cr-0123456789abcdef0]}\n          - {market: capacity-block, zones: [use1-az1], ids: [cr-0123456789abcdef0]}\n",
            ),
        ),
        says=(
            C
            + "queues[0].capacity[2].ids[0]: 'cr-0123456789abcdef0' is used by queues[0].capacity[1] already - name it once",
        ),
    ),
    Wrong(
        name="block with a placement group",
        cluster=(
            (
                "          - market: on-demand\n",
                "          - {market: capacity-block, zones: [use1-az1], ids: [cr-0123456789abcdef0], placement_group: mine}\n",
            ),
        ),
        says=(C + "queues[0].capacity[1].placement_group: a capacity block takes no placement group - leave it out",),
    ),
    Wrong(
        name="block of a type that has none",
        cluster=(
            (
                "          - market: spot\n    lifetime",
                "          - {market: capacity-block, zones: [use1-az1], ids: [cr-0123456789abcdef0]}\n    lifetime",
            ),
        ),
        says=(C + "queues[1].capacity[0].market: g5.xlarge is not sold as capacity-block - it is as on-demand, spot",),
    ),
    Wrong(
        name="block smaller than what is always there",
        cluster=(
            (
                "          - market: spot\n            zones: [use1-az1]\n            max_price: 8.5\n          - market: on-demand\n",
                "          - {market: capacity-block, zones: [use1-az1], ids: [cr-0123456789abcdef0], count: 2}\n",
            ),
            ("{min: 1, max: 4}", "{min: 3, max: 4}"),
        ),
        says=(
            C
            + "queues[0].nodes.min: 3 is more than the 2 instances that its capacity counts - use 2 or less, or add another pool",
        ),
    ),
    Wrong(
        name="price limit on a reservation",
        cluster=(
            (
                "          - market: on-demand\n",
                "          - {market: reservation, zones: [use1-az1], ids: [cr-0123456789abcdef0], max_price: 9}\n",
            ),
        ),
        says=(C + "queues[0].capacity[1].max_price: is for spot only, this pool is reservation - leave it out",),
    ),
    Wrong(
        name="ids for spot",
        cluster=(("            max_price: 8.5\n", "            ids: [cr-0123456789abcdef0]\n"),),
        says=(
            C + "queues[0].capacity[0].ids: is for reservations and capacity blocks, this pool is spot - leave it out",
        ),
    ),
    Wrong(
        name="count for on-demand",
        cluster=(("          - market: on-demand\n", "          - {market: on-demand, count: 4}\n"),),
        says=(
            C
            + "queues[0].capacity[1].count: is for reservations and capacity blocks, this pool is on-demand - leave it out",
        ),
    ),
    Wrong(
        name="market unknown",
        cluster=(("market: on-demand", "market: savings-plan"),),
        says=(
            C
            + "queues[0].capacity[1].market: 'savings-plan' is not possible - known are spot, on-demand, reservation, capacity-block",
        ),
    ),
    Wrong(
        name="nvme on a directory of the system",
        cluster=(("        efa: on\n", "        efa: on\n        nvme: /usr/scratch\n"),),
        says=(C + "queues[0].nvme: '/usr/scratch' would hide /usr, which belongs to the machine - use another one",),
    ),
    Wrong(
        name="nvme over a Lustre mount",
        cluster=(("        efa: on\n", "        efa: on\n        nvme: /scratch/local\n"),),
        says=(
            C + "queues[0].nvme: '/scratch/local' overlaps '/scratch' of Lustre 'scratch' - mount them side by side",
        ),
    ),
    Wrong(
        name="nvme on a type without disks",
        cluster=(("instance_type: g5.xlarge", "instance_type: m7i.xlarge\n        nvme: /fast"),),
        says=(C + "queues[1].nvme: m7i.xlarge has no disks of its own - leave it out",),
    ),
    Wrong(
        name="weight too large",
        cluster=(("        efa: on\n", "        efa: on\n        weight: 5000000000\n"),),
        says=(C + "queues[0].weight: 5000000000 is too large - use 4294967280 or less",),
    ),
    Wrong(
        name="account that slurmdbd would write otherwise",
        cluster=(("        efa: on\n", "        efa: on\n        accounts: [team, Bio]\n"),),
        says=(C + "queues[0].accounts[1]: 'Bio' is no account - small letters, digits, '.', '_' and '-' are one",),
    ),
    Wrong(
        name="key of the partition that is corral's",
        cluster=(("        efa: on\n", "        efa: on\n        extra: {Nodes: all}\n"),),
        says=(C + "queues[0].extra.Nodes: is set by corral, whose working rests on it - leave it out",),
    ),
    Wrong(
        name="key of the partition with a space",
        cluster=(("        efa: on\n", "        efa: on\n        extra: {PriorityTier: '1 2'}\n"),),
        says=(C + "queues[0].extra.PriorityTier: '1 2' is not a value of slurm.conf - no spaces, quotes or # in it",),
    ),
    Wrong(
        name="key of the partition that is none",
        cluster=(("        efa: on\n", "        efa: on\n        extra: {'Priority Tier': 1}\n"),),
        says=(C + "queues[0].extra['Priority Tier']: 'Priority Tier' is not a key of slurm.conf",),
    ),
    Wrong(
        name="key of the partition mistyped",
        cluster=(("        efa: on\n", "        efa: on\n        extra: {PriortyTier: 3}\n"),),
        says=(
            C
            + "queues[0].extra.PriortyTier: is not a key of a partition in Slurm 22.05 to 26.05 - did you mean 'PriorityTier'?",
        ),
    ),
    Wrong(
        name="key of the partition that is like none",
        cluster=(("        efa: on\n", "        efa: on\n        extra: {Gangs: 3}\n"),),
        says=(C + "queues[0].extra.Gangs: is not a key of a partition in Slurm 22.05 to 26.05 - leave it out",),
    ),
    Wrong(
        name="key of the partition that its Slurm does not know yet",
        cluster=(("        efa: on\n", "        efa: on\n        extra: {exclusivetopo: 'YES'}\n"),),
        says=(
            C
            + "queues[0].extra.exclusivetopo: is for Slurm from 24.05, image 'ubuntu-24.04-dlami' has 23.11 - leave it out",
        ),
    ),
    Wrong(
        name="key of slurm.conf on the partition",
        cluster=(("        efa: on\n", "        efa: on\n        extra: {maxjobcount: 5}\n"),),
        says=(
            C
            + "queues[0].extra.maxjobcount: is a key of slurm.conf itself, not of a partition - put it into slurm.extra",
        ),
    ),
    Wrong(
        name="key of slurm.conf that is corral's on the partition",
        cluster=(("        efa: on\n", "        efa: on\n        extra: {ResumeRate: 5}\n"),),
        says=(C + "queues[0].extra.ResumeRate: is a key of slurm.conf itself, not of a partition - leave it out",),
    ),
    Wrong(
        name="key of nodes on the partition",
        cluster=(("        efa: on\n", "        efa: on\n        extra: {Weight: 5}\n"),),
        says=(C + "queues[0].extra.Weight: is a key of nodes, whose lines corral writes - leave it out",),
    ),
    Wrong(
        name="placement in words",
        cluster=(("        efa: on\n", "        efa: on\n        placement: cluster\n"),),
        says=(C + "queues[0].placement: 'cluster' is not possible - known are auto, off",),
    ),
    Wrong(
        name="exclusive in words",
        cluster=(("        efa: on\n", "        efa: on\n        exclusive: 'yes'\n"),),
        says=(C + "queues[0].exclusive: expected true or false, found 'yes'",),
    ),
    Wrong(
        name="root volume too small",
        cluster=(("        efa: on\n", "        efa: on\n        root_gib: 8\n"),),
        says=(C + "queues[0].root_gib: 8 is too small - use 20 or more",),
    ),
    Wrong(
        name="image of a queue without the driver",
        cluster=(("        efa: on\n", "        efa: on\n        image: {profile: ubuntu-24.04-neuron-dlami}\n"),),
        says=(
            C
            + "queues[0].instance_type: p4d.24xlarge has A100, for which image 'ubuntu-24.04-neuron-dlami' has no driver - use the image ubuntu-24.04-dlami",
        ),
    ),
    Wrong(
        name="accelerator without a driver",
        cluster=(("instance_type: g5.xlarge", "instance_type: trn1.2xlarge"),),
        says=(
            C
            + "queues[1].instance_type: trn1.2xlarge has Trainium, for which image 'ubuntu-24.04-dlami' has no driver - use the image ubuntu-24.04-neuron-dlami",
        ),
    ),
    Wrong(
        name="accelerator in place of a type",
        cluster=(("instance_type: g5.xlarge", "instance_type: h100"),),
        says=(C + "queues[1].instance_type: 'h100' is not in the catalogue - H100 is in p5.48xlarge, p5.4xlarge",),
    ),
    Wrong(
        name="accelerator that AWS does not rent",
        cluster=(("instance_type: g5.xlarge", "instance_type: tpu-v5p"),),
        says=(
            C
            + "queues[1].instance_type: 'tpu-v5p' is not in the catalogue - TPUv5p cannot be provisioned: no instance type has it, and it is known for comparison alone (corral forecast accelerators); families with accelerators are g5, g6, g6e, p3dn, p4d, p4de, p5, p5e, p5en, p6-b200, p6-b300, trn1, trn1n, trn2",
        ),
    ),
    Wrong(
        name="family in place of a type",
        cluster=(("instance_type: g5.xlarge", "instance_type: p5"),),
        says=(
            C
            + "queues[1].instance_type: 'p5' is not in the catalogue - p5 is a family, which has p5.48xlarge, p5.4xlarge",
        ),
    ),
    Wrong(
        name="image id of a queue cut short",
        cluster=(("        efa: on\n", "        efa: on\n        image: {id: ami-123}\n"),),
        says=(C + "queues[0].image.id: 'ami-123' is not an image id - it looks like ami-0123456789abcdef0",),
    ),
    Wrong(
        name="persistent without a throughput",
        cluster=(("          deployment: SCRATCH_2\n", "          deployment: PERSISTENT_2\n"),),
        says=(
            C
            + "storage.lustre[0].throughput: is missing - PERSISTENT_2 on SSD comes with 125, 250, 500, 1000 MB/s for each TiB",
        ),
    ),
    Wrong(
        name="throughput that cannot be had",
        cluster=(
            ("          deployment: SCRATCH_2\n", "          deployment: PERSISTENT_2\n          throughput: 300\n"),
        ),
        says=(
            C
            + "storage.lustre[0].throughput: 300 cannot be had - PERSISTENT_2 on SSD comes with 125, 250, 500, 1000 MB/s for each TiB",
        ),
    ),
    Wrong(
        name="throughput of a scratch system",
        cluster=(("          deployment: SCRATCH_2\n", "          throughput: 200\n"),),
        says=(C + "storage.lustre[0].throughput: cannot be chosen with SCRATCH_2 - leave it out",),
    ),
    Wrong(
        name="disks that a deployment lacks",
        cluster=(
            (
                "          deployment: SCRATCH_2\n",
                "          deployment: PERSISTENT_2\n          disks: HDD\n          throughput: 125\n",
            ),
        ),
        says=(C + "storage.lustre[0].disks: PERSISTENT_2 is not stored on HDD - use SSD",),
    ),
    Wrong(
        name="size of HDDs",
        cluster=(
            (
                "          deployment: SCRATCH_2\n",
                "          deployment: PERSISTENT_1\n          disks: HDD\n          throughput: 12\n",
            ),
        ),
        says=(
            C
            + "storage.lustre[0].size_gib: 1200 is not a size of PERSISTENT_1 HDD 12, which has multiples of 6000 GiB - use 6000",
        ),
    ),
    Wrong(
        name="cache for SSDs",
        cluster=(("          deployment: SCRATCH_2\n", "          drive_cache: true\n"),),
        says=(C + "storage.lustre[0].drive_cache: is for HDDs, this one is SCRATCH_2 - leave it out",),
    ),
    Wrong(
        name="EFA of a scratch system",
        cluster=(("          deployment: SCRATCH_2\n", "          efa: true\n"),),
        says=(C + "storage.lustre[0].efa: is for PERSISTENT_2, this one is SCRATCH_2 - leave it out",),
    ),
    Wrong(
        name="EFA on a file system too small for it",
        cluster=(
            (
                "          deployment: SCRATCH_2\n",
                "          deployment: PERSISTENT_2\n          throughput: 250\n          efa: true\n",
            ),
        ),
        says=(
            C
            + "storage.lustre[0].size_gib: 1200 is not a size of PERSISTENT_2 SSD 250 with EFA, which has multiples of 19200 GiB - use 19200",
        ),
    ),
    Wrong(
        name="metadata IOPS of a scratch system",
        cluster=(("          deployment: SCRATCH_2\n", "          metadata_iops: 1500\n"),),
        says=(C + "storage.lustre[0].metadata_iops: is for PERSISTENT_2, this one is SCRATCH_2 - leave it out",),
    ),
    Wrong(
        name="metadata IOPS between two steps",
        cluster=(
            (
                "          deployment: SCRATCH_2\n",
                "          deployment: PERSISTENT_2\n          throughput: 125\n          metadata_iops: 2000\n",
            ),
        ),
        says=(C + "storage.lustre[0].metadata_iops: 2000 cannot be had - the nearest is 1500",),
    ),
    Wrong(
        name="backups of a scratch system",
        cluster=(("          deployment: SCRATCH_2\n", "          backups: {keep_days: 7}\n"),),
        says=(C + "storage.lustre[0].backups: is for persistent file systems, this one is SCRATCH_2 - leave it out",),
    ),
    Wrong(
        name="backups kept too long",
        cluster=(
            (
                "          deployment: SCRATCH_2\n",
                "          deployment: PERSISTENT_2\n          throughput: 125\n          backups: {keep_days: 365}\n",
            ),
        ),
        says=(C + "storage.lustre[0].backups.keep_days: 365 is too large - use 90 or less",),
    ),
    Wrong(
        name="backups at no time of day",
        cluster=(
            (
                "          deployment: SCRATCH_2\n",
                "          deployment: PERSISTENT_2\n          throughput: 125\n          backups: {keep_days: 7, at: '25:00'}\n",
            ),
        ),
        says=(C + "storage.lustre[0].backups.at: '25:00' is not a time of day - write it like 04:30",),
    ),
    Wrong(
        name="root squashed to a name",
        cluster=(("          deployment: SCRATCH_2\n", "          root_squash: {to: nobody}\n"),),
        says=(
            C + "storage.lustre[0].root_squash.to: 'nobody' is not a user and a group id - write it like 65534:65534",
        ),
    ),
    Wrong(
        name="trusted machine without its network",
        cluster=(
            (
                "          deployment: SCRATCH_2\n",
                "          root_squash: {to: '65534:65534', trusted: [10.64.0.10]}\n",
            ),
        ),
        says=(
            C
            + "storage.lustre[0].root_squash.trusted[0]: '10.64.0.10' is not a Lustre NID - write it like 10.64.0.10@tcp or 10.64.0.[10-20]@tcp",
        ),
    ),
    Wrong(
        name="compression unknown",
        cluster=(("          deployment: SCRATCH_2\n", "          compression: zstd\n"),),
        says=(C + "storage.lustre[0].compression: 'zstd' is not possible - known are LZ4, none",),
    ),
    Wrong(
        name="kept file system that loses files",
        base=(
            (
                "      home: {throughput: elastic}\n",
                "      home: {throughput: elastic}\n      lustre:\n        - {name: data, size_gib: 1200}\n",
            ),
        ),
        says=(
            B
            + "storage.lustre[0].deployment: 'SCRATCH_2' loses files when a server fails, and what a base declares is kept - use PERSISTENT_2, or declare it in the cluster",
        ),
    ),
    Wrong(
        name="kept file system in a zone that the base lacks",
        base=(
            (
                "      home: {throughput: elastic}\n",
                "      home: {throughput: elastic}\n      lustre:\n        - {name: data, size_gib: 1200, deployment: PERSISTENT_2, throughput: 125, zone: use1-az4}\n",
            ),
        ),
        says=(B + "storage.lustre[0].zone: 'use1-az4' is not a zone of this base - it has use1-az1, use1-az2",),
    ),
    Wrong(
        name="file system of the name of a kept one",
        base=(
            (
                "      home: {throughput: elastic}\n",
                "      home: {throughput: elastic}\n      lustre:\n        - {name: scratch, size_gib: 1200, deployment: PERSISTENT_2, throughput: 125, mount: /kept}\n",
            ),
        ),
        says=(C + "storage.lustre[0].name: 'scratch' is a file system that the base keeps - use another name",),
    ),
    Wrong(
        name="file system mounted in a kept one",
        base=(
            (
                "      home: {throughput: elastic}\n",
                "      home: {throughput: elastic}\n      lustre:\n        - {name: data, size_gib: 1200, deployment: PERSISTENT_2, throughput: 125, mount: /scratch/data}\n",
            ),
        ),
        says=(
            C
            + "storage.lustre[0].mount: '/scratch' overlaps '/scratch/data' of the base's 'data' - mount them side by side",
        ),
    ),
    Wrong(
        name="zones by id and by name",
        base=(("[use1-az1, use1-az2]", "[use1-az1, us-east-1c]"),),
        says=(B + "network.zones[1]: 'us-east-1c' and 'use1-az1' may be one zone - give all by id, or all by name",),
    ),
    Wrong(
        name="zone name of another region",
        base=(("[use1-az1, use1-az2]", "[us-west-2a, us-west-2b]"),),
        says=(
            B
            + "network.zones[0]: 'us-west-2a' is a zone of us-west-2 - us-east-1 has use1-az1, use1-az2, use1-az3, use1-az4, use1-az5, use1-az6",
            B
            + "network.zones[1]: 'us-west-2b' is a zone of us-west-2 - us-east-1 has use1-az1, use1-az2, use1-az3, use1-az4, use1-az5, use1-az6",
        ),
    ),
    Wrong(
        name="Local Zone by its name",
        base=(("[use1-az1, use1-az2]", "[use1-az1, us-east-1-bos-1a]"),),
        says=(
            B
            + "network.zones[1]: 'us-east-1-bos-1a' is a Local Zone, where corral places nothing - use one of use1-az1, use1-az2, use1-az3, use1-az4, use1-az5, use1-az6",
        ),
    ),
    Wrong(
        name="VPC adopted beside zones",
        base=(
            (
                "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n",
                "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n      adopt:\n        vpc: vpc-0123456789abcdef0\n        subnets:\n          - {zone: use1-az1, id: subnet-0123456789abcdef0, cidr: 10.0.0.0/20}\n          - {zone: use1-az2, id: subnet-0123456789abcdef1, cidr: 10.0.16.0/20}\n",
            ),
        ),
        cluster=(("      address: 10.64.32.20\n", "      address: 10.0.16.20\n"),),
        says=(
            B + "network.cidr: is for a VPC of corral's own, this base adopts one - leave it out",
            B + "network.zones: is for a VPC of corral's own, this base adopts one - leave it out",
            B + "network.interface_endpoints: is for a VPC of corral's own, this base adopts one - leave it out",
        ),
    ),
    Wrong(
        name="VPC adopted by its name",
        base=(
            (
                "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n",
                "      adopt:\n        vpc: team-vpc\n        subnets:\n          - {zone: use1-az1, id: subnet-0123456789abcdef0, cidr: 10.0.0.0/20}\n          - {zone: use1-az2, id: subnet-0123456789abcdef1, cidr: 10.0.16.0/20}\n",
            ),
        ),
        cluster=(("      address: 10.64.32.20\n", "      address: 10.0.16.20\n"),),
        says=(B + "network.adopt.vpc: 'team-vpc' is not the id of a VPC - it looks like vpc-0123456789abcdef0",),
    ),
    Wrong(
        name="subnets adopted that overlap",
        base=(
            (
                "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n",
                "      adopt:\n        vpc: vpc-0123456789abcdef0\n        subnets:\n          - {zone: use1-az1, id: subnet-0123456789abcdef0, cidr: 10.0.0.0/20}\n          - {zone: use1-az2, id: subnet-0123456789abcdef1, cidr: 10.0.8.0/21}\n",
            ),
        ),
        cluster=(("10.64.32.20", "10.0.8.20"),),
        says=(
            B
            + "network.adopt.subnets[1].cidr: 10.0.8.0/21 overlaps 10.0.0.0/20 of entry 0 - two subnets of a VPC never do",
        ),
    ),
    Wrong(
        name="subnets adopted in one zone",
        base=(
            (
                "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n",
                "      adopt:\n        vpc: vpc-0123456789abcdef0\n        subnets:\n          - {zone: use1-az1, id: subnet-0123456789abcdef0, cidr: 10.0.0.0/20}\n          - {zone: use1-az1, id: subnet-0123456789abcdef1, cidr: 10.0.16.0/20}\n",
            ),
        ),
        cluster=(("      zone: use1-az2\n", ""), ("10.64.32.20", "10.0.0.20")),
        says=(B + "network.adopt.subnets[1].zone: 'use1-az1' is listed twice - keep one",),
    ),
    Wrong(
        name="subnet adopted too small",
        base=(
            (
                "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n",
                "      adopt:\n        vpc: vpc-0123456789abcdef0\n        subnets:\n          - {zone: use1-az1, id: subnet-0123456789abcdef0, cidr: 10.0.0.0/20}\n          - {zone: use1-az2, id: subnet-0123456789abcdef1, cidr: 10.0.16.0/26}\n",
            ),
        ),
        cluster=(("      address: 10.64.32.20\n", "      address: 10.0.16.20\n"),),
        says=(B + "network.adopt.subnets[1].cidr: 10.0.16.0/26 holds 64 addresses - use a subnet of /24 or larger",),
    ),
    Wrong(
        name="subnet id adopted cut short",
        base=(
            (
                "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n",
                "      adopt:\n        vpc: vpc-0123456789abcdef0\n        subnets:\n          - {zone: use1-az1, id: subnet-0123456789abcdef0, cidr: 10.0.0.0/20}\n          - {zone: use1-az2, id: subnet-01, cidr: 10.0.16.0/20}\n",
            ),
        ),
        cluster=(("      address: 10.64.32.20\n", "      address: 10.0.16.20\n"),),
        says=(
            B
            + "network.adopt.subnets[1].id: 'subnet-01' is not the id of a subnet - it looks like subnet-0123456789abcdef0",
        ),
    ),
    Wrong(
        name="head without an address in an adopted subnet",
        base=(
            (
                "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n",
                "      adopt:\n        vpc: vpc-0123456789abcdef0\n        subnets:\n          - {zone: use1-az1, id: subnet-0123456789abcdef0, cidr: 10.0.0.0/20}\n          - {zone: use1-az2, id: subnet-0123456789abcdef1, cidr: 10.0.16.0/20}\n",
            ),
        ),
        cluster=(("      address: 10.64.32.20\n", ""),),
        says=(C + "head.address: is missing - in an adopted subnet none is kept: give a free one of 10.0.16.0/20",),
    ),
    Wrong(
        name="head outside an adopted subnet",
        base=(
            (
                "      cidr: 10.64.0.0/16\n      zones: [use1-az1, use1-az2]\n      interface_endpoints: [ssm, ec2]\n",
                "      adopt:\n        vpc: vpc-0123456789abcdef0\n        subnets:\n          - {zone: use1-az1, id: subnet-0123456789abcdef0, cidr: 10.0.0.0/20}\n          - {zone: use1-az2, id: subnet-0123456789abcdef1, cidr: 10.0.16.0/20}\n",
            ),
        ),
        says=(C + "head.address: 10.64.32.20 is outside subnet-0123456789abcdef1 in use1-az2 - it has 10.0.16.0/20",),
    ),
    Wrong(
        name="bucket of jobs that is no place in S3",
        cluster=(
            ("    tags: {project: llm}\n", "    jobs:\n      buckets: [{s3: my-bucket}]\n    tags: {project: llm}\n"),
        ),
        says=(C + "jobs.buckets[0].s3: 'my-bucket' is not a place in S3 - write it like s3://bucket/prefix",),
    ),
    Wrong(
        name="buckets of jobs with the signs of patterns",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    jobs:\n      buckets: [{s3: s3://my-bucket/a*b}, {s3: 's3://my-bucket/a?'}, {s3: s3://my-bucket/$x}]\n"
                "    tags: {project: llm}\n",
            ),
        ),
        says=tuple(
            C
            + f"jobs.buckets[{number}].s3: 's3://my-bucket/{prefix}' has * or ? or $ in it, which a policy takes for more"
            + " than this one place - name a prefix without them"
            for number, prefix in enumerate(("a*b", "a?", "$x"))
        ),
    ),
    Wrong(
        name="tags that AWS does not take",
        cluster=(
            (
                "tags: {project: llm}",
                'tags: {team: "R&D (ml)", cost-center: "a,b;c", "aws:x": y, owner: Jürgen 東京 _.:/=+-@}',
            ),
        ),
        says=(
            C
            + "tags.team: a tag's value may have letters, digits, spaces and _ . : / = + - @ only, this one has '&' and"
            + " '(' and ')'",
            C
            + "tags.cost-center: a tag's value may have letters, digits, spaces and _ . : / = + - @ only, this one has"
            + " ',' and ';'",
            C + "tags.aws:x: 'aws:x' is not yours to set - corral and AWS keep Name, corral: and aws: for themselves",
        ),
    ),
    Wrong(
        name="bucket of jobs twice",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    jobs:\n      buckets: [{s3: s3://my-bucket}, {s3: s3://my-bucket/}]\n    tags: {project: llm}\n",
            ),
        ),
        says=(C + "jobs.buckets[1].s3: 's3://my-bucket/' is listed twice - keep one",),
    ),
    Wrong(
        name="secret itself in place of its name",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    jobs:\n      secrets: {HF_TOKEN: hf_abcdefghijklmnopqrstuvwxyz012345}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "jobs.secrets.HF_TOKEN: looks like the secret itself - keep that in Secrets Manager and write its name here",
        ),
    ),
    Wrong(
        name="secret for a variable of the system",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    jobs:\n      secrets: {AWS_SECRET_ACCESS_KEY: team/key}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "jobs.secrets.AWS_SECRET_ACCESS_KEY: 'AWS_SECRET_ACCESS_KEY' belongs to the system, to Slurm or to corral - use another variable",
        ),
    ),
    Wrong(
        name="secret for what is no variable",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    jobs:\n      secrets: {hf-token: team/key}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C + "jobs.secrets.hf-token: 'hf-token' is not the name of an environment variable - write it like HF_TOKEN",
        ),
    ),
    Wrong(
        name="secret with a space in its name",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    jobs:\n      secrets: {HF_TOKEN: my token}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "jobs.secrets.HF_TOKEN: 'my token' is not the name of a secret - letters, digits and / _ + = . @ - only",
        ),
    ),
    Wrong(
        name="key of slurm.conf that is corral's",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {resumeprogram: /bin/true}\n    tags: {project: llm}\n",
            ),
        ),
        says=(C + "slurm.extra.resumeprogram: is set by corral, whose working rests on it - leave it out",),
    ),
    Wrong(
        name="key of slurm.conf with a comment",
        cluster=(
            ("    tags: {project: llm}\n", "    slurm:\n      extra: {MaxJobCount: '5#'}\n    tags: {project: llm}\n"),
        ),
        says=(C + "slurm.extra.MaxJobCount: '5#' is not a value of slurm.conf - no spaces, quotes or # in it",),
    ),
    Wrong(
        name="key of slurm.conf mistyped",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {SchedulerParametres: bf_continue}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "slurm.extra.SchedulerParametres: is not a key of slurm.conf in Slurm 22.05 to 26.05 - did you mean 'SchedulerParameters'?",
        ),
    ),
    Wrong(
        name="key of slurm.conf that its Slurm does not know yet",
        cluster=(
            ("    tags: {project: llm}\n", "    slurm:\n      extra: {PrologTimeout: 60}\n    tags: {project: llm}\n"),
        ),
        says=(
            C
            + "slurm.extra.PrologTimeout: is for Slurm from 25.05, image 'ubuntu-24.04-dlami' has 23.11 - leave it out",
        ),
    ),
    Wrong(
        name="key of slurm.conf that its Slurm knows no more",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {RoutePlugin: route/topology}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "slurm.extra.RoutePlugin: is for Slurm before 23.11 (became TopologyParam=RouteTree), image 'ubuntu-24.04-dlami' has 23.11 - leave it out",
        ),
    ),
    Wrong(
        name="key of slurm.conf that every Slurm refuses",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {SallocDefaultCommand: bash}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "slurm.extra.SallocDefaultCommand: is for Slurm before 22.05 (became LaunchParameters=use_interactive_step), image 'ubuntu-24.04-dlami' has 23.11 - leave it out",
        ),
    ),
    Wrong(
        name="value in slurm.conf that its Slurm does not know yet",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {SchedulerParameters: 'bf_window=5,requeue_delay=3'}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "slurm.extra.SchedulerParameters: 'requeue_delay' is for Slurm from 25.11, image 'ubuntu-24.04-dlami' has 23.11 - leave it out",
        ),
    ),
    Wrong(
        name="key of a partition in slurm.conf",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {PriorityTier: 3, PowerDownOnIdle: 'YES'}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "slurm.extra.PriorityTier: is a key of a partition, not of slurm.conf itself - put it into a queue's extra",
            C + "slurm.extra.PowerDownOnIdle: is a key of a partition, not of slurm.conf itself - leave it out",
        ),
    ),
    Wrong(
        name="key of nodes in slurm.conf",
        cluster=(
            ("    tags: {project: llm}\n", "    slurm:\n      extra: {CPUSpecList: 0}\n    tags: {project: llm}\n"),
        ),
        says=(C + "slurm.extra.CPUSpecList: is a key of nodes, whose lines corral writes - leave it out",),
    ),
    Wrong(
        name="keys of another Slurm on an image that is not known",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {PrologTimeout: 60, MaxJobsCount: 9}\n    tags: {project: llm}\n",
            ),
            ("profile: ubuntu-24.04-dlami", "profile: ubuntu-24.04-dlam"),
        ),
        says=(
            C + "image.profile: 'ubuntu-24.04-dlam' is not in the catalogue - did you mean 'ubuntu-24.04-dlami'?",
            C
            + "slurm.extra.MaxJobsCount: is not a key of slurm.conf in Slurm 22.05 to 26.05 - did you mean 'MaxJobCount'?",
        ),
    ),
    Wrong(
        name="keys of another Slurm on an image of one's own",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {PrologTimeout: '6 0'}\n    tags: {project: llm}\n",
            ),
            ("profile: ubuntu-24.04-dlami", "id: ami-0123456789abcdef0"),
        ),
        says=(
            C + "slurm.extra.PrologTimeout: '6 0' is not a value of slurm.conf - no spaces, quotes or # in it",
            C
            + "slurm.extra.PrologTimeout: is for Slurm from 25.05, image 'ubuntu-24.04-dlami' has 23.11 - leave it out",
        ),
    ),
    Wrong(
        name="own keys wrong together with the rest",
        cluster=(
            ("    tags: {project: llm}\n", "    slurm:\n      extra: {MaxJobCounts: 5}\n    tags: {project: llm}\n"),
            ("suspend_after: 10m", "suspend_after: 30s"),
            ("        efa: on\n", "        efa: on\n        extra: {Qoss: x}\n"),
        ),
        says=(
            C + "queues[0].suspend_after: 30s is too short - use 1m or more",
            C + "queues[0].extra.Qoss: is not a key of a partition in Slurm 22.05 to 26.05 - did you mean 'QOS'?",
            C
            + "slurm.extra.MaxJobCounts: is not a key of slurm.conf in Slurm 22.05 to 26.05 - did you mean 'MaxJobCount'?",
        ),
    ),
    Wrong(
        name="private key",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    access:\n      ssh_keys: ['-----BEGIN OPENSSH PRIVATE KEY-----']\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "access.ssh_keys[0]: is a private key, which must never leave its owner - give the one in the .pub file, and make a new pair",
        ),
    ),
    Wrong(
        name="public key cut short",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    access:\n      ssh_keys: [ssh-ed25519 AAAAC3NzaC1]\n    tags: {project: llm}\n",
            ),
        ),
        says=(C + "access.ssh_keys[0]: is cut short or damaged - copy the .pub file's line again",),
    ),
    Wrong(
        name="public key that is a file's name",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    access:\n      ssh_keys: [~/.ssh/id_ed25519.pub]\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "access.ssh_keys[0]: is not a public key - give the one line of the .pub file, such as ssh-ed25519 AAAA... you@host",
        ),
    ),
    Wrong(
        name="Slurm with too many nodes",
        cluster=(("max: 4}", "max: 60000}"), ("{max: 8}", "{max: 8000}")),
        says=(C + "queues: have 68000 nodes together - Slurm takes 65533",),
    ),
    Wrong(
        name="number of nodes with too many digits",
        cluster=(("{max: 8}", "{max: 99999999999999999999}"),),
        says=(
            C
            + "line 40, column 22: 99999999999999999999 has too many digits for a number - use a smaller one, or quotes"
            + " where it is text",
        ),
    ),
    Wrong(
        name="price without an end",
        cluster=(("max_price: 8.5", "max_price: .inf"),),
        says=(C + "line 34, column 24: .inf is no number to count with - write one in digits, or leave the line out",),
    ),
)
