"""Drawings of things, not of numbers: boxes in boxes, laid out for whatever width there is."""
