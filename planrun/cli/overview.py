"""What `planrun --help` says: a text that stands here as it is, since click takes longer to load than to be read."""

from __future__ import annotations

EXIT_CODES = """\
  0    every step completed, or its failure is tolerated (--strict: 1)
  1    a step failed
  2    the plan or the command line is wrong; nothing ran
  3    denied by a policy, rejected, or not what was locked
  4    internal error
  5    paused, or waiting for an approval or an answer; planrun resume goes on
  74   the ledger or a report cannot be written
  124  the plan's deadline passed
  129  cancelled by SIGHUP; 130 by SIGINT, 143 by SIGTERM
"""
"""Of the verbs that run steps; the only place where they are told in the program."""

OVERVIEW = f"""\
planrun runs a reviewed plan in CI, and says exactly what happened.

  planrun init                              write a first plan: plan.yml
  planrun validate plan.yml                 find every mistake in it
  planrun show plan.yml                     see what it would do
  planrun execute plan.yml                  run it
  planrun report last --format markdown     read what happened
  planrun resume last                       go on where it failed

A plan is one YAML file:

  version: 1
  steps:
    - id: lint
      run: ruff check .
      on_failure: continue       # tolerated: the others go on
    - id: test
      run: pytest -q
      timeout: 10m
      retries: 2
    - id: publish
      depends_on: [test]         # starts when test is done; lint runs beside it
      condition: run.ci          # only in CI
      run: ./publish.sh

Plans:
  init [FILE]         write an example plan to begin with
  validate PLAN...    report every problem, with its line and column
  lint PLAN...        advice: what a reviewer would ask, about valid plans
  show PLAN           table of the steps; graph, levels and order
  diff OLD NEW        what changed in the meaning of a plan
  review PLAN         what a change comes to: for pull requests
  explain PLAN STEP   why a step would run, and under what conditions
  risk COMMAND        what a command may do when nobody watches, and why
  generate GOAL       write a plan for a goal, for review
  expand PLAN         make its abstract steps concrete, for review
  classify TEXT       whether a task is simple, medium or complex, and why
  convert FILE        make a plan of a workflow, a Taskfile or a Dagu file
  tools [NAME]        the tools that a plan can call, and their arguments
  templates [VERB]    templates at hand, and plans made of them
  lock PLAN           write down what was reviewed, for execute --locked
  schema [NAME]       print the JSON Schema of plans, for editors

Runs:
  execute PLAN        run a plan
  resume RUN          go on with a run that failed or was killed
  retry RUN STEP...   run steps again, and what depends on them
  replan RUN          have a model plan anew for what failed, and go on
  approve RUN|PLAN    approve what a run waits for, or write an approval
  reject RUN [STEP]   reject it: the run ends with exit code 3
  decide RUN STEP=X   answer what a run asks
  finalize RUN        undo and clean up after a run that was killed or cancelled
  pause RUN           have a run start nothing more, until it is resumed
  cancel RUN          end a run from another shell
  queue VERB          plans that wait for their turn in this folder
  status [RUN]        how far a run is, and what holds it up
  runs                the runs in this folder
  prune               remove old runs, and none that somebody still needs
  stats               what many runs add up to: durations, failures
  report RUN          JUnit, markdown, JSON or text, at any time
  explain RUN STEP    why a step ran, failed or did not run
  replay RUN          play it again from its records, or what if
  verify RUN          whether the ledger of a run is as it was written
  cache [VERB]        what is kept of cached steps, and taking it away

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
