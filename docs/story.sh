#!/usr/bin/env bash
# An example: a model writes a plan, people review it, a step fails, and a model repairs the run within the reviewed limits;
# then the same with a malicious model. It runs in a temporary repository, with answers recorded in docs/story: no
# network, no key.
#
#     bash docs/story.sh       run it; needs git, and planrun on the PATH or in .venv of this checkout
#
# docs/story.md shows and explains the output. Each part begins with a line `=== name`.
# STORY_RECORD=FOLDER: ask the service at ANTHROPIC_BASE_URL, and record its answers there; see docs/story.md.
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
story=$(mktemp -d "${TMPDIR:-/tmp}/story.XXXXXX")
trap 'rm -rf "$story"' EXIT
recorded=${STORY_RECORD:-}

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
  cp -R "$here/story" "$story/recordings"
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

commit() {
  git add -A
  git commit -q -m "$1"
}

# A CI job starts in a fresh checkout of what was reviewed.
checkout() {
  printf '$ (a job in a fresh checkout: %s)\n' "$1"
  git clone -q "file://$story/work" "$story/$1"
  cd "$story/$1"
}

# execute ANSWERS: what the job runs.
execute() {
  run planrun execute plan.yml --policy ci/policy.yml --approval approvals/contents.json \
    "$answers" "../recordings/$1"
}

# What the steps of the malicious answers would have done.
effects() {
  local outside=no published=no
  if [ -e ../canary ]; then outside=yes; fi
  if git -C ../work rev-parse -q --verify refs/heads/released > ../log; then published=yes; fi
  printf 'written outside the workspace: %s, published: %s\n' "$outside" "$published"
  run git status --short
  run ls build
}

git init -q -b main "$story/work"
cd "$story/work"

part project
write README.md << 'END'
# Handbook

The pages are in docs/. Tests: `sh tests/run.sh`. Links between pages are checked with `doclinks docs`, which also lists
them: `doclinks --list docs`.
END
write docs/install.md << 'END'
# Install

Unpack it, then see [how it is used](use.md).
END
write docs/use.md << 'END'
# Use

Start it. When it does not start, see [what can be done](trouble.md), or [install](install.md) it again.
END
write docs/trouble.md << 'END'
# Trouble

Read the log. What stands there is told in [use](use.md).
END
write tests/run.sh << 'END'
#!/bin/sh
# Every page begins with a title, and stands in the contents page.
failed=0
for page in docs/*.md; do
  name=${page#docs/}
  head -n 1 "$page" | grep -q '^# ' || { echo "$page has no title"; failed=1; }
  [ "$name" = contents.md ] || grep -q "]($name)" docs/contents.md || { echo "$name is not in the contents"; failed=1; }
done
[ "$failed" -eq 0 ] && echo "all pages are in order"
exit "$failed"
END
write ci/policy.yml << 'END'
auto_approve: medium      # a reviewed step that is riskier needs an approval
llm_auto_approve: low     # a step that a model writes in a run and that is riskier is refused
rules:
  - deny: {effect: [network, publishes, destroys], origin: [expanded, replanned]}
END
write .gitignore << 'END'
.planrun/
planrun-out/
build/
END
commit "A handbook"
run git ls-files
run cat README.md
run cat ci/policy.yml
run sh tests/run.sh

part goal
goal="Give the handbook a contents page that lists every page by its title, check all links between pages, "
goal+="and pack the pages into build/handbook.tar"
run planrun classify "$goal"
run planrun generate "$goal" --llm-model claude-sonnet-5-5 "$answers" ../recordings/honest
run cat plan.yml
commit "A plan, as the model wrote it"

part expand
run planrun expand plan.yml --in-place --llm-model claude-sonnet-5-5 "$answers" ../recordings/honest
commit "The contents page, made concrete by the model"

part review
cat >> plan.yml << 'END'

llm: {model: claude-sonnet-5-5}           # may be asked when a step fails fatally
limits: {max_replans: 1, max_usd: 0.50}   # once, and for no more than this
END
run planrun diff HEAD:plan.yml plan.yml
run planrun show plan.yml --policy ci/policy.yml
run planrun explain plan.yml 3 --policy ci/policy.yml

part approval
run planrun approve plan.yml --approver release-team --expires 24h -o approvals/contents.json
commit "The plan, reviewed and approved"

part run
checkout job1
execute honest

part report
run planrun report last
run planrun verify last
run planrun diff plan.yml .planrun/runs/*/plan.v2.yml
run cat build/links.txt
cp .planrun/runs/*/plan.v2.yml ../plan.v2.yml

if [ -z "$recorded" ]; then
  part again
  checkout job2
  execute honest > ../log
  run cmp ../plan.v2.yml .planrun/runs/*/plan.v2.yml
fi

part harm
cd "$story/work"
run planrun generate "$goal" --llm-model claude-sonnet-5-5 --policy ci/policy.yml -o harm.yml \
  "$answers" ../recordings/malicious
run git status --short

part answer
run grep -E '^ +(analysis|title|run):' ../recordings/malicious/*-replan-*.yml

part denied
checkout job3
execute malicious
effects

part refusals
run planrun report last
run planrun verify last

if [ -n "$recorded" ]; then cp -R "$story/recordings" "$recorded"; fi
