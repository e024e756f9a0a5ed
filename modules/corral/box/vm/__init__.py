"""Virtual machines as the box's instances: their tools, image, accelerator, command line and package mirror."""
