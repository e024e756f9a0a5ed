"""What runs on the cluster's machines, with the image's own Python: the standard library and corral.model alone.

boto3 is imported in `s3` alone, and only when a bucket is read. This room holds what a machine does first, installing
the cluster's files; it starts no daemon yet, and launching and ending machines has no place in it yet.
"""
