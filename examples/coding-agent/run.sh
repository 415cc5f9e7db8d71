#!/bin/sh
# A coding agent in a sandbox: it fixes a program, and can't write outside of the project.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "skipped: $*" >&2; exit 77; }
fail() { echo "wrong: $*" >&2; exit 1; }

toolq=$(command -v "${TOOLQ:-toolq}") || skip "toolq isn't on PATH; TOOLQ can name it"
case $toolq in /*) ;; *) toolq=$PWD/$toolq ;; esac

# Everything happens in a copy of the project, with a memory of its own.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/bin"
ln -s "$toolq" "$work/bin/toolq"
cp "$here"/*.json "$work"
cp -R "$here/project" "$work/project"
echo "not yours" > "$work/outside.txt"
cd "$work/project"
export PATH="$work/bin:$PATH" XDG_STATE_HOME="$work/state" LC_ALL=C
unset TOOLQ_TOOLS TOOLQ_LOG_FILE

say() { printf '\n# %s\n' "$*"; }

# Shows a command, runs it, and checks its exit code: try CODE COMMAND
try() {
  printf '\n+ %s\n' "$2"
  status=0
  (eval "$2") || status=$?
  [ "$status" -eq "$1" ] || fail "the exit code is $status, not $1"
}

say "Nine tools for a coding agent, in a tools.yaml to change as you like."
try 0 'toolq init coding'
cp tools.yaml "$work/tools.yaml"
toolq check -q --machine --offline > ../machine.txt || { cat ../machine.txt; skip "this machine lacks what is listed above"; }

say "What a model's turn would run: first both reads together, then the edit, then the test."
try 0 'toolq plan ../turn.json'
try 0 'toolq run -q ../turn.json > ../results.json'
try 0 'toolq log show'
try 0 'cat src/add.sh'
grep -q '\$1 + \$2' src/add.sh || fail "the program wasn't fixed"
grep -q 'the sum is right' ../results.json || fail "the test didn't pass"

say "Five attempts to get out: by a path, by scripts, through a link, at tools.yaml, and into the network. Each is refused."
try 1 'toolq run -q --fail-on-error ../escape.json > ../refusals.json'
try 0 'toolq log show --errors'
refused=$(grep -o '"is_error":true' ../refusals.json | wc -l)
[ "$refused" -eq 5 ] || fail "$refused of 5 attempts were refused"
grep -q 'socket: Permission denied' ../refusals.json || fail "a script could open a socket"
try 0 'cat ../outside.txt'
[ "$(cat ../outside.txt)" = "not yours" ] || fail "a file outside of the project was changed"
cmp tools.yaml ../tools.yaml || fail "tools.yaml was changed"

say "The program is fixed, and nothing outside was touched."
