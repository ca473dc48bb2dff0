#!/usr/bin/env bash
# Propose, review, approve, merge and run a change of a plan: on a repository of its own in a temporary folder, with a bare
# repository as its remote. The action is started as GitHub's runner starts it. Needs no network and no account.
#
#     bash docs/walk.sh       needs git, and planrun on the PATH or in .venv of this checkout
#
# docs/walk.md shows and explains the output. Each part starts with a line `=== name`.
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
python=$(dirname "$(readlink -f "$(command -v planrun)")")/python
if [ ! -x "$python" ]; then
  echo "$0: there is no $python: install planrun into a virtual environment" >&2
  exit 127
fi
walk=$(mktemp -d "${TMPDIR:-/tmp}/walk.XXXXXX")
trap 'rm -rf "$walk"' EXIT

# Ignore the caller's environment: no settings of git, no variables of planrun or of a CI system.
for name in $(compgen -e); do
  case $name in PATH | TMPDIR | LANG | LC_* | PYTHON*) ;; *) unset "$name" ;; esac
done
export HOME=$walk/home GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=Dev GIT_AUTHOR_EMAIL=dev@localhost
export GIT_COMMITTER_NAME=Dev GIT_COMMITTER_EMAIL=dev@localhost
export GIT_AUTHOR_DATE=2026-01-31T09:30:00Z GIT_COMMITTER_DATE=2026-01-31T09:30:00Z # the same commits in each run
mkdir "$HOME"

part() { printf '\n=== %s\n' "$1"; }

# Print a command and run it; print its exit code if it is not 0.
run() {
  local code=0 word
  printf '$'
  for word in "$@"; do
    case $word in *' '*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  printf '\n'
  "$@" 2>&1 || code=$?
  if [ "$code" -ne 0 ]; then printf 'exit code %s\n' "$code"; fi
  case $code in 126 | 127) exit 1 ;; esac # the program cannot be run: the rest would be meaningless
}

# Write a file of the repository from stdin.
write() {
  mkdir -p "$(dirname "$1")"
  cat > "$1"
}

commit() {
  git add -A
  git commit -q -m "$1"
  git push -q origin HEAD
}

# job MODE EVENT [again]: do what action.yml does in a fresh checkout of the branch, with the variables that GitHub sets for
# the event. `again` uses the checkout of the job before.
job() {
  local mode=$1 event=$2 code=0 head base
  head=$(git rev-parse HEAD) base=$(git rev-parse main)
  printf '$ (GitHub starts the job: %s, mode: %s)\n' "$event" "$mode"
  if [ "${3:-}" != again ]; then
    rm -rf "$walk/checkout"
    git init -q "$walk/checkout"
    git -C "$walk/checkout" remote add origin "file://$walk/remote.git"
    git -C "$walk/checkout" fetch -q --no-tags --depth=1 origin "$head"
    git -C "$walk/checkout" checkout -q --detach FETCH_HEAD
  fi
  if [ "$event" = pull_request ]; then
    printf '{"pull_request": {"base": {"sha": "%s", "repo": {"full_name": "acme/app"}},
      "head": {"sha": "%s", "repo": {"full_name": "acme/app"}}}}' "$base" "$head"
  else
    printf '{}'
  fi > "$walk/event.json"
  : > "$walk/summary"
  : > "$walk/outputs"
  env CI=true GITHUB_ACTIONS=true GITHUB_EVENT_NAME="$event" GITHUB_EVENT_PATH="$walk/event.json" \
    GITHUB_WORKSPACE="$walk/checkout" GITHUB_STEP_SUMMARY="$walk/summary" GITHUB_OUTPUT="$walk/outputs" \
    PLANRUN_INPUT_MODE="$mode" PLANRUN_INPUT_PLAN=plans/release.yml PLANRUN_INPUT_POLICY=ci/policy.yml \
    PLANRUN_INPUT_APPROVALS='approvals/*.json' \
    "$python" -I "$here/../action/start.py" > "$walk/log" 2>&1 || code=$?
  if [ "$mode" = review ]; then cat "$walk/summary"; else sed '/^::/d' "$walk/log"; fi
  printf 'exit code %s\n' "$code"
}

# Print which steps had an effect.
effects() {
  local built=no published=no
  if [ -d "$walk/checkout/dist" ]; then built=yes; fi
  if git -C "$walk/remote.git" rev-parse -q --verify refs/heads/released > "$walk/log"; then published=yes; fi
  printf 'built: %s, published: %s\n' "$built" "$published"
}

git init -q --bare -b main "$walk/remote.git"
git init -q -b main "$walk/work"
cd "$walk/work"
git remote add origin "$walk/remote.git"

part main
write plans/release.yml << 'END'
version: 1
name: release
steps:
  - id: build
    run: ./scripts/build.sh
END
write ci/policy.yml << 'END'
auto_approve: medium   # what is riskier needs an approval
ask_for: plan          # before anything starts
END
write scripts/build.sh << 'END'
#!/bin/sh
mkdir -p dist
echo app > dist/app
END
chmod +x scripts/build.sh
write approvals/README << 'END'
Approvals of releases; see CODEOWNERS.
END
write .gitignore << 'END'
.planrun/
planrun-out/
dist/
END
commit "A plan, a policy, a script"
run cat plans/release.yml
run cat ci/policy.yml

part proposal
git checkout -q -b publish
cat >> plans/release.yml << 'END'
  - id: publish
    depends_on: [build]
    run: git push origin HEAD:refs/heads/released
END
commit "Publish what was built"
run git diff --stat main publish
job review pull_request

part waits
job execute pull_request
effects

part cheat
write ci/policy.yml << 'END'
auto_approve: high
END
planrun approve plans/release.yml --approver release-team -o approvals/mine.json > "$walk/log"
commit "Let it run"
run git diff --stat HEAD^ HEAD
job review pull_request | grep -v '^$' | sed -n '/^> /p; /^Policy/p; /^exit/p'
job execute pull_request
effects
git reset -q --hard HEAD^
git push -q --force origin HEAD

part approval
run planrun approve plans/release.yml --approver release-team --expires 24h -o approvals/release.json
run cat approvals/release.json
git add approvals
git commit -q -m "Approve the release"
git push -q origin HEAD
git checkout -q main
git merge -q --ff-only publish
git push -q origin main

part release
job execute push
effects
(cd "$walk" && run grep 'approved by' summary)

part again
job execute push again

part drift
write scripts/build.sh << 'END'
#!/bin/sh
mkdir -p dist
echo something else > dist/app
END
commit "Build something else"
job execute push

part rejected
cd "$walk/checkout"
run planrun reject last --by release-team --reason "This change was not requested"
run planrun resume last
