"""Facts about accelerators and training on them: peaks, measured collectives, power, model shapes, failure rates."""
