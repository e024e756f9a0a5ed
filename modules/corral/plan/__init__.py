"""Pure planning: a spec and the catalogue in, a frozen plan out. No file, no network, no clock is read here."""
