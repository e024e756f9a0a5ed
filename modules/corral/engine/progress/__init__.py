"""The engine's output: events as records, progress display, diagnostics, and the final error."""
