"""What runs on the cluster's machines, with the image's own Python: the standard library and corral.model alone.

boto3 is imported only when AWS is asked: nobody needs it to leave a note. This room holds what a machine does first (it
fetches the cluster's files, mounts, starts daemons), and the head's keeper, which launches and ends machines.
"""
