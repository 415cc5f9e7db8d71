#compdef toolq
# toolq completions for zsh. The program itself knows what can stand where: `toolq __complete` prints `files` where a
# path can, else `words`, and then the candidates, each with its help after a tab.
_toolq() {
    local candidate value
    local -a candidates described
    candidates=("${(@f)$("${(Q)words[1]}" __complete -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null)}")
    [[ $PREFIX == --*=* ]] && compset -P '*='
    if [[ $candidates[1] == files ]]; then
        _files
        return
    fi
    for candidate in "${(@)candidates[2,-1]}"; do
        value=${candidate%%$'\t'*}
        value=${value#$IPREFIX}
        described+=("${value//:/\\:}:${candidate#*$'\t'}")
    done
    _describe -V toolq described
}
if [[ $funcstack[1] == _toolq ]]; then
    _toolq "$@"
else
    compdef _toolq toolq
fi
