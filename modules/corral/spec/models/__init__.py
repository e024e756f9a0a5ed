"""The fields of the files that users write, as pydantic models, and the notations of their values."""
