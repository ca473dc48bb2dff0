#!/usr/bin/env bash
# An example: a test fails, one agent finds the cause, another one mends it on a copy, and people review its patch. It runs
# in a temporary repository, with answers recorded in docs/agents: no network, no key.
#
#     bash docs/agents.sh      run it; needs git, python3, and planrun on the PATH or in .venv of this checkout
#
# docs/agents.md shows and explains the output. Each part begins with a line `=== name`.
# AGENTS_RECORD=FOLDER: ask the service at ANTHROPIC_BASE_URL, and record its answers there; see tests/docs/record_agents.py.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if ! command -v planrun > /dev/null; then PATH=$here/../.venv/bin:$PATH; fi
if ! command -v planrun > /dev/null; then
  echo "$0: planrun is not on the PATH; install it: python3 -m venv .venv && .venv/bin/pip install ." >&2
  exit 127
fi
if ! command -v git > /dev/null; then
  echo "$0: git is not on the PATH" >&2
  exit 127
fi
story=$(mktemp -d "${TMPDIR:-/tmp}/agents.XXXXXX")
trap 'rm -rf "$story"' EXIT
recorded=${AGENTS_RECORD:-}

# Nothing of whoever plays it: no settings of git, no variables of planrun or of a CI system.
for name in $(compgen -e); do
  case $name in
    PATH | TMPDIR | LANG | LC_* | PYTHON*) ;;
    ANTHROPIC_*) if [ -z "$recorded" ]; then unset "$name"; fi ;;
    *) unset "$name" ;;
  esac
done
export HOME=$story/home GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=Dev GIT_AUTHOR_EMAIL=dev@localhost
export GIT_COMMITTER_NAME=Dev GIT_COMMITTER_EMAIL=dev@localhost
export GIT_AUTHOR_DATE=2026-01-31T09:30:00Z GIT_COMMITTER_DATE=2026-01-31T09:30:00Z # the same commits in each play
mkdir "$HOME"

if [ -n "$recorded" ]; then
  answers=--llm-record
else
  answers=--llm-replay
  cp -R "$here/agents" "$story/recordings"
fi

part() { printf '\n=== %s\n' "$1"; }

# Print a command and run it; what it ends with is printed when it is not 0.
run() {
  local code=0 word
  printf '$'
  for word in "$@"; do
    case $word in *[' ;*&|']*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  printf '\n'
  "$@" 2>&1 || code=$?
  if [ "$code" -ne 0 ]; then printf 'exit code %s\n' "$code"; fi
  case $code in 126 | 127) exit 1 ;; esac # a program that cannot be run: nothing that follows would mean anything
}

# A file of the repository, as somebody wrote it.
write() {
  mkdir -p "$(dirname "$1")"
  cat > "$1"
}

git init -q -b main "$story/work"
cd "$story/work"

part plan
write calc.py << 'END'
def add(a, b):
    return a
END
write check_calc.py << 'END'
import sys

from calc import add

if add(2, 3) != 5:
    sys.exit(f"add(2, 3) is {add(2, 3)}")
print("passed")
END
write plan.yml << 'END'
version: 1
name: mend
llm: {model: claude-sonnet-5-5}
policy: {auto_approve: medium, llm_auto_approve: medium}
steps:
  - id: test
    run: python3 check_calc.py
    on_failure: continue
  - id: find
    depends_on: {test: failed}
    agent: {type: explore, prompt: Find out why check_calc.py fails.}
  - id: fix
    depends_on: {find: completed}
    agent:
      type: general
      mode: code
      prompt: "Mend the cause, and nothing else: ${{ steps.find.outputs.summary }}"
    verify: python3 check_calc.py
  - id: again
    depends_on: {fix: completed}
    run: python3 check_calc.py
END
write .gitignore << 'END'
.planrun/
planrun-out/
__pycache__/
END
git add -A
git commit -q -m "A sum that is none"
cat plan.yml

part run
run planrun execute plan.yml --output failed "$answers" ../recordings
run git status --short

part log
run planrun logs last fix

part review
run planrun show last fix --patch
run planrun approve last fix

part resume
run planrun resume last --output failed
run git diff --stat

part report
run planrun report last
run planrun verify last

if [ -n "$recorded" ]; then cp -R "$story/recordings" "$recorded"; fi
