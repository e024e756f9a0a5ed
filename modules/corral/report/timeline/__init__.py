"""Views of a cluster's history: events and jobs as bars over time, as text and SVG."""
