"""Charts as SVG text: bars, lines, points. They draw numbers and labels and know no domain."""
