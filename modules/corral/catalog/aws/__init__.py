"""Facts about AWS: instance types, regions and zones, images, prices, quotas, file systems, NCCL on EFA."""
