"""What users declare: pydantic models, validation rules, and readers of the YAML and TOML files.

Everything is parsed once, here, at the edge. One SpecErrors lists every mistake. A spec that passes is correct as far
as can be known without calling AWS. Computing a plan from a spec belongs to `plan`.
"""
