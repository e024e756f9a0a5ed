"""What a user declares: pydantic models, their rules, and the files that they stand in.

Everything is parsed once, here, at the edge. Whatever is wrong comes out as one SpecErrors that names every mistake;
what gets past is right as far as it can be known without asking AWS. What follows from a spec is `plan`'s.
"""
