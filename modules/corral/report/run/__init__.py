"""Views of a declared training run before it starts: terminal, JSON, network, comparison, rent or buy."""
