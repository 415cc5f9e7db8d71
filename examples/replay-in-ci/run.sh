#!/bin/sh
# Recorded conversations as a test of today's tools, which differ in two ways: see tools.yaml.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "skipped: $*" >&2; exit 77; }
fail() { echo "wrong: $*" >&2; exit 1; }

toolq=$(command -v "${TOOLQ:-toolq}") || skip "toolq isn't on PATH; TOOLQ can name it"
case $toolq in /*) ;; *) toolq=$PWD/$toolq ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/bin"
ln -s "$toolq" "$work/bin/toolq"
cp -R "$here" "$work/copy"
cd "$work/copy"
export PATH="$work/bin:$PATH" XDG_STATE_HOME="$work/state"
unset TOOLQ_TOOLS TOOLQ_LOG_FILE

say() { printf '\n# %s\n' "$*"; }

# Shows a command, runs it, and checks its exit code: try CODE COMMAND
try() {
  printf '\n+ %s\n' "$2"
  status=0
  (eval "$2") || status=$?
  [ "$status" -eq "$1" ] || fail "the exit code is $status, not $1"
}

say "Of four recorded calls, two differ: exit code 1. The report is what replay.yml posts on a pull request."
try 1 'toolq replay recordings --markdown report.md'
try 0 'cat report.md'
grep -q '2 of 4 calls differ' report.md || fail "the report says something else"
grep -q '/size: is required' report.md || fail "the report doesn't say that a size is missing"
grep -q '^- 3.90$' report.md || fail "the report doesn't say what coffee used to cost"

say "Requiring a size would break what models do, so it becomes optional: {size?} is left out if the model gives none."
try 0 "sed 's/required: .drink, size./required: [drink]/; s/{size}/{size?}/' tools.yaml > new.yaml"
mv new.yaml tools.yaml
try 0 "toolq call order -q --no-log '{\"drink\": \"coffee\", \"size\": \"large\"}' | tee ordered.txt"
grep -q '^ordered a large coffee$' ordered.txt || fail "the size is lost"
try 0 "toolq call order -q --no-log '{\"drink\": \"coffee\"}' | tee ordered.txt"
grep -q '^ordered a coffee$' ordered.txt || fail "an order without a size differs from the recorded one"
try 1 'toolq replay -q recordings'

say "The new price is meant, so the recording is updated. Nothing differs anymore."
try 0 'toolq replay -q recordings --update'
try 0 'toolq replay recordings'

say "Both differences were found."
