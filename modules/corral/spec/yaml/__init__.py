"""The YAML files of specs: read them as Pulumi does, recover from mistakes, write a new environment."""
