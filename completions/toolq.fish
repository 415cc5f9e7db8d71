# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_toolq_global_optspecs
    string join \n c/tools= color= q/quiet v/verbose h/help V/version
end

function __fish_toolq_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_toolq_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_toolq_using_subcommand
    set -l cmd (__fish_toolq_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c toolq -n "__fish_toolq_needs_command" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_needs_command" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_needs_command" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_needs_command" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_needs_command" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "run" -d 'Run the tool calls of a model response and print their results'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "plan" -d 'Show what would run, in which batches, and why, without running it'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "agent" -d 'Run one agent on an input until it answers'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "replay" -d 'Check recordings against the current tools: inputs still valid, results unchanged'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "check" -d 'Report problems in tools.yaml'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "tools" -d 'Print the tool declarations for a model'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "log" -d 'Inspect session logs, and resolve calls in doubt'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "generate" -d 'Print a generated file: a schema, shell completions, or the man page'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "init" -d 'Create a starter tools.yaml'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l from -d 'Input format [default: auto-detect]' -r -f -a "anthropic\t''
openai-chat\t''
openai-responses\t''
claude-code\t''
codex\t''
toolq\t''
anthropic-sse\t'A Messages API stream'
openai-sse\t'A chat completions or responses stream'"
complete -c toolq -n "__fish_toolq_using_subcommand run" -l max-input -d 'Largest JSON document to accept' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -s j -l jobs -d 'Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -l to -d 'Output format [default: mirrors the input]' -r -f -a "message\t'An Anthropic user message'
blocks\t'An array of Anthropic blocks'
block-lines\t'One block per line, each printed as soon as it and all before it are ready'
openai-chat\t'An array of `role: tool` messages'
openai-responses\t'An array of `function_call_output` items'"
complete -c toolq -n "__fish_toolq_using_subcommand run" -l log -d 'Session log to append to [default: a new file below `$XDG_STATE_HOME/toolq/sessions`]' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand run" -l sync -d 'Which calls\' records must reach the disk before toolq continues' -r -f -a "auto\t'Those of calls that may have side effects'
all\t'Those of all calls'"
complete -c toolq -n "__fish_toolq_using_subcommand run" -l events -d 'Write events as NDJSON to a file descriptor (`fd:3`), or append them to a file' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -l progress -d 'How to show progress' -r -f -a "auto\t'A bar on a terminal, lines if CI is set, else only the summary'
bar\t'A bar, or lines if stderr isn\'t a terminal'
plain\t'A line per event'
none\t'No progress'"
complete -c toolq -n "__fish_toolq_using_subcommand run" -l max-calls -d 'Start at most this many calls; the others are answered without running' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -l time-budget -d 'Stop running calls after this time, and don\'t start any others' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -l max-output-total -d 'Stop running calls once tools have produced this much output, and don\'t start any others' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand run" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand run" -l all -d 'Include calls that already have a result in the input'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l follow -d 'Answer each JSON line as it arrives, with one line; for use as a coprocess'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l no-log -d 'Keep no session log'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l resume -d 'Finish the last run in the log: reuse logged results and model responses, and run what is missing. Without `--log`, use the latest session of this input'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l new -d 'Start a new run in the log, even if the last one is unfinished'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l accept-changes -d 'Resume even if tools.yaml has changed: what is missing runs with the current tools'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l fail-on-error -d 'Exit 1 if any result is an error'
complete -c toolq -n "__fish_toolq_using_subcommand run" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand run" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand run" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l from -d 'Input format [default: auto-detect]' -r -f -a "anthropic\t''
openai-chat\t''
openai-responses\t''
claude-code\t''
codex\t''
toolq\t''
anthropic-sse\t'A Messages API stream'
openai-sse\t'A chat completions or responses stream'"
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l max-input -d 'Largest JSON document to accept' -r
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s j -l jobs -d 'Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]' -r
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l format -d 'Output format' -r -f -a "text\t'A timeline for people'
json\t'One JSON object per turn, one per line'
mermaid\t'A Mermaid diagram'"
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l all -d 'Include calls that already have a result in the input'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l describe -d 'Run the `describe` commands of tools that have one, to get their schemas; runs nothing else'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l strict -d 'Exit 1 if any call is rejected'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l to -d 'What to print' -r -f -a "text\t'The answer'
messages\t'The whole conversation, in the format of the agent\'s API'
json\t'The answer with its turns, tokens, and cost'"
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s j -l jobs -d 'Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]' -r
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l log -d 'Session log to append to [default: a new file below `$XDG_STATE_HOME/toolq/sessions`]' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l sync -d 'Which calls\' records must reach the disk before toolq continues' -r -f -a "auto\t'Those of calls that may have side effects'
all\t'Those of all calls'"
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l events -d 'Write events as NDJSON to a file descriptor (`fd:3`), or append them to a file' -r
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l progress -d 'How to show progress' -r -f -a "auto\t'A bar on a terminal, lines if CI is set, else only the summary'
bar\t'A bar, or lines if stderr isn\'t a terminal'
plain\t'A line per event'
none\t'No progress'"
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l max-calls -d 'Start at most this many calls; the others are answered without running' -r
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l time-budget -d 'Stop running calls after this time, and don\'t start any others' -r
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l max-output-total -d 'Stop running calls once tools have produced this much output, and don\'t start any others' -r
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l no-log -d 'Keep no session log'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l resume -d 'Finish the last run in the log: reuse logged results and model responses, and run what is missing. Without `--log`, use the latest session of this input'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l new -d 'Start a new run in the log, even if the last one is unfinished'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l accept-changes -d 'Resume even if tools.yaml has changed: what is missing runs with the current tools'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l execute -d 'Which calls to run; the results of the others are served from the recording' -r -f -a "read\t'Calls of read-only tools'
all\t'All calls whose tool has a backing'
none\t'No calls'"
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l ignore -d 'Ignore differences in this part of each result: `/pointer`, or `//name` at any depth; can be repeated' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l ids -d 'How to compare call ids inside results' -r -f -a "rename\t'New ids may replace recorded ones, consistently one for one'
exact\t'Ids are compared like any other text'"
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l tolerance -d 'Absolute or relative tolerance for numbers, for example 1e-9' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l json -d 'Write a JSON report; `-` is stdout' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l junit -d 'Write a JUnit report: a suite per recording, a case per call' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l markdown -d 'Write a Markdown summary, for the page of a CI run' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l shard -d 'Replay only part K of N of the sorted recordings' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l from -d 'Format of the recordings [default: auto-detect]' -r -f -a "anthropic\t''
openai-chat\t''
openai-responses\t''
claude-code\t''
codex\t''
toolq\t''
anthropic-sse\t'A Messages API stream'
openai-sse\t'A chat completions or responses stream'"
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l max-input -d 'Largest JSON document to accept' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s j -l jobs -d 'Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l log -d 'Append a session log of the calls that run to this file' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l max-calls -d 'Start at most this many calls; the others are answered without running' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l time-budget -d 'Stop running calls after this time, and don\'t start any others' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l max-output-total -d 'Stop running calls once tools have produced this much output, and don\'t start any others' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l update -d 'Write new results into the recordings'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l fail-fast -d 'Stop after the first turn in which a call differs'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand check" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand check" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand check" -l strict -d 'Also exit 1 if there are only warnings'
complete -c toolq -n "__fish_toolq_using_subcommand check" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand check" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand check" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand check" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand tools" -l format -d 'Output format' -r -f -a "anthropic\t''
openai-chat\t''
openai-responses\t''
mcp\t''
markdown\t'A section to paste into a prompt'"
complete -c toolq -n "__fish_toolq_using_subcommand tools" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand tools" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand tools" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand tools" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand tools" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand tools" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "show" -d 'Show the calls and their results, turn by turn'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "stats" -d 'Show runs, successes, failures, and durations of each tool, over all given logs'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "cost" -d 'Show tokens, turns, and estimated cost (by `prices` in tools.yaml) of each agent, over all given logs'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "verify" -d 'Check that every line is intact; exit 4 if one isn\'t'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "resolve" -d 'Record what became of a call in doubt, for `run --resume`'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "prune" -d 'Remove old sessions from the default directory, with all their files'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -l format -d 'Output format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -l tool -d 'Only calls of this tool; can be repeated' -r
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s f -l follow -d 'Keep showing new records until the session ends or its process is gone'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -l errors -d 'Only calls that failed, did not run, or have no result; in JSON, only their results'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -l format -d 'Output format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -l format -d 'Output format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l result -d 'The result of a call that was done' -r
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l note -d 'How you know; recorded in the log' -r
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l done -d 'It did its work; the model gets `--result` from now on'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l error -d 'The result is an error'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l not-done -d 'It did nothing: the next `run --resume` runs it'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -l older -d 'Remove sessions whose last record is older than this' -r
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s n -l dry-run -d 'List what would be removed, without removing it'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -l unfinished -d 'Also remove unfinished sessions, which could still be resumed'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show the calls and their results, turn by turn'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "stats" -d 'Show runs, successes, failures, and durations of each tool, over all given logs'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "cost" -d 'Show tokens, turns, and estimated cost (by `prices` in tools.yaml) of each agent, over all given logs'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Check that every line is intact; exit 4 if one isn\'t'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "resolve" -d 'Record what became of a call in doubt, for `run --resume`'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "prune" -d 'Remove old sessions from the default directory, with all their files'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -f -a "schema" -d 'Print the JSON Schema of tools.yaml'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -f -a "completions" -d 'Print shell completions'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -f -a "man" -d 'Print the man page'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -l log -d 'Print the schema of a session log record instead'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "schema" -d 'Print the JSON Schema of tools.yaml'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "completions" -d 'Print shell completions'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "man" -d 'Print the man page'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand init" -l from -d 'Existing declarations to import: a request with `tools`, an array of tools, or an MCP `tools/list` result' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand init" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand init" -l color -d 'When to use colors' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand init" -l force -d 'Overwrite the file if it exists'
complete -c toolq -n "__fish_toolq_using_subcommand init" -s q -l quiet -d 'Print only errors'
complete -c toolq -n "__fish_toolq_using_subcommand init" -s v -l verbose -d 'Also print which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand init" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand init" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "run" -d 'Run the tool calls of a model response and print their results'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "plan" -d 'Show what would run, in which batches, and why, without running it'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "agent" -d 'Run one agent on an input until it answers'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "replay" -d 'Check recordings against the current tools: inputs still valid, results unchanged'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "check" -d 'Report problems in tools.yaml'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "tools" -d 'Print the tool declarations for a model'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "log" -d 'Inspect session logs, and resolve calls in doubt'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "generate" -d 'Print a generated file: a schema, shell completions, or the man page'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "init" -d 'Create a starter tools.yaml'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "show" -d 'Show the calls and their results, turn by turn'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "stats" -d 'Show runs, successes, failures, and durations of each tool, over all given logs'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "cost" -d 'Show tokens, turns, and estimated cost (by `prices` in tools.yaml) of each agent, over all given logs'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "verify" -d 'Check that every line is intact; exit 4 if one isn\'t'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "resolve" -d 'Record what became of a call in doubt, for `run --resume`'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "prune" -d 'Remove old sessions from the default directory, with all their files'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "schema" -d 'Print the JSON Schema of tools.yaml'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "completions" -d 'Print shell completions'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "man" -d 'Print the man page'
