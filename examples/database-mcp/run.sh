#!/bin/sh
# An MCP client of a database: it may read everything, and change only what a tool is for.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "skipped: $*" >&2; exit 77; }
fail() { echo "wrong: $*" >&2; exit 1; }

toolq=$(command -v "${TOOLQ:-toolq}") || skip "toolq isn't on PATH; TOOLQ can name it"
case $toolq in /*) ;; *) toolq=$PWD/$toolq ;; esac
python3 -c 'import sqlite3' 2> /dev/null || skip "python3 with sqlite3 is missing"

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

# Checks the answer to a request: answered ID TEXT
answered() {
  grep "^< .*\"id\":$1," answers.txt | grep -qF "$2" || fail "the answer $1 doesn't have: $2"
}

try 0 './database.py create'

say "A client reads, tries to delete, orders the same twice, orders what isn't there, and reads again."
try 0 'python3 client.py messages.jsonl toolq serve -q > answers.txt'
cat answers.txt
answered 2 '{\"name\":\"teapot\",\"stock\":3}'
answered 3 '"isError":true'
answered 4 '{\"ordered\":\"1001\"}'
answered 5 'place_order has already done this'
answered 6 '"isError":true'
answered 7 '{\"stock\":1}'

say "Its calls are on record, as those of any run."
try 0 'toolq log show --errors'

say "A client that only reads doesn't see the other tool."
try 0 'head -n 3 messages.jsonl > list.jsonl'
try 0 'python3 client.py list.jsonl toolq serve -q --read-only > answers.txt'
cat answers.txt
answered 1 '"name":"query"'
! grep -q '"name":"place_order"' answers.txt || fail "a tool that writes is served"

say "One order was placed, once."
