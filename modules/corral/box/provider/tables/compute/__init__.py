"""EC2 resources: instances, launch templates, volumes, placement groups."""
