"""EC2 in the box: instances, launches, templates, images and volumes. Capacity and networks have their own packages."""
