"""Diagrams of an environment and its nodes as nested boxes in SVG. `charts` has charts of numbers."""
