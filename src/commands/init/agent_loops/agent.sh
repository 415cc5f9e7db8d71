#!/bin/sh
# An agent: a model calls the tools in tools.yaml until it has an answer. Needs curl, jq, and toolq on the PATH.
#   ANTHROPIC_API_KEY=… sh agent.sh 'Which files are here?'
# Each message of the model is saved to conversation.json before its calls run. After a crash, the same command continues from there, and
# no write runs twice. The exit code is 6 if a call waits for an approval, and 3 if not every call could run: then, too, run it again.
set -eu
[ $# -gt 0 ] || [ -e conversation.json ] || { echo "usage: sh $0 TASK" >&2; exit 2; }
: "${ANTHROPIC_API_KEY:?set it to a key for the API}"
url=${ANTHROPIC_BASE_URL:-https://api.anthropic.com}/v1/messages
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

toolq tools > "$dir/tools.json"
if [ ! -e conversation.json ]; then
    jq -n --arg task "$*" '[{role: "user", content: $task}]' > "$dir/messages.json"
elif [ $# = 0 ] || [ "$*" = "$(jq -r '.messages[0].content' conversation.json)" ]; then
    jq .messages conversation.json > "$dir/messages.json"
    jq .response conversation.json > "$dir/response.json"
else
    echo "conversation.json holds an interrupted conversation about another task: run 'sh $0' to continue it, or remove the file" >&2
    exit 2
fi

# Sends the conversation, and keeps the model's response.
ask() {
    jq -n --arg model "${ANTHROPIC_MODEL:-claude-sonnet-5-5}" --slurpfile tools "$dir/tools.json" --slurpfile messages "$dir/messages.json" \
        '{model: $model, max_tokens: 4096, tools: $tools[0], messages: $messages[0]}' > "$dir/request.json"
    for pause in 2 4 8 ''; do  # seconds before a busy API is asked again
        : > "$dir/response.json"
        # The key comes from stdin: every user of the machine can read arguments.
        code=$(printf 'x-api-key: %s\n' "$ANTHROPIC_API_KEY" |
            curl -sS --fail-with-body -H @- -H 'anthropic-version: 2023-06-01' -H 'content-type: application/json' \
                -d "@$dir/request.json" -D "$dir/headers" -o "$dir/response.json" -w '%{http_code}' "$url") && break
        case $code in 429 | 5??) ;; *) pause= ;; esac
        [ -n "$pause" ] || { cat "$dir/response.json" >&2; exit 1; }
        after=$(sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9][0-9]*\).*/\1/p' "$dir/headers")
        sleep "${after:-$pause}"
    done
}

turn=0
while :; do
    turn=$((turn + 1))
    [ "$turn" -le 50 ] || { echo 'there is no answer after 50 turns' >&2; exit 1; }
    [ "$turn" = 1 ] && [ -e "$dir/response.json" ] || ask
    jq -n --slurpfile messages "$dir/messages.json" --slurpfile response "$dir/response.json" \
        '{messages: $messages[0], response: $response[0]}' > conversation.json.new
    mv conversation.json.new conversation.json
    status=0
    toolq run -q "$dir/response.json" > "$dir/results.json" || status=$?
    case $status in
        0) ;;
        5) break ;;            # there are no more calls
        6) echo "a call waits for an approval: see 'toolq approvals', then run 'sh $0' again" >&2; exit 6 ;;
        3) echo "not every call could run: see 'toolq log show', then run 'sh $0' again" >&2; exit 3 ;;
        *) exit "$status" ;;
    esac
    jq -s '.[0] + [.[1] | {role, content}] + [.[2]]' "$dir/messages.json" "$dir/response.json" "$dir/results.json" > "$dir/next.json"
    mv "$dir/next.json" "$dir/messages.json"
done
rm conversation.json
jq -r '.content[] | select(.type == "text").text' "$dir/response.json"
