# toolq completions for bash. The program itself knows what can stand where: `toolq __complete` prints `files` where a
# path can, else `words`, and then the candidates, each with its help after a tab.
_toolq() {
    local word=$2 flag='' i candidates candidate
    local -a words=()
    # bash splits `--flag=value` at the equals sign, and replaces only the value.
    for ((i = 0; i < COMP_CWORD; i++)); do
        words+=("${COMP_WORDS[i]}")
    done
    if [[ ${COMP_WORDS[COMP_CWORD]} == = ]]; then
        flag=${COMP_WORDS[COMP_CWORD - 1]}
        unset "words[COMP_CWORD - 1]"
    elif ((COMP_CWORD > 2)) && [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
        flag=${COMP_WORDS[COMP_CWORD - 2]}
        unset "words[COMP_CWORD - 1]" "words[COMP_CWORD - 2]"
    fi
    flag=${flag:+$flag=}
    COMPREPLY=()
    candidates=$("$1" __complete -- "${words[@]}" "$flag$word" 2> /dev/null) || return
    if [[ $candidates == files* ]]; then
        compopt -o default 2> /dev/null && return
        while IFS= read -r candidate; do
            COMPREPLY+=("$candidate")
        done < <(compgen -f -- "$word")
        return
    fi
    while IFS= read -r candidate; do
        candidate=${candidate%%$'\t'*}
        candidate=$(printf %q "${candidate#"$flag"}")
        COMPREPLY+=("$candidate")
    done < <(tail -n +2 <<< "$candidates")
}
complete -F _toolq toolq
