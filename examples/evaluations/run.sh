#!/bin/sh
# Six turns of a model in a queue, graded by two workers. It needs nats-server, and a toolq with queues.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "skipped: $*" >&2; exit 77; }
fail() { echo "wrong: $*" >&2; exit 1; }

toolq=$(command -v "${TOOLQ:-toolq}") || skip "toolq isn't on PATH; TOOLQ can name it"
case $toolq in /*) ;; *) toolq=$PWD/$toolq ;; esac
nats_server=$(command -v "${NATS_SERVER:-nats-server}") || skip "nats-server isn't on PATH; NATS_SERVER can name it"
"$toolq" --help | grep -q '^ *queue ' || skip "this toolq has no queues; build it with --features nats"

work=$(mktemp -d)
processes=
clean_up() {
  for process in $processes; do
    kill "$process" 2> /dev/null || true
    wait "$process" || true
  done
  rm -rf "$work"
}
trap clean_up EXIT
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

say "A server on a free port, which ends with this script."
printf '\n+ nats-server --jetstream --store_dir nats &\n'
"$nats_server" --jetstream --store_dir nats --addr 127.0.0.1 --port -1 --ports_file_dir "$work" > nats.txt 2>&1 &
server=$!
processes=$server
waited=0
until url=$(grep -o 'nats://[0-9.:]*"' "$work/nats-server_$server.ports" 2> /dev/null); do
  [ "$waited" -lt 600 ] || { cat nats.txt >&2; fail "nats-server isn't ready after a minute"; }
  waited=$((waited + 1))
  sleep 0.1
done
export NATS_URL="${url%\"}"

say "The turns go in. Those that go in twice are graded once."
try 0 'toolq queue submit evaluations turns/*.json'
try 0 'toolq queue submit evaluations turns/*.json'

say "Two workers, which could be on two machines."
for _ in 1 2; do
  printf '\n+ toolq queue work -q evaluations --until-empty &\n'
  toolq queue work -q evaluations --until-empty &
  processes="$processes $!"
done

say "The answers, in the order of the turns."
try 0 'toolq queue collect evaluations --until-empty > grades.jsonl'
cat grades.jsonl
try 0 'toolq queue status evaluations'
[ "$(wc -l < grades.jsonl)" -eq 6 ] || fail "there aren't six grades"
right=$(grep -c ': right"' grades.jsonl)
[ "$right" -eq 4 ] || fail "$right answers are right, not 4"

say "4 of 6 answers are right."
