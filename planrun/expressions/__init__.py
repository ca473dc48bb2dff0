"""The one expression language: parsed and checked at load time, walked at run time.

    parse.parse(text) -> Tree                      a bare expression, as under `condition:`
    parse.parse_template(text) -> str | Template   text with `${{ … }}`; plain text comes back as it is
    parse.parse_script(text) -> str | Template     the same for `run:`, where `| sh` is allowed
    check.references(tree) -> tuple[Reference]     every path that is read, in the order of the text
    check.infer(tree, types) -> Type               static types; check.check_condition wants a boolean
    evaluate.evaluate(tree, scope) -> value        strict and total
    render.render / render_text / render_script    a template with its values put in, once
    spelling.spell(tree) -> str                    back to a text, one for each meaning

`evaluate` and `render` are on the hot path and import next to nothing; `parse` and `check` are for load time.
`${{` itself is written `$${{`. Trees and templates are nested tuples of plain data: see `tree`.
"""
