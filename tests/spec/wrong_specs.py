"""Wrong specs: what is edited in the good files, and every line that comes out, literally and in order."""

from __future__ import annotations

from dataclasses import dataclass

from specs import Edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """One kind of mistake."""

    name: str
    base: tuple[Edit, ...] = ()
    cluster: tuple[Edit, ...] = ()
    says: tuple[str, ...]


B, C = "stacks/base/Pulumi.dev.yaml: ", "stacks/cluster/Pulumi.dev.yaml: "

WRONG = (
    Wrong(
        name="type of nodes cut short",
        cluster=(("p4d.24xlarge", "p4d.24xl"),),
        says=(C + "queues[0].instance_type: 'p4d.24xl' is not in the catalogue - did you mean 'p4d.24xlarge'?",),
    ),
    Wrong(
        name="type of nodes unknown",
        cluster=(("p4d.24xlarge", "quantum.9"),),
        says=(
            C
            + "queues[0].instance_type: 'quantum.9' is not in the catalogue - known families are c7i, g5, g6, g6e, m6i,"
            + " m7i, p3dn, p4d, p4de, p5, p5e, p5en, p6-b200, p6-b300, r7i, t3, trn1, trn1n, trn2",
        ),
    ),
    Wrong(
        name="type of head mistyped",
        cluster=(("m7i.2xlarge", "m7i.2xlage"),),
        says=(C + "head.instance_type: 'm7i.2xlage' is not in the catalogue - did you mean 'm7i.2xlarge'?",),
    ),
    Wrong(
        name="efa in words of YAML 1.1",
        cluster=(("efa: on", "efa: yes"),),
        says=(C + "queues[0].efa: 'yes' is not possible - known are auto, on, with-ena, off",),
    ),
    Wrong(
        name="efa as a boolean",
        cluster=(("efa: on", "efa: true"),),
        says=(C + "queues[0].efa: true is not possible - known are auto, on, with-ena, off",),
    ),
    Wrong(
        name="efa on a type without",
        cluster=(("instance_type: g5.xlarge", "instance_type: g5.xlarge\n        efa: on"),),
        says=(C + "queues[1].efa: 'on', but g5.xlarge has no EFA - use 'auto' or another instance_type",),
    ),
    Wrong(
        name="duration in words",
        cluster=(("suspend_after: 10m", "suspend_after: 10 minutes"),),
        says=(C + "queues[0].suspend_after: '10 minutes' is not a duration - write it like 10m, 12h, 1h30m or 2d",),
    ),
    Wrong(
        name="duration without a unit",
        cluster=(("suspend_after: 10m", "suspend_after: 600"),),
        says=(C + "queues[0].suspend_after: 600 is not a duration - write it like 10m, 12h, 1h30m or 2d",),
    ),
    Wrong(
        name="suspend too early",
        cluster=(("suspend_after: 10m", "suspend_after: 30s"),),
        says=(C + "queues[0].suspend_after: 30s is too short - use 1m or more",),
    ),
    Wrong(
        name="field unknown",
        cluster=(("suspend_after: 10m", "suspend_time: 10m"),),
        says=(C + "queues[0].suspend_time: is not a known field - did you mean 'suspend_after'?",),
    ),
    Wrong(
        name="field of a later release",
        cluster=(("        efa: on\n", "        efa: on\n        gang: auto\n"),),
        says=(
            C
            + "queues[0].gang: is not a known field - known are name, instance_type, nodes, suspend_after, capacity,"
            + " efa, placement, image, root_gib, nvme, exclusive, time_limit, weight, accounts, extra",
        ),
    ),
    Wrong(
        name="field of the spec mistyped",
        cluster=(("    queues:", "    queue:"),),
        says=(
            C + "queue: is not a known field - did you mean 'queues'?",
            C + "queues: is missing - what users submit to; the first is the default",
        ),
    ),
    Wrong(
        name="maximum of nodes missing",
        cluster=(("nodes: {max: 8}", "nodes: {}"),),
        says=(C + "queues[1].nodes.max: is missing - nodes that the queue grows to at most",),
    ),
    Wrong(
        name="nodes as one number",
        cluster=(("nodes: {max: 8}", "nodes: 8"),),
        says=(C + "queues[1].nodes: expected fields (min, max), found 8",),
    ),
    Wrong(
        name="no nodes at all",
        cluster=(("nodes: {max: 8}", "nodes: {max: 0}"),),
        says=(C + "queues[1].nodes.max: 0 is too small - use 1 or more",),
    ),
    Wrong(
        name="nodes in words",
        cluster=(("nodes: {max: 8}", "nodes: {max: eight}"),),
        says=(C + "queues[1].nodes.max: expected a whole number, found 'eight'",),
    ),
    Wrong(
        name="half a node",
        cluster=(("nodes: {max: 8}", "nodes: {max: 1.5}"),),
        says=(C + "queues[1].nodes.max: expected a whole number, found 1.5",),
    ),
    Wrong(
        name="fewer nodes than none",
        cluster=(("min: 1", "min: -1"),),
        says=(C + "queues[0].nodes.min: -1 is too small - use 0 or more",),
    ),
    Wrong(
        name="more nodes than Slurm takes",
        cluster=(("nodes: {max: 8}", "nodes: {max: 66000}"),),
        says=(C + "queues: have 66004 nodes together - Slurm takes 65533",),
    ),
    Wrong(
        name="minimum above maximum",
        cluster=(("min: 1", "min: 5"),),
        says=(C + "queues[0].nodes.min: 5 is more than max 4 - use max or less",),
    ),
    Wrong(
        name="queue name with a capital",
        cluster=(("name: small", "name: Small"),),
        says=(
            C
            + "queues[1].name: 'Small' is not a name - use small letters, digits and hyphens, a letter first,"
            + " no hyphen last",
        ),
    ),
    Wrong(
        name="queue name with a hyphen last",
        cluster=(("name: small", "name: small-"),),
        says=(
            C
            + "queues[1].name: 'small-' is not a name - use small letters, digits and hyphens, a letter"
            + " first, no hyphen last",
        ),
    ),
    Wrong(
        name="queue name too long",
        cluster=(("name: small", "name: a-queue-with-a-very-long-name"),),
        says=(C + "queues[1].name: 'a-queue-with-a-very-long-name' has 29 characters - use 28 or fewer",),
    ),
    Wrong(
        name="queue name that Slurm reserves",
        cluster=(("name: small", "name: default"),),
        says=(C + "queues[1].name: 'default' is a word of Slurm's own - use another name",),
    ),
    Wrong(
        name="queue name twice",
        cluster=(("name: small", "name: train"),),
        says=(C + "queues[1].name: 'train' is also the name of entry 0 - each needs its own",),
    ),
    Wrong(
        name="queue name as a number",
        cluster=(("name: small", "name: 4"),),
        says=(C + "queues[1].name: expected text, found 4 - put it in quotes",),
    ),
    Wrong(
        name="queue without a name",
        cluster=(("      - name: small\n        instance_type", "      - instance_type"),),
        says=(C + "queues[1].name: is missing - name of the queue: small letters, digits, hyphens",),
    ),
    Wrong(
        name="queues empty",
        cluster=(("    queues:\n", "    queues: []\n    old:\n"),),
        says=(
            C + "queues: is empty - give at least 1",
            C
            + "old: is not a known field - known are base, head, image, storage, queues, jobs, slurm, access, lifetime,"
            + " usd_per_hour_max, tags",
        ),
    ),
    Wrong(
        name="queues as one queue",
        cluster=(("    queues:\n", "    queues: train\n    old:\n"),),
        says=(
            C + "queues: expected a list, found 'train'",
            C
            + "old: is not a known field - known are base, head, image, storage, queues, jobs, slurm, access, lifetime,"
            + " usd_per_hour_max, tags",
        ),
    ),
    Wrong(
        name="market mistyped",
        cluster=(("market: on-demand", "market: ondemand"),),
        says=(C + "queues[0].capacity[1].market: 'ondemand' is not possible - did you mean 'on-demand'?",),
    ),
    Wrong(
        name="pool twice",
        cluster=(("market: on-demand", "market: spot"),),
        says=(
            C
            + "queues[0].capacity[1]: spot in use1-az1 is in entry 0 already - name other zones, or leave it"
            + " out",
        ),
    ),
    Wrong(
        name="pool twice everywhere",
        cluster=(
            (
                "          - market: spot\n    lifetime",
                "          - market: spot\n          - market: spot\n    lifetime",
            ),
        ),
        says=(
            C
            + "queues[1].capacity[1]: spot in every zone is in entry 0 already - name other zones, or leave"
            + " it out",
        ),
    ),
    Wrong(
        name="no capacity",
        cluster=(("        capacity:\n          - market: spot\n    lifetime", "        capacity: []\n    lifetime"),),
        says=(C + "queues[1].capacity: is empty - give at least 1",),
    ),
    Wrong(
        name="price limit on demand",
        cluster=(("market: on-demand", "market: on-demand\n            max_price: 3"),),
        says=(C + "queues[0].capacity[1].max_price: is for spot only, this pool is on-demand - leave it out",),
    ),
    Wrong(
        name="price limit of nothing",
        cluster=(("max_price: 8.5", "max_price: 0"),),
        says=(C + "queues[0].capacity[0].max_price: 0 is too small - use more than 0",),
    ),
    Wrong(
        name="price limit in words",
        cluster=(("max_price: 8.5", "max_price: cheap"),),
        says=(C + "queues[0].capacity[0].max_price: expected a number, found 'cheap'",),
    ),
    Wrong(
        name="price limit without end",
        cluster=(("max_price: 8.5", "max_price: 1e999"),),
        says=(C + "queues[0].capacity[0].max_price: expected a number, found inf",),
    ),
    Wrong(
        name="zone that the base lacks",
        cluster=(("zones: [use1-az1]", "zones: [use1-az4]"),),
        says=(
            C
            + "queues[0].capacity[0].zones[0]: 'use1-az4' is not a zone of base 'dev' - it has use1-az1,"
            + " use1-az2; add it there",
        ),
    ),
    Wrong(
        name="zone by its name",
        cluster=(("zones: [use1-az1]", "zones: [us-east-1a]"),),
        says=(
            C
            + "queues[0].capacity[0].zones[0]: 'us-east-1a' is a zone's name, base 'dev' has its zones by id"
            + " - use one of use1-az1, use1-az2",
        ),
    ),
    Wrong(
        name="zone that is a Local Zone",
        cluster=(("zones: [use1-az1]", "zones: [use1-atl2-az1]"),),
        says=(
            C
            + "queues[0].capacity[0].zones[0]: 'use1-atl2-az1' is a Local Zone, where corral places nothing -"
            + " use one of use1-az1, use1-az2, use1-az3, use1-az4, use1-az5, use1-az6",
        ),
    ),
    Wrong(
        name="zone of another region",
        cluster=(("zones: [use1-az1]", "zones: [usw2-az1]"),),
        says=(
            C
            + "queues[0].capacity[0].zones[0]: 'usw2-az1' is not a zone of us-east-1 - it has use1-az1,"
            + " use1-az2, use1-az3, use1-az4, use1-az5, use1-az6",
        ),
    ),
    Wrong(
        name="zone twice",
        cluster=(("zones: [use1-az1]", "zones: [use1-az1, use1-az1]"),),
        says=(C + "queues[0].capacity[0].zones[1]: 'use1-az1' is listed twice - keep one",),
    ),
    Wrong(
        name="zones empty",
        cluster=(("zones: [use1-az1]", "zones: []"),),
        says=(C + "queues[0].capacity[0].zones: is empty - give at least 1",),
    ),
    Wrong(
        name="zones as text",
        cluster=(("zones: [use1-az1]", "zones: use1-az1"),),
        says=(C + "queues[0].capacity[0].zones: expected a list, found 'use1-az1'",),
    ),
    Wrong(
        name="job limit beyond the cluster's life",
        cluster=(("time_limit: 6h", "time_limit: 13h"),),
        says=(C + "queues[0].time_limit: 13h is longer than the cluster lives - use lifetime.ttl 12h or less",),
    ),
    Wrong(
        name="job limit under a minute",
        cluster=(("time_limit: 6h", "time_limit: 5s"),),
        says=(C + "queues[0].time_limit: 5s is too short - use 1m or more",),
    ),
    Wrong(
        name="head in a zone that the base lacks",
        cluster=(("zone: use1-az2\n      address", "zone: use1-az3\n      address"),),
        says=(C + "head.zone: 'use1-az3' is not a zone of base 'dev' - it has use1-az1, use1-az2; add it there",),
    ),
    Wrong(
        name="head outside the VPC",
        cluster=(("10.64.32.20", "10.65.0.20"),),
        says=(C + "head.address: 10.65.0.20 is outside the VPC of base 'dev' - it has 10.64.0.0/16",),
    ),
    Wrong(
        name="head's address incomplete",
        cluster=(("10.64.32.20", "10.64.32"),),
        says=(C + "head.address: '10.64.32' is not an IPv4 address - write it like 10.64.0.20",),
    ),
    Wrong(
        name="root volume too small",
        cluster=(("root_gib: 150", "root_gib: 5"),),
        says=(C + "head.root_gib: 5 is too small - use 20 or more",),
    ),
    Wrong(
        name="root volume too large",
        cluster=(("root_gib: 150", "root_gib: 20000"),),
        says=(C + "head.root_gib: 20000 is too large - use 16384 or less",),
    ),
    Wrong(
        name="root volume with a unit",
        cluster=(("root_gib: 150", "root_gib: 150 GiB"),),
        says=(C + "head.root_gib: expected a whole number, found '150 GiB'",),
    ),
    Wrong(
        name="head without fields",
        cluster=(
            (
                (
                    "    head:\n"
                    "      instance_type: m7i.2xlarge\n"
                    "      zone: use1-az2\n"
                    "      address: 10.64.32.20\n"
                    "      root_gib: 150\n"
                    "      state_gib: 50\n"
                ),
                "    head:\n",
            ),
        ),
        says=(C + "head: has no value - give one, or leave the line out",),
    ),
    Wrong(
        name="image profile unknown",
        cluster=(("profile: ubuntu-24.04-dlami", "profile: ubuntu-22.04-dlami"),),
        says=(
            C + "image.profile: 'ubuntu-22.04-dlami' is not in the catalogue - did you mean" + " 'ubuntu-24.04-dlami'?",
        ),
    ),
    Wrong(
        name="image profile of the box",
        cluster=(("profile: ubuntu-24.04-dlami", "profile: box-debian-12"),),
        says=(C + "image.profile: 'box-debian-12' exists in the box alone, which takes it by itself - leave it out",),
    ),
    Wrong(
        name="image id cut short",
        cluster=(("profile: ubuntu-24.04-dlami", "id: ami-123"),),
        says=(C + "image.id: 'ami-123' is not an image id - it looks like ami-0123456789abcdef0",),
    ),
    Wrong(
        name="Lustre size between steps",
        cluster=(("size_gib: 1200", "size_gib: 1500"),),
        says=(
            C
            + "storage.lustre[0].size_gib: 1500 is not a size of SCRATCH_2, which has 1200 GiB and multiples"
            + " of 2400 - use 1200 or 2400",
        ),
    ),
    Wrong(
        name="Lustre size below the smallest",
        cluster=(("size_gib: 1200", "size_gib: 100"),),
        says=(
            C
            + "storage.lustre[0].size_gib: 100 is not a size of SCRATCH_2, which has 1200 GiB and multiples"
            + " of 2400 - use 1200",
        ),
    ),
    Wrong(
        name="Lustre deployment superseded",
        cluster=(("deployment: SCRATCH_2", "deployment: SCRATCH_1"),),
        says=(C + "storage.lustre[0].deployment: 'SCRATCH_1' is not in the catalogue - did you mean 'SCRATCH_2'?",),
    ),
    Wrong(
        name="Lustre in a zone that the base lacks",
        cluster=(("          zone: use1-az1", "          zone: use1-az6"),),
        says=(
            C
            + "storage.lustre[0].zone: 'use1-az6' is not a zone of base 'dev' - it has use1-az1, use1-az2;"
            + " add it there",
        ),
    ),
    Wrong(
        name="Lustre mounted below home",
        cluster=(("mount: /scratch", "mount: /home/scratch"),),
        says=(
            C
            + "storage.lustre[0].mount: '/home/scratch' would hide /home, which belongs to the machine - use"
            + " another one",
        ),
    ),
    Wrong(
        name="Lustre mounted on a relative path",
        cluster=(("mount: /scratch", "mount: scratch"),),
        says=(C + "storage.lustre[0].mount: 'scratch' is not a directory to mount on - write it like /scratch",),
    ),
    Wrong(
        name="Lustre mounted on the root",
        cluster=(("mount: /scratch", "mount: /"),),
        says=(C + "storage.lustre[0].mount: '/' is not a directory to mount on - write it like /scratch",),
    ),
    Wrong(
        name="Lustre name whose mount the system owns",
        cluster=(
            ("name: scratch\n", "name: opt\n"),
            ("          mount: /scratch\n", ""),
        ),
        says=(
            C
            + "storage.lustre[0].name: '/opt' would hide /opt, which belongs to the machine - set mount, or"
            + " use another name",
        ),
    ),
    Wrong(
        name="Lustre twice in one place",
        cluster=(
            (
                "        - name: scratch\n",
                ("        - {name: more, size_gib: 1200, mount: /scratch/more}\n        - name: scratch\n"),
            ),
        ),
        says=(
            C
            + "storage.lustre[1].mount: '/scratch' overlaps '/scratch/more' of entry 0 - mount them side by"
            + " side",
        ),
    ),
    Wrong(
        name="Lustre name twice",
        cluster=(
            (
                "        - name: scratch\n",
                ("        - {name: scratch, size_gib: 1200, mount: /other}\n        - name: scratch\n"),
            ),
        ),
        says=(C + "storage.lustre[1].name: 'scratch' is also the name of entry 0 - each needs its own",),
    ),
    Wrong(
        name="data path relative",
        cluster=(("path: /data", "path: data"),),
        says=(
            C
            + "storage.lustre[0].data[0].path: 'data' is not a directory of the file system - write it like"
            + " /data",
        ),
    ),
    Wrong(
        name="data paths overlapping",
        cluster=(
            ("export: [NEW]", ("export: [NEW]\n            - {path: /data/more, s3: s3://corral-example-corpus/more}")),
        ),
        says=(
            C
            + "storage.lustre[0].data[1].path: '/data/more' overlaps '/data' of entry 0 - link directories"
            + " side by side",
        ),
    ),
    Wrong(
        name="S3 place linked twice",
        cluster=(
            ("export: [NEW]", ("export: [NEW]\n            - {path: /more, s3: s3://corral-example-corpus/tokens/}")),
        ),
        says=(
            C
            + "storage.lustre[0].data[1].s3: 's3://corral-example-corpus/tokens/' is linked by entry 0"
            + " already - link each place once",
        ),
    ),
    Wrong(
        name="nine data links",
        cluster=(
            (
                "export: [NEW]",
                (
                    "export: [NEW]\n"
                    "            - {path: /d2, s3: s3://corral-example-corpus/d2}\n"
                    "            - {path: /d3, s3: s3://corral-example-corpus/d3}\n"
                    "            - {path: /d4, s3: s3://corral-example-corpus/d4}\n"
                    "            - {path: /d5, s3: s3://corral-example-corpus/d5}\n"
                    "            - {path: /d6, s3: s3://corral-example-corpus/d6}\n"
                    "            - {path: /d7, s3: s3://corral-example-corpus/d7}\n"
                    "            - {path: /d8, s3: s3://corral-example-corpus/d8}\n"
                    "            - {path: /d9, s3: s3://corral-example-corpus/d9}"
                ),
            ),
        ),
        says=(C + "storage.lustre[0].data: has 9 entries - FSx links at most 8 a file system",),
    ),
    Wrong(
        name="S3 place without its scheme",
        cluster=(("s3://corral-example-corpus/tokens", "corral-example-corpus/tokens"),),
        says=(
            C
            + "storage.lustre[0].data[0].s3: 'corral-example-corpus/tokens' is not a place in S3 - write it"
            + " like s3://bucket/prefix",
        ),
    ),
    Wrong(
        name="S3 bucket with capitals",
        cluster=(("s3://corral-example-corpus/tokens", "s3://Corral_Corpus/tokens"),),
        says=(
            C
            + "storage.lustre[0].data[0].s3: 's3://Corral_Corpus/tokens' is not a place in S3 - write it like"
            + " s3://bucket/prefix",
        ),
    ),
    Wrong(
        name="export event twice",
        cluster=(("export: [NEW]", "export: [NEW, NEW]"),),
        says=(C + "storage.lustre[0].data[0].export[1]: 'NEW' is listed twice - keep one",),
    ),
    Wrong(
        name="export event unknown",
        cluster=(("export: [NEW]", "export: [MOVED]"),),
        says=(C + "storage.lustre[0].data[0].export[0]: 'MOVED' is not possible - known are NEW, CHANGED, DELETED",),
    ),
    Wrong(
        name="life too long",
        cluster=(("ttl: 12h", "ttl: 200d"),),
        says=(C + "lifetime.ttl: 200d is too long - use 183d or less, or leave it out",),
    ),
    Wrong(
        name="life in words",
        cluster=(("ttl: 12h", "ttl: forever"),),
        says=(C + "lifetime.ttl: 'forever' is not a duration - write it like 10m, 12h, 1h30m or 2d",),
    ),
    Wrong(
        name="life too short",
        cluster=(
            ("ttl: 12h", "ttl: 20m"),
            ("idle: 1h", "idle: 10m"),
            ("        time_limit: 6h\n", ""),
        ),
        says=(C + "lifetime.ttl: 20m is too short to boot in - use 30m or more",),
    ),
    Wrong(
        name="idle as long as the life",
        cluster=(("idle: 1h", "idle: 12h"),),
        says=(C + "lifetime.idle: 12h is not shorter than ttl 12h - it would never take effect",),
    ),
    Wrong(
        name="idle too short",
        cluster=(("idle: 1h", "idle: 1m"),),
        says=(C + "lifetime.idle: 1m is too short to boot in - use 10m or more",),
    ),
    Wrong(
        name="lifetime as one duration",
        cluster=(("    lifetime:\n      ttl: 12h\n      idle: 1h\n", "    lifetime: 12h\n"),),
        says=(C + "lifetime: expected fields (ttl, idle), found '12h'",),
    ),
    Wrong(
        name="tag key with a space",
        cluster=(("{project: llm}", '{"my project": llm}'),),
        says=(C + "tags['my project']: a tag's key may have letters, digits and + - = . _ : @ only",),
    ),
    Wrong(
        name="tag key of corral",
        cluster=(("{project: llm}", "{corral:cluster: x}"),),
        says=(
            C
            + "tags.corral:cluster: 'corral:cluster' is not yours to set - corral and AWS keep Name, corral:"
            + " and aws: for themselves",
        ),
    ),
    Wrong(
        name="tag Name",
        cluster=(("{project: llm}", "{Name: x}"),),
        says=(
            C
            + "tags.Name: 'Name' is not yours to set - corral and AWS keep Name, corral: and aws: for"
            + " themselves",
        ),
    ),
    Wrong(
        name="tag value too long",
        cluster=(
            (
                "{project: llm}",
                (
                    "{project: ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab"
                    " ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab"
                    " ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab"
                    " ab ab ab }"
                ),
            ),
        ),
        says=(C + "tags.project: a tag's value has at most 256 characters, this one has 269",),
    ),
    Wrong(
        name="tag with an AWS key",
        cluster=(("{project: llm}", "{key: AKIAIOSFODNN7EXAMPLE}"),),
        says=(
            C
            + "tags.key: looks like a secret, and everyone who may list resources reads tags - keep it in"
            + " Secrets Manager",
        ),
    ),
    Wrong(
        name="tag with a Hugging Face token",
        cluster=(("{project: llm}", "{key: hf_abcdefghijklmnopqrstuvwxyzabcdefgh}"),),
        says=(
            C
            + "tags.key: looks like a secret, and everyone who may list resources reads tags - keep it in"
            + " Secrets Manager",
        ),
    ),
    Wrong(
        name="tag with a random key",
        cluster=(("{project: llm}", "{key: 0123456789abcdef0123456789abcdef01234567}"),),
        says=(
            C
            + "tags.key: looks like a secret, and everyone who may list resources reads tags - keep it in"
            + " Secrets Manager",
        ),
    ),
    Wrong(
        name="tag value as a number",
        cluster=(("{project: llm}", "{count: 5}"),),
        says=(C + "tags.count: expected text, found 5 - put it in quotes",),
    ),
    Wrong(
        name="tags as a list",
        cluster=(("{project: llm}", "[llm]"),),
        says=(C + "tags: expected fields, found a list",),
    ),
    Wrong(
        name="base unknown",
        cluster=(("base: dev", "base: prod"),),
        says=(C + "base: there is no base 'prod' - known is dev",),
    ),
    Wrong(
        name="base mistyped",
        cluster=(("base: dev", "base: dve"),),
        says=(C + "base: there is no base 'dve' - did you mean 'dev'?",),
    ),
    Wrong(
        name="base as a number",
        cluster=(("base: dev", "base: 5"),),
        says=(C + "base: expected text, found 5 - put it in quotes",),
    ),
    Wrong(
        name="region unknown",
        cluster=(("aws:region: us-east-1", "aws:region: us-esat-1"),),
        says=(C + "aws:region: 'us-esat-1' is not in the catalogue - did you mean 'us-east-1'?",),
    ),
    Wrong(
        name="region other than the base's",
        cluster=(
            ("aws:region: us-east-1", "aws:region: us-west-2"),
            ("zone: use1-az2\n      address", "address"),
            ("          zone: use1-az1\n", ""),
            ("            zones: [use1-az1]\n", ""),
        ),
        says=(C + "aws:region: 'us-west-2' is not the region of base 'dev' - use 'us-east-1', or another base",),
    ),
    Wrong(
        name="region missing",
        cluster=(("  aws:region: us-east-1\n", ""),),
        says=(C + "aws:region: is missing - the region to work in, such as us-east-1",),
    ),
    Wrong(
        name="spec under another key",
        cluster=(("corral-cluster:spec", "corral:spec"),),
        says=(C + "config: corral-cluster:spec is missing - it seems to stand under 'corral:spec'",),
    ),
    Wrong(
        name="spec missing",
        cluster=(("corral-cluster:spec", "corral-cluster:note"),),
        says=(C + "config: corral-cluster:spec is missing - see the shipped dev",),
    ),
    Wrong(
        name="spec as text",
        cluster=(("  corral-cluster:spec:\n", "  corral-cluster:spec: dev\n  corral-cluster:old:\n"),),
        says=(C + "corral-cluster:spec: expected fields, found 'dev'",),
    ),
    Wrong(
        name="number with a leading zero",
        cluster=(("root_gib: 150", "root_gib: 0150"),),
        says=(C + "line 10, column 17: 0150 is not read alike everywhere - put it in quotes",),
    ),
    Wrong(
        name="date without quotes",
        cluster=(("{project: llm}", "{until: 2026-12-31}"),),
        says=(C + "line 46, column 19: 2026-12-31 is not read alike everywhere - put it in quotes",),
    ),
    Wrong(
        name="region as a number",
        cluster=(("aws:region: us-east-1", "aws:region: 1"),),
        says=(
            C
            + "aws:region: '1' is not in the catalogue - known are af-south-1, ap-east-1, ap-northeast-1,"
            + " ap-northeast-2, ap-northeast-3, ap-south-1, ap-south-2, ap-southeast-1, ap-southeast-2,"
            + " ap-southeast-3, ap-southeast-4, ap-southeast-5, ca-central-1, ca-west-1, eu-central-1,"
            + " eu-central-2, eu-north-1, eu-south-1, eu-south-2, eu-west-1, eu-west-2, eu-west-3,"
            + " il-central-1, me-central-1, me-south-1, sa-east-1, us-east-1, us-east-2, us-west-1, us-west-2",
        ),
    ),
    Wrong(
        name="key twice",
        cluster=(
            (
                "      instance_type: m7i.2xlarge\n",
                "      instance_type: m7i.2xlarge\n      instance_type: m7i.xlarge\n",
            ),
        ),
        says=(C + "line 8, column 7: 'instance_type' is given twice - keep one",),
    ),
    Wrong(
        name="indented with a tab",
        cluster=(("    head:\n", "    head:\n\t"),),
        says=(C + "line 7, column 1: a tab where spaces are expected - indent with spaces",),
    ),
    Wrong(
        name="brace left open",
        cluster=(("nodes: {max: 8}", "nodes: {max: 8"),),
        says=(C + "line 40, column 16: a brace that is not closed",),
    ),
    Wrong(
        name="indented one space too few",
        cluster=(("    head:", "   head:"),),
        says=(C + "line 6, column 4: indented like nothing above it - line it up with what it stands beside",),
    ),
    Wrong(
        name="merge key",
        cluster=(("    base: dev\n", "    base: dev\n    <<: {}\n"),),
        says=(C + "line 6, column 5: merge keys (<<) are not supported - write the fields out",),
    ),
    Wrong(
        name="YAML tag",
        cluster=(("base: dev", "base: !secret dev"),),
        says=(C + "line 5, column 11: tags such as !secret are not supported - write plain values",),
    ),
    Wrong(
        name="two documents",
        cluster=(("    tags: {project", "---\n    tags: {project"),),
        says=(C + "line 46, column 1: expected a single document in the stream, but found another document",),
    ),
    Wrong(
        name="key that is a list",
        cluster=(("    tags: {project", "    [a, b]: c\n    tags: {project"),),
        says=(C + "line 46, column 5: a key must be text",),
    ),
    Wrong(
        name="alias that holds itself",
        cluster=(("    tags: {project: llm}", "    tags: &a {project: *a}"),),
        says=(C + "line 46, column 11: nested deeper than 30 levels",),
    ),
    Wrong(
        name="network too small",
        base=(("10.64.0.0/16", "10.64.0.0/24"),),
        says=(B + "network.cidr: 10.64.0.0/24 holds 256 addresses, the subnets need 4096 - use a /20 or larger",),
    ),
    Wrong(
        name="network too large",
        base=(("10.64.0.0/16", "10.0.0.0/8"),),
        says=(B + "network.cidr: 10.0.0.0/8 holds 16777216 addresses, a VPC at most 65536 - use a /16",),
    ),
    Wrong(
        name="network with host bits",
        base=(("10.64.0.0/16", "10.64.0.1/16"),),
        says=(B + "network.cidr: '10.64.0.1/16' is not an IPv4 network - write it like 10.64.0.0/16",),
    ),
    Wrong(
        name="network public",
        base=(("10.64.0.0/16", "52.95.0.0/16"),),
        says=(B + "network.cidr: 52.95.0.0/16 is not private - use a range inside 10.0.0.0/8, such as 10.64.0.0/16",),
    ),
    Wrong(
        name="network of Docker",
        base=(("10.64.0.0/16", "172.17.0.0/16"),),
        says=(
            B
            + "network.cidr: 172.17.0.0/16 overlaps 172.17.0.0/16, which Docker takes on every machine - use"
            + " another range",
        ),
    ),
    Wrong(
        name="network in words",
        base=(("10.64.0.0/16", "everything"),),
        says=(B + "network.cidr: 'everything' is not an IPv4 network - write it like 10.64.0.0/16",),
    ),
    Wrong(
        name="zones missing",
        base=(("      zones: [use1-az1, use1-az2]\n", ""),),
        says=(B + "network.zones: is missing - give at least one zone, such as [use1-az4], or adopt a VPC",),
    ),
    Wrong(
        name="zones of a base twice and unknown",
        base=(("[use1-az1, use1-az2]", "[use1-az1, use1-az1, use1-az9]"),),
        says=(
            B + "network.zones[1]: 'use1-az1' is listed twice - keep one",
            B
            + "network.zones[2]: 'use1-az9' is not a zone of us-east-1 - it has use1-az1, use1-az2, use1-az3,"
            + " use1-az4, use1-az5, use1-az6",
        ),
    ),
    Wrong(
        name="zones of a base empty",
        base=(("[use1-az1, use1-az2]", "[]"),),
        says=(B + "network.zones: is missing - give at least one zone, such as [use1-az4], or adopt a VPC",),
    ),
    Wrong(
        name="endpoint twice, endpoint that is not needed",
        base=(("[ssm, ec2]", "[ssm, ssm, s3]"),),
        says=(
            B + "network.interface_endpoints[1]: 'ssm' is listed twice - keep one",
            B
            + "network.interface_endpoints[2]: 's3' is not possible - known are ec2, ec2messages,"
            + " elasticfilesystem, fsx, kms, logs, monitoring, secretsmanager, sns, ssm, ssmmessages, sts",
        ),
    ),
    Wrong(
        name="throughput of EFS unknown",
        base=(("throughput: elastic", "throughput: provisioned"),),
        says=(B + "storage.home.throughput: 'provisioned' is not possible - known are elastic, bursting",),
    ),
    Wrong(
        name="home without a value",
        base=(("home: {throughput: elastic}", "home:"),),
        says=(B + "storage.home: has no value - give one, or leave the line out",),
    ),
    Wrong(
        name="storage of another kind",
        base=(("      home:", "      zfs: []\n      home:"),),
        says=(B + "storage.zfs: is not a known field - known are home, lustre",),
    ),
    Wrong(
        name="budget of nothing",
        base=(("2000", "0"),),
        says=(B + "budget.usd_per_month: 0 is too small - use 1 or more",),
    ),
    Wrong(
        name="budget in words",
        base=(("2000", "lots"),),
        says=(B + "budget.usd_per_month: expected a whole number, found 'lots'",),
    ),
    Wrong(
        name="budget without its amount",
        base=(("      usd_per_month: 2000\n", ""),),
        says=(B + "budget.usd_per_month: is missing - the budget in whole US dollars a month",),
    ),
    Wrong(
        name="mail address without a domain",
        base=(("[ml-team@example.com]", "[ml-team]"),),
        says=(B + "budget.notify[0]: 'ml-team' is not a mail address - write it like a@b.example",),
    ),
    Wrong(
        name="mail address twice",
        base=(("[ml-team@example.com]", "[a@b.c, a@b.c]"),),
        says=(B + "budget.notify[1]: 'a@b.c' is listed twice - keep one",),
    ),
    Wrong(
        name="eleven mail addresses",
        base=(
            (
                "[ml-team@example.com]",
                ("[a0@b.c, a1@b.c, a2@b.c, a3@b.c, a4@b.c, a5@b.c, a6@b.c, a7@b.c, a8@b.c, a9@b.c, a10@b.c]"),
            ),
        ),
        says=(B + "budget.notify: has 11 entries - at most 10 are possible",),
    ),
    Wrong(
        name="tag of AWS",
        base=(("{team: ml}", "{aws:team: ml}"),),
        says=(
            B
            + "tags.aws:team: 'aws:team' is not yours to set - corral and AWS keep Name, corral: and aws: for"
            + " themselves",
        ),
    ),
    Wrong(
        name="many mistakes in both files",
        base=(
            ("10.64.0.0/16", "10.64.0.0/24"),
            ("2000", "0"),
            ("    tags: {team: ml}\n", "    tags: {team: ml}\n    region: us-east-1\n"),
        ),
        cluster=(
            ("p4d.24xlarge", "p4d.24xl"),
            ("suspend_after", "suspend"),
            ("nodes: {max: 8}", "nodes: {max: x}"),
            ("idle: 1h", "idle: 13h"),
            ("size_gib: 1200", "size_gib: 2000"),
            ("path: /data", "path: data"),
            ("base: dev", "bose: dev"),
        ),
        says=(
            B + "network.cidr: 10.64.0.0/24 holds 256 addresses, the subnets need 4096 - use a /20 or larger",
            B + "budget.usd_per_month: 0 is too small - use 1 or more",
            B + "region: is not a known field - known are network, storage, budget, tags",
            C + "bose: is not a known field - did you mean 'base'?",
            C
            + "storage.lustre[0].size_gib: 2000 is not a size of SCRATCH_2, which has 1200 GiB and multiples"
            + " of 2400 - use 1200 or 2400",
            C
            + "storage.lustre[0].data[0].path: 'data' is not a directory of the file system - write it like"
            + " /data",
            C + "queues[0].instance_type: 'p4d.24xl' is not in the catalogue - did you mean 'p4d.24xlarge'?",
            C + "queues[0].suspend: is not a known field - did you mean 'suspend_after'?",
            C + "queues[1].nodes.max: expected a whole number, found 'x'",
            C + "lifetime.idle: 13h is not shorter than ttl 12h - it would never take effect",
        ),
    ),
    Wrong(
        name="entries before a mistake that were left out",
        cluster=(("      - name: train\n", "      - 5\n      -\n      - name: Train\n"),),
        says=(
            C
            + "queues[0]: expected fields (name, instance_type, nodes, suspend_after, capacity, efa, placement, image,"
            + " root_gib, nvme, exclusive, time_limit, weight, accounts, extra), found 5",
            C + "queues[1]: has no value - give one, or leave the line out",
            C
            + "queues[2].name: 'Train' is not a name - use small letters, digits and hyphens, a letter first,"
            + " no hyphen last",
        ),
    ),
    Wrong(
        name="region of the base mistyped",
        base=(("aws:region: us-east-1", "aws:region: us-esat-1"),),
        says=(B + "aws:region: 'us-esat-1' is not in the catalogue - did you mean 'us-east-1'?",),
    ),
    Wrong(
        name="number of nodes without a value",
        cluster=(("nodes: {max: 8}", "nodes: {max: }"),),
        says=(C + "queues[1].nodes.max: has no value - give one, or leave the line out",),
    ),
    Wrong(
        name="queues without a value",
        cluster=(("    queues:\n", "    queues:\n    old:\n"),),
        says=(
            C + "queues: has no value - give one, or leave the line out",
            C
            + "old: is not a known field - known are base, head, image, storage, queues, jobs, slurm, access, lifetime,"
            + " usd_per_hour_max, tags",
        ),
    ),
    Wrong(
        name="only queue without its nodes",
        cluster=(
            (
                (
                    "      - name: train\n"
                    "        instance_type: p4d.24xlarge\n"
                    "        nodes: {min: 1, max: 4}\n"
                    "        suspend_after: 10m\n"
                    "        capacity:\n"
                    "          - market: spot\n"
                    "            zones: [use1-az1]\n"
                    "            max_price: 8.5\n"
                    "          - market: on-demand\n"
                    "        efa: on\n"
                    "        time_limit: 6h\n"
                ),
                "",
            ),
            ("nodes: {max: 8}", "nodes: "),
        ),
        says=(C + "queues[0].nodes: has no value - give one, or leave the line out",),
    ),
    Wrong(
        name="price of spot beyond reason",
        cluster=(("max_price: 8.5", "max_price: 1e9"),),
        says=(
            C
            + "queues[0].capacity[0].max_price: 1e+09 is more than 10 times the on-demand price of p4d.24xlarge"
            + " (21.9576), the most that EC2 takes - leave it out, and spot costs the on-demand price at most",
        ),
    ),
    Wrong(
        name="price of spot that is next to nothing",
        cluster=(("max_price: 8.5", "max_price: 0.0005"),),
        says=(
            C + "queues[0].capacity[0].max_price: 0.0005 is less than EC2 takes - use 0.001 or more, or leave it out",
        ),
    ),
    Wrong(
        name="price of spot for a type without a known price",
        cluster=(("p4d.24xlarge", "p4d.24xl"), ("max_price: 8.5", "max_price: 1e9")),
        says=(C + "queues[0].instance_type: 'p4d.24xl' is not in the catalogue - did you mean 'p4d.24xlarge'?",),
    ),
    Wrong(
        name="secret named by its tag",
        base=(("tags: {team: ml}", "tags: {wandb-api-key: short}"),),
        cluster=(("tags: {project: llm}", "tags: {password: hunter2, secret-owner: ann}"),),
        says=(
            B
            + "tags.wandb-api-key: 'wandb-api-key' names a secret, and everyone who may list resources reads tags -"
            + " keep it in Secrets Manager",
            C
            + "tags.password: 'password' names a secret, and everyone who may list resources reads tags - keep it in"
            + " Secrets Manager",
        ),
    ),
    Wrong(
        name="efa with ena on a type without",
        cluster=(("instance_type: g5.xlarge", "instance_type: g5.xlarge\n        efa: with-ena"),),
        says=(C + "queues[1].efa: 'with-ena', but g5.xlarge has no EFA - use 'auto' or another instance_type",),
    ),
    Wrong(
        name="static nodes with efa that no zone can hold",
        cluster=(
            ("nodes: {min: 1, max: 4}", "nodes: {min: 3, max: 4}"),
            (
                "          - market: spot\n"
                "            zones: [use1-az1]\n"
                "            max_price: 8.5\n"
                "          - market: on-demand\n",
                "          - {market: reservation, zones: [use1-az1], ids: [cr-0123456789abcdef0], count: 2}\n"
                "          - {market: reservation, zones: [use1-az2], ids: [cr-0123456789abcdef1], count: 2}\n",
            ),
        ),
        says=(
            C
            + "queues[0].nodes.min: 3 is more than any one zone has, and EFA does not cross zones: its capacity"
            + " counts 2 in use1-az1, 2 in use1-az2 - use 2 or less, or a queue for each zone",
        ),
    ),
    Wrong(
        name="image with a slurm that is too old",
        cluster=(("profile: ubuntu-24.04-dlami", "id: ami-0123456789abcdef0\n      slurm: 21.08"),),
        says=(C + "image.slurm: '21.08' is too old: corral writes for Slurm 22.05 and later - use a newer one",),
    ),
    Wrong(
        name="image with a slurm but no id",
        cluster=(("profile: ubuntu-24.04-dlami", "slurm: '24.11'"),),
        says=(C + "image.slurm: is for an image of your own - give its id, too, or leave it out",),
    ),
    Wrong(
        name="image with a slurm that never was",
        cluster=(("profile: ubuntu-24.04-dlami", "id: ami-0123456789abcdef0\n      slurm: 24.12"),),
        says=(
            C
            + "image.slurm: '24.12' is no release of Slurm - corral knows 22.05, 23.02, 23.11, 24.05, 24.11,"
            + " 25.05, 25.11, 26.05",
        ),
    ),
    Wrong(
        name="image with a slurm that is a word",
        cluster=(("profile: ubuntu-24.04-dlami", "id: ami-0123456789abcdef0\n      slurm: newest"),),
        says=(C + "image.slurm: 'newest' is no version of Slurm - write it as 23.11 or 23.11.4",),
    ),
    Wrong(
        name="image with a slurm that is a whole number",
        cluster=(("profile: ubuntu-24.04-dlami", "id: ami-0123456789abcdef0\n      slurm: 24"),),
        says=(C + "image.slurm: expected text, found 24 - put it in quotes",),
    ),
    Wrong(
        name="own key that the own image's slurm lacks",
        cluster=(
            ("profile: ubuntu-24.04-dlami", "id: ami-0123456789abcdef0\n      slurm: 24.11"),
            ("    tags: {project: llm}\n", "    slurm:\n      extra: {PrologTimeout: 60}\n    tags: {project: llm}\n"),
        ),
        says=(
            C
            + "slurm.extra.PrologTimeout: is for Slurm from 25.05, image 'ami-0123456789abcdef0' has 24.11 - leave"
            + " it out",
        ),
    ),
    Wrong(
        name="queue with a newer own slurm than the head",
        cluster=(
            ("profile: ubuntu-24.04-dlami", "profile: ubuntu-24.04-dlami"),
            ("nodes: {max: 8}", "nodes: {max: 8}\n        image: {id: ami-0123456789abcdef0, slurm: 24.11}"),
        ),
        says=(C + "queues[1].image: 'ami-0123456789abcdef0' has Slurm 24.11, the head 23.11 - nodes cannot be newer",),
    ),
    Wrong(
        name="queue with a much older slurm than the head's own",
        cluster=(
            ("profile: ubuntu-24.04-dlami", "id: ami-0123456789abcdef0\n      slurm: 26.05"),
            ("nodes: {max: 8}", "nodes: {max: 8}\n        image: {profile: ubuntu-24.04-dlami}"),
        ),
        says=(
            C
            + "queues[1].image: 'ubuntu-24.04-dlami' has Slurm 23.11, the head 26.05 - nodes can be 3 releases"
            + " older, not more",
        ),
    ),
    Wrong(
        name="own image without the drivers of the queue's machines",
        cluster=(
            ("profile: ubuntu-24.04-dlami", "profile: ubuntu-24.04-dlami"),
            ("instance_type: g5.xlarge", "instance_type: trn1.32xlarge\n        image: {id: ami-0123456789abcdef0}"),
        ),
        says=(
            C
            + "queues[1].instance_type: trn1.32xlarge has Trainium, for which image 'ubuntu-24.04-dlami' has no"
            + " driver - use the image ubuntu-24.04-neuron-dlami, as the profile beside the id of an image of your"
            + " own that has one",
        ),
    ),
    Wrong(
        name="own plugin directory",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {PluginDir: /nowhere, plugstackconfig: /nowhere}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C + "slurm.extra.PluginDir: is kept for corral, which puts Slurm's files on hosts itself - leave it out",
            C
            + "slurm.extra.plugstackconfig: is kept for corral, which puts Slurm's files on hosts itself"
            + " - leave it out",
        ),
    ),
    Wrong(
        name="accounting of one's own",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {AccountingStorageEnforce: limits}\n    tags: {project: llm}\n",
            ),
        ),
        says=(C + "slurm.extra.AccountingStorageEnforce: is set by corral, whose working rests on it - leave it out",),
    ),
    Wrong(
        name="submit plugin without its file",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {JobSubmitPlugins: 'require_timelimit,lua'}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "slurm.extra.JobSubmitPlugins: 'require_timelimit,lua' needs /etc/slurm/job_submit.lua, which corral"
            + " puts on no head: slurmctld ends - leave it out",
        ),
    ),
    Wrong(
        name="filter plugin without its file",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {CliFilterPlugins: cli_filter/lua}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "slurm.extra.CliFilterPlugins: 'cli_filter/lua' needs /etc/slurm/cli_filter.lua, which corral puts"
            + " on no head: every sbatch, salloc and srun fails - leave it out",
        ),
    ),
    Wrong(
        name="preemption without its mode",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {PreemptType: preempt/partition_prio}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "slurm.extra.PreemptType: 'preempt/partition_prio' without a PreemptMode: slurmctld ends - set that,"
            + " too, such as REQUEUE",
        ),
    ),
    Wrong(
        name="preemption without its type",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {preemptmode: REQUEUE}\n    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "slurm.extra.preemptmode: 'REQUEUE' without a PreemptType: slurmctld ends - set that, too, such as"
            + " preempt/partition_prio",
        ),
    ),
    Wrong(
        name="preemption by suspending alone",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {PreemptType: preempt/partition_prio, PreemptMode: SUSPEND}\n"
                "    tags: {project: llm}\n",
            ),
        ),
        says=(C + "slurm.extra.PreemptMode: 'SUSPEND': slurmctld ends, for SUSPEND needs GANG - use SUSPEND,GANG",),
    ),
    Wrong(
        name="files that slurmctld cannot write",
        cluster=(
            (
                "    tags: {project: llm}\n",
                "    slurm:\n      extra: {SlurmSchedLogFile: /nowhere/x, JobCompType: jobcomp/filetxt}\n"
                "    tags: {project: llm}\n",
            ),
        ),
        says=(
            C
            + "slurm.extra.SlurmSchedLogFile: '/nowhere/x' cannot be written: slurmctld ends - put it into"
            + " /var/log/slurm/",
            C
            + "slurm.extra.JobCompType: 'jobcomp/filetxt' without a JobCompLoc in /var/log/slurm/: slurmctld ends"
            + " - set that, too, such as /var/log/slurm/jobs.log",
        ),
    ),
)
