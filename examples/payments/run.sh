#!/bin/sh
# Payments that need a yes, and that are made once: whatever is run again, and even if toolq is killed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "skipped: $*" >&2; exit 77; }
fail() { echo "wrong: $*" >&2; exit 1; }

toolq=$(command -v "${TOOLQ:-toolq}") || skip "toolq isn't on PATH; TOOLQ can name it"
case $toolq in /*) ;; *) toolq=$PWD/$toolq ;; esac

# Everything happens in a copy, with a memory of its own.
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

# Checks what the bank has booked: booked LINE…
booked() {
  printf '\n+ cat payments.txt\n'
  cat payments.txt
  [ "$(cat payments.txt)" = "$(printf '%s\n' "$@")" ] || fail "the bank should have booked: $*"
}

say "The small payment is made. The large one waits for a yes: exit code 6."
try 6 'toolq run turn.json'
booked 'invoice-7 40'

say "A person looks at what waits, and says yes. Then the same command makes the payment."
try 0 'toolq approvals'
try 0 'toolq approvals approve toolu_02'
try 0 'toolq run turn.json'
booked 'invoice-7 40' 'invoice-8 250'

say "The same input in another layout pays nothing again. Nor does a model that asks again with a new id: see 'once' in tools.yaml."
try 0 'tr "\n" " " < turn.json | toolq run'
try 0 'toolq run again.json'
booked 'invoice-7 40' 'invoice-8 250'

say "Now the bank books a payment, but doesn't answer, and toolq is killed meanwhile."
printf '\n+ touch outage; toolq run next.json & kill -9 $!\n'
touch outage
toolq run next.json &
pid=$!
waited=0
until grep -q invoice-9 payments.txt; do
  [ "$waited" -lt 600 ] || fail "the bank wasn't asked within a minute"
  waited=$((waited + 1))
  sleep 0.1
done
kill -9 "$pid"
wait "$pid" || true
rm outage

say "Was it paid? Nobody can know, so toolq doesn't repeat it: it's in doubt, and the exit code is 3."
try 3 'toolq run next.json'
booked 'invoice-7 40' 'invoice-8 250' 'invoice-9 80'

say "A person asks the bank, and says what it said. Then the rest runs."
try 0 "toolq log resolve toolu_04 --done --result 'invoice-9 is paid, says the bank'"
try 0 'toolq run next.json > results.json'
cat results.json
grep -q 'says the bank' results.json || fail "the call has another result"
booked 'invoice-7 40' 'invoice-8 250' 'invoice-9 80'

say "Each invoice was paid once."
