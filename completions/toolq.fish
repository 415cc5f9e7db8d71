# toolq completions for fish. The program itself knows what can stand where: `toolq __complete` prints a line about the
# candidates, and then the candidates, each with its help after a tab.
function __toolq_candidates
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    $words[1] __complete -- $words (commandline --current-token --cut-at-cursor) 2>/dev/null | tail -n +2
end
complete --command toolq --no-files --keep-order --arguments '(__toolq_candidates)'
