"""Botocore's files in the box's process: each is read once, however many sessions moto opens."""

from __future__ import annotations

import json
import subprocess
import sys

READS = """
import json
from collections import Counter
import botocore.loaders
from corral.box.daemon.shared_loader import share_loader

reads = Counter()
read = botocore.loaders.JSONFileLoader._load_file
def counted(self, path, open_method):
    found = read(self, path, open_method)
    reads[path] += found is not None
    return found
botocore.loaders.JSONFileLoader._load_file = counted
share_loader()
from moto.ec2.models import ec2_backends
from moto.kms.models import kms_backends
for backends in (ec2_backends, kms_backends):
    backends["123456789012"]["us-east-1"]
print(json.dumps(reads))
"""


def test_backends_read_each_file_once() -> None:
    done = subprocess.run([sys.executable, "-c", READS], capture_output=True, text=True, check=True)
    reads = {path.rpartition("botocore/data/")[2]: count for path, count in json.loads(done.stdout).items()}
    assert reads["ec2/2016-11-15/service-2.json.gz"] == 1
    assert {path: count for path, count in reads.items() if count > 1} == {}
