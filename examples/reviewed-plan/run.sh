#!/bin/sh
# Plays the jobs of release.yml: one makes a plan, a person reviews it, and another job applies exactly that.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "skipped: $*" >&2; exit 77; }
fail() { echo "wrong: $*" >&2; exit 1; }

toolq=$(command -v "${TOOLQ:-toolq}") || skip "toolq isn't on PATH; TOOLQ can name it"
case $toolq in /*) ;; *) toolq=$PWD/$toolq ;; esac
command -v jq > /dev/null || skip "jq is missing"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/bin" "$work/artifacts"
ln -s "$toolq" "$work/bin/toolq"
export PATH="$work/bin:$PATH"
unset TOOLQ_TOOLS TOOLQ_LOG_FILE

say() { printf '\n# %s\n' "$*"; }

# Shows a command, runs it, and checks its exit code: try CODE COMMAND
try() {
  printf '\n+ %s\n' "$2"
  status=0
  (eval "$2") || status=$?
  [ "$status" -eq "$1" ] || fail "the exit code is $status, not $1"
}

# Begins a job: on a new machine, with the repository at the same path, and the artifacts of the jobs before.
begin_job() {
  say "$*"
  cd "$work"
  rm -rf checkout state
  cp -R "$here" checkout
  export XDG_STATE_HOME="$work/state"
  cd checkout
}

begin_job "The first job makes a plan. Nothing runs."
try 0 'toolq plan --out ../artifacts/plan.json release.json'
[ ! -e deployed.txt ] || fail "a plan deployed something"

say "A person reads the plan above, and approves it by its id."
try 0 'jq -r .id ../artifacts/plan.json'
APPROVED=$(jq -r .id ../artifacts/plan.json)
export APPROVED

begin_job "Somebody changes the input after the review: the second job runs nothing."
sed 's/"7.0"/"6.6"/' release.json > changed.json && mv changed.json release.json
try 2 'toolq run --log ../artifacts/release.jsonl --plan ../artifacts/plan.json release.json'
[ ! -e deployed.txt ] || fail "what nobody reviewed was deployed"

begin_job "Somebody plans that, too, and puts their plan in the place of the reviewed one: it has another id."
sed 's/"7.0"/"6.6"/' release.json > changed.json && mv changed.json release.json
try 0 'toolq plan -q --out ../other.json release.json > ../other.txt'
try 1 'test "$(jq -r .id ../other.json)" = "$APPROVED"'

begin_job "With what was reviewed, the second job does it."
try 0 'test "$(jq -r .id ../artifacts/plan.json)" = "$APPROVED"'
try 0 'toolq run --fail-on-error --log ../artifacts/release.jsonl --plan ../artifacts/plan.json release.json'
try 0 'cat deployed.txt'
[ "$(cat deployed.txt)" = "$(printf 'database 4.2\nwebsite 7.0')" ] || fail "something else was deployed"

begin_job "Somebody starts the second job again. The log of the first time says that everything is done."
try 0 'toolq run --fail-on-error --log ../artifacts/release.jsonl --plan ../artifacts/plan.json release.json'
[ ! -e deployed.txt ] || fail "a version was deployed twice"

say "What was reviewed was deployed, once."
