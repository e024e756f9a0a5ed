"""Rules beyond the type of a single field: which values must agree, each with a message that suggests a fix."""
