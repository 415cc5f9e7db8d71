#!/bin/sh
# An agent in shell: sh agent.sh 'How many words are in tools.yaml?'. It needs curl, jq, and toolq on PATH. The API is Anthropic's.
set -eu
url=${ANTHROPIC_BASE_URL:-https://api.anthropic.com}/v1/messages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

jq -n --arg text "$*" '[{role: "user", content: $text}]' > "$work/messages"
toolq tools > "$work/tools"
while :; do
  jq -n --slurpfile tools "$work/tools" --slurpfile messages "$work/messages" \
    '{model: "claude-sonnet-5-5", max_tokens: 1024, tools: $tools[0], messages: $messages[0]}' > "$work/request"
  # The key comes from stdin: every user of the machine can read arguments.
  printf 'x-api-key: %s\n' "$ANTHROPIC_API_KEY" |
    curl -sSf -H @- -H 'anthropic-version: 2023-06-01' -H 'content-type: application/json' -d "@$work/request" "$url" > "$work/response"
  status=0
  toolq run -q "$work/response" > "$work/results" || status=$?
  case $status in
    0 | 3 | 6) ;;       # each call has its result; 3 and 6: one of them needs a person
    5) break ;;         # no calls: this is the answer
    *) exit "$status" ;;
  esac
  jq -s '.[0] + [.[1] | {role, content}] + [.[2]]' "$work/messages" "$work/response" "$work/results" > "$work/next"
  mv "$work/next" "$work/messages"
done
jq -r '.content[] | select(.type == "text").text' "$work/response"
