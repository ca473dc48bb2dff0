"""Everything that a person can write in a plan file, as pydantic models: the one truth about keys and their types.

`python -m planrun.source.schema` writes two forms of it: `plan.schema.json` and `policy.schema.json` in `schemas/` for
editors, and `planrun/source/tables.py` for the loader, which must not spend 100 ms on importing pydantic.
"""
