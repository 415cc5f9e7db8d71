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
complete -c toolq -n "__fish_toolq_needs_command" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_needs_command" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_needs_command" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_needs_command" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "run" -d 'Answer the calls'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "plan" -d 'Show what would run, in which batches, and why; runs nothing'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "agent" -d 'Run one agent on an input, to its answer'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "replay" -d 'Hold recordings against today\'s tools: are inputs still valid, are results still the same'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "check" -d 'Look for problems in tools.yaml'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "tools" -d 'Print the declarations for a model'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "log" -d 'Read session logs, and settle what is in doubt'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "generate" -d 'Print a generated file: a schema, completions, the man page'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "init" -d 'Write a tools.yaml to start from'
complete -c toolq -n "__fish_toolq_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l from -d 'The form of the input, where it should not be recognised' -r -f -a "anthropic\t''
openai-chat\t''
openai-responses\t''
claude-code\t''
codex\t''
toolq\t''
anthropic-sse\t'A stream of the Messages API'
openai-sse\t'A stream of chat completions or responses'"
complete -c toolq -n "__fish_toolq_using_subcommand run" -l max-input -d 'The largest JSON document that is read' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -s j -l jobs -d 'Calls that run at once; 1 turns parallelism off [default: `concurrency` of tools.yaml]' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -l to -d 'The form of the results, where it should not mirror the input' -r -f -a "message\t'An Anthropic user message'
blocks\t'An array of Anthropic blocks'
block-lines\t'One block a line, each as soon as it and all before it are there'
openai-chat\t'An array of `role: tool` messages'
openai-responses\t'An array of `function_call_output` items'"
complete -c toolq -n "__fish_toolq_using_subcommand run" -l log -d 'The session log, written behind what it has already [default: a new file below `$XDG_STATE_HOME/toolq/sessions`]' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand run" -l sync -d 'Which calls\' records survive a loss of power before toolq goes on: those that may do something, or all' -r -f -a "auto\t''
all\t''"
complete -c toolq -n "__fish_toolq_using_subcommand run" -l events -d 'Write events as NDJSON to a descriptor (`fd:3`) or behind what a file has already' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -l progress -d 'How to show what runs' -r -f -a "auto\t'A bar on a terminal, lines where CI is set, else nothing but the summary'
bar\t'A bar; lines where stderr is no terminal'
plain\t'A line for each thing that happens'
none\t'Nothing'"
complete -c toolq -n "__fish_toolq_using_subcommand run" -l max-calls -d 'Start so many calls at most; the others are answered without being run' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -l time-budget -d 'End what runs after so long, and start nothing more' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -l max-output-total -d 'End what runs once tools have written so many bytes of results, and start nothing more' -r
complete -c toolq -n "__fish_toolq_using_subcommand run" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand run" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand run" -l all -d 'Take calls that already have a result in the input, too'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l follow -d 'Answer JSON lines one by one as they come, one line for each, to serve as a co-process'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l no-log -d 'Keep no session log'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l resume -d 'Finish what the last run in the log began: what has its result, and what a model has answered an agent, is taken from there, and what is missing runs. Without `--log`, the latest session of this input'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l new -d 'Begin another run in the log, also behind one that was left unfinished'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l accept-changes -d 'Resume although tools.yaml has changed: what is missing runs by the tools of today'
complete -c toolq -n "__fish_toolq_using_subcommand run" -l fail-on-error -d 'Exit 1 if a result is an error'
complete -c toolq -n "__fish_toolq_using_subcommand run" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand run" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand run" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l from -d 'The form of the input, where it should not be recognised' -r -f -a "anthropic\t''
openai-chat\t''
openai-responses\t''
claude-code\t''
codex\t''
toolq\t''
anthropic-sse\t'A stream of the Messages API'
openai-sse\t'A stream of chat completions or responses'"
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l max-input -d 'The largest JSON document that is read' -r
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s j -l jobs -d 'Calls that run at once; 1 turns parallelism off [default: `concurrency` of tools.yaml]' -r
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l format -d 'How to show the plan' -r -f -a "text\t'For people: a timeline'
json\t'One object a line and turn'
mermaid\t'A diagram for a page that renders mermaid'"
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l all -d 'Take calls that already have a result in the input, too'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l describe -d 'Ask tools that describe themselves what they take; this runs their `describe`, and nothing else'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -l strict -d 'Exit 1 if a call is rejected'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand plan" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l to -d 'What is printed' -r -f -a "text\t'The answer'
messages\t'The whole conversation, in the form of the agent\'s API'
json\t'The answer with what it took: turns, tokens, cost'"
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s j -l jobs -d 'Calls that run at once; 1 turns parallelism off [default: `concurrency` of tools.yaml]' -r
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l log -d 'The session log, written behind what it has already [default: a new file below `$XDG_STATE_HOME/toolq/sessions`]' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l sync -d 'Which calls\' records survive a loss of power before toolq goes on: those that may do something, or all' -r -f -a "auto\t''
all\t''"
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l events -d 'Write events as NDJSON to a descriptor (`fd:3`) or behind what a file has already' -r
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l progress -d 'How to show what runs' -r -f -a "auto\t'A bar on a terminal, lines where CI is set, else nothing but the summary'
bar\t'A bar; lines where stderr is no terminal'
plain\t'A line for each thing that happens'
none\t'Nothing'"
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l max-calls -d 'Start so many calls at most; the others are answered without being run' -r
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l time-budget -d 'End what runs after so long, and start nothing more' -r
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l max-output-total -d 'End what runs once tools have written so many bytes of results, and start nothing more' -r
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l no-log -d 'Keep no session log'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l resume -d 'Finish what the last run in the log began: what has its result, and what a model has answered an agent, is taken from there, and what is missing runs. Without `--log`, the latest session of this input'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l new -d 'Begin another run in the log, also behind one that was left unfinished'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -l accept-changes -d 'Resume although tools.yaml has changed: what is missing runs by the tools of today'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand agent" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l execute -d 'Which calls really run; the results of the others are served from the recording' -r -f -a "read\t'Those of tools that only read'
all\t'All that have a backing'
none\t'None'"
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l ignore -d 'A part of every result that may differ: `/pointer`, or `//name` at any depth' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l ids -d 'Whether ids of calls inside of results may be others than recorded, one for one' -r -f -a "rename\t'They may be others, one for one'
exact\t'They are compared like any text'"
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l tolerance -d 'Numbers may differ by so much, or by such a part of the larger one, for example 1e-9' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l json -d 'Write a report as JSON; `-` is stdout' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l junit -d 'Write a JUnit report: a suite is a recording, a case is a call' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l markdown -d 'Write a summary as Markdown, for the page of a CI run' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l shard -d 'Replay the K-th of N parts of the sorted recordings' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l from -d 'The form of the recordings, where it should not be recognised' -r -f -a "anthropic\t''
openai-chat\t''
openai-responses\t''
claude-code\t''
codex\t''
toolq\t''
anthropic-sse\t'A stream of the Messages API'
openai-sse\t'A stream of chat completions or responses'"
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l max-input -d 'The largest JSON document that is read' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s j -l jobs -d 'Calls that run at once; 1 turns parallelism off [default: `concurrency` of tools.yaml]' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l log -d 'Keep a session log of the calls that run, written behind what the file has already' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l max-calls -d 'Start so many calls at most; the others are answered without being run' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l time-budget -d 'End what runs after so long, and start nothing more' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l max-output-total -d 'End what runs once tools have written so many bytes of results, and start nothing more' -r
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l update -d 'Write new results into the recordings'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -l fail-fast -d 'End with the first turn in which a call differs'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand replay" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand check" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand check" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand check" -l strict -d 'Exit 1 for warnings, too'
complete -c toolq -n "__fish_toolq_using_subcommand check" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand check" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand check" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand check" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand tools" -l format -d 'The form of the declarations' -r -f -a "anthropic\t''
openai-chat\t''
openai-responses\t''
mcp\t''
markdown\t'A section for a prompt'"
complete -c toolq -n "__fish_toolq_using_subcommand tools" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand tools" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand tools" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand tools" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand tools" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand tools" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "show" -d 'What was asked, ran and was answered, turn by turn'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "stats" -d 'Runs, successes, failures and durations of each tool, over all logs'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "cost" -d 'Tokens, turns and estimated cost of each agent, by the `prices` of tools.yaml, over all logs'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "verify" -d 'Whether every line is as it was written; exit 4 where one is not'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "resolve" -d 'Say what became of a call in doubt, so that `run --resume` knows'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "prune" -d 'Remove old sessions of the default folder, with all that stands beside them'
complete -c toolq -n "__fish_toolq_using_subcommand log; and not __fish_seen_subcommand_from show stats cost verify resolve prune help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -l format -d 'How to show it' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -l tool -d 'Only calls of this tool; may be given again' -r
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s f -l follow -d 'Go on while the log grows, until its session ends or its process is gone'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -l errors -d 'Only calls that failed, did not run, or have no result; in JSON, their results'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -l format -d 'How to show them' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from stats" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -l format -d 'How to show it' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from cost" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from verify" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l result -d 'The result of a call that is done' -r
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l note -d 'How you know; kept in the log' -r
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l done -d 'It did its work; `--result` is what the model reads of it from now on'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l error -d 'That result is an error'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -l not-done -d 'It did nothing: the next `run --resume` runs it'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from resolve" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -l older -d 'Sessions whose last record is older than this' -r
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s n -l dry-run -d 'Say what would be removed, and remove nothing'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -l unfinished -d 'Remove sessions without an end, too: they could be resumed'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from prune" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "show" -d 'What was asked, ran and was answered, turn by turn'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "stats" -d 'Runs, successes, failures and durations of each tool, over all logs'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "cost" -d 'Tokens, turns and estimated cost of each agent, by the `prices` of tools.yaml, over all logs'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Whether every line is as it was written; exit 4 where one is not'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "resolve" -d 'Say what became of a call in doubt, so that `run --resume` knows'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "prune" -d 'Remove old sessions of the default folder, with all that stands beside them'
complete -c toolq -n "__fish_toolq_using_subcommand log; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -f -a "schema" -d 'The JSON Schema of tools.yaml'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -f -a "completions" -d 'Completions for a shell'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -f -a "man" -d 'The man page'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and not __fish_seen_subcommand_from schema completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -l log -d 'That of a record of the session log'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from schema" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from completions" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from man" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "schema" -d 'The JSON Schema of tools.yaml'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "completions" -d 'Completions for a shell'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "man" -d 'The man page'
complete -c toolq -n "__fish_toolq_using_subcommand generate; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand init" -l from -d 'Declarations to start from: a request with `tools`, an array of them, or an MCP `tools/list` answer' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand init" -s c -l tools -d 'The file that declares the tools' -r -F
complete -c toolq -n "__fish_toolq_using_subcommand init" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c toolq -n "__fish_toolq_using_subcommand init" -l force -d 'Replace the file if it exists'
complete -c toolq -n "__fish_toolq_using_subcommand init" -s q -l quiet -d 'Say nothing but errors'
complete -c toolq -n "__fish_toolq_using_subcommand init" -s v -l verbose -d 'Say more: which files are used'
complete -c toolq -n "__fish_toolq_using_subcommand init" -s h -l help -d 'Print help'
complete -c toolq -n "__fish_toolq_using_subcommand init" -s V -l version -d 'Print version'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "run" -d 'Answer the calls'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "plan" -d 'Show what would run, in which batches, and why; runs nothing'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "agent" -d 'Run one agent on an input, to its answer'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "replay" -d 'Hold recordings against today\'s tools: are inputs still valid, are results still the same'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "check" -d 'Look for problems in tools.yaml'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "tools" -d 'Print the declarations for a model'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "log" -d 'Read session logs, and settle what is in doubt'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "generate" -d 'Print a generated file: a schema, completions, the man page'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "init" -d 'Write a tools.yaml to start from'
complete -c toolq -n "__fish_toolq_using_subcommand help; and not __fish_seen_subcommand_from run plan agent replay check tools log generate init help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "show" -d 'What was asked, ran and was answered, turn by turn'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "stats" -d 'Runs, successes, failures and durations of each tool, over all logs'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "cost" -d 'Tokens, turns and estimated cost of each agent, by the `prices` of tools.yaml, over all logs'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "verify" -d 'Whether every line is as it was written; exit 4 where one is not'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "resolve" -d 'Say what became of a call in doubt, so that `run --resume` knows'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from log" -f -a "prune" -d 'Remove old sessions of the default folder, with all that stands beside them'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "schema" -d 'The JSON Schema of tools.yaml'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "completions" -d 'Completions for a shell'
complete -c toolq -n "__fish_toolq_using_subcommand help; and __fish_seen_subcommand_from generate" -f -a "man" -d 'The man page'
