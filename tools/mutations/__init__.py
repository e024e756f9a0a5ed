"""Small patches in this folder, each of which breaks a promise of README.md or docs/fidelity.md.

A patch begins with three lines. `Promise:` names a row of the tables in docs/development.md, after its section.
`Breaks:` describes the effect on users. `Caught by:` names the test that fails. `python -m tools.mutations` applies
each patch to a copy of the checkout and runs the tests of its row.

The thirty promises were drawn by `random.Random(20261123).sample(sorted(promises), 30)` from the rows of both tables,
and one rule at random of each section of docs/fidelity.md. A patch is written before its author reads the row's tests.

The patches of security/ are the sown defects of docs/security.md. Theirs begin with `Weakened:`, a row of that table,
instead of `Promise:`, and the test that they name must fail.
"""
