"""From the text of a command to its class of risk, without running it or looking at a disk.

    classify.classify(text, setting) -> Risk        a text that bash runs
    classify.classify_argv(argv, setting) -> Risk   a program that is started without a shell
    scripts.scripts(text, setting)                  files of the workspace that a text runs

    text → lexer.lex → syntax.parse (flow, scope) → commands.of_found → Risk

`programs` holds what is known of programs and tells how to add one; `table`, `options` and `kinds` read it. `paths` and
`environment` know places and variables. All of it is lexical and the same on every machine.
"""
