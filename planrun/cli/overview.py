"""The text of `planrun --help`, kept as text because click takes long to import."""

from __future__ import annotations

EXIT_CODES = """\
  0    every step completed, or its failure is tolerated (--strict: 1)
  1    a step failed
  2    the plan or the command line is wrong; nothing ran
  3    denied by a policy, rejected, or different from the lock
  4    internal error
  5    paused, or waiting for an approval or an answer; continue with resume
  74   the ledger or a report cannot be written
  124  the plan's deadline passed
  129  cancelled by SIGHUP; 130 by SIGINT, 143 by SIGTERM
"""
"""Of the verbs that run steps; the program states them only here."""

OVERVIEW = f"""\
planrun runs a reviewed plan in CI, and reports exactly what happened.

  planrun init                              write a first plan: plan.yml
  planrun validate plan.yml                 find all errors in it
  planrun show plan.yml                     see what it would do
  planrun execute plan.yml                  run it
  planrun report last --format markdown     read what happened
  planrun resume last                       continue where it failed

A plan is one YAML file:

  version: 1
  steps:
    - id: lint
      run: ruff check .
      on_failure: continue       # tolerated: the others continue
    - id: test
      run: pytest -q
      timeout: 10m
      retries: 2
    - id: publish
      depends_on: [test]         # starts when test is done; lint runs beside it
      condition: run.ci          # only in CI
      run: ./publish.sh

Plans:
  init [FILE]         write an example plan
  validate PLAN...    report every problem, with its line and column
  lint PLAN...        report risks and mistakes in valid plans
  show PLAN           table of the steps; graph, levels and order
  diff OLD NEW        show what changed in the meaning of a plan
  review PLAN         review a change of a plan, for pull requests
  explain PLAN STEP   explain when a step would run, and its risk
  risk COMMAND        show the class of risk of a command, and why
  generate GOAL       write a plan for a goal, for review
  expand PLAN         expand its abstract steps, for review
  classify TEXT       show whether a task is simple, medium or complex
  convert FILE        convert a workflow, a Taskfile or a Dagu file
  tools [NAME]        list the tools that a plan can call
  templates [VERB]    list templates, and make plans from them
  lock PLAN           write a lockfile, for execute --locked
  schema [NAME]       print the JSON Schema of plans, for editors

Runs:
  execute PLAN        run a plan
  resume RUN          continue a run that failed or was killed
  retry RUN STEP...   run steps again, and their dependents
  replan RUN          ask a model for a recovery plan
  approve RUN|PLAN    approve what a run waits for, or write an approval
  reject RUN [STEP]   reject it: the run ends with exit code 3
  decide RUN STEP=X   answer a run's questions
  finalize RUN        roll back and clean up a run that was interrupted
  pause RUN           pause a run until it is resumed
  cancel RUN          cancel a run from another shell
  queue VERB          queue plans in this folder and run them
  status [RUN]        show the progress of a run, and what blocks it
  runs                list the runs in this folder
  prune               delete finished runs
  stats               show durations and failures over many runs
  report RUN          write a report as JUnit, markdown, JSON or text
  explain RUN STEP    explain why a step ran, failed or did not run
  replay RUN          replay its records, also under another plan
  verify RUN          check that the ledger of a run is unchanged
  cache [VERB]        inspect or clear the cache

This machine:
  doctor              check Python, git, shell, space, containers, CI ...
  completion SHELL    print the completion script for bash, zsh or fish

RUN is the id of a run, the beginning of one, or `last`.
`planrun VERB --help` shows the options of a verb with examples.

Exit codes of execute, resume and retry:
{EXIT_CODES}
Environment:
  PLANRUN_JOBS, PLANRUN_REPORT_DIR, ...   default of the option of that name
  NO_COLOR, FORCE_COLOR                   without colours; with colours
  CI, GITHUB_ACTIONS, GITLAB_CI, ...      print plain lines, grouped for that CI
  PLANRUN_DEBUG=1                         show where an internal error happened
"""
