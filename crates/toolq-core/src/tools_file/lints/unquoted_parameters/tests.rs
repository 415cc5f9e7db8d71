//! Which parameters of a script shells split into words.

use super::script_scanner::find_split_parameters;

/// Returns the parameters of a script that are split, as they are written.
fn split_parameters(script: &str) -> Vec<&str> {
    let found = find_split_parameters(script).into_iter();
    found.map(|(range, _)| &script[range]).collect()
}

#[test]
fn unquoted_parameters_are_split() {
    for (script, expected) in [
        ("rm $1", vec!["$1"]),
        ("rm -- $1 \"$2\" ${3}x$4", vec!["$1", "${3}", "$4"]),
        ("cat $FILE | grep ${1:-x}", vec!["$FILE", "${1:-x}"]),
        ("echo $12", vec!["$1"]),
        ("cp $@ /x; mv $* /y", vec!["$@", "$*"]),
        ("[ $1 = x ] && test $2", vec!["$1", "$2"]),
        ("if [ -e $1 ]; then cat \"$1\"; fi", vec!["$1"]),
        ("dd if=$1 of='$2'", vec!["$1"]),
        ("A=$1 run $2", vec!["$2"]),
        ("echo \"$(cat $1)\" \"`cat $2`\"", vec!["$1", "$2"]),
        ("x=$(wc -l $1); (cd $2)", vec!["$1", "$2"]),
        (
            "case x in $1) rm $2 ;; *) rm $3; esac; rm $4",
            vec!["$2", "$3", "$4"],
        ),
        (
            "x=$(case $1 in a) echo $2;; esac) ; ls $3",
            vec!["$2", "$3"],
        ),
        ("for f in a b; do rm $1; done", vec!["$1"]),
        ("[[ $1 = x ]] && rm $2", vec!["$2"]),
        ("cat > $1", vec!["$1"]),
        ("cat <<EOF\n$1\nEOF\nrm $2", vec!["$2"]),
        (
            "cat <<-'EOF' | sort $1\n\t$2\n\tEOF\nrm $3",
            vec!["$1", "$3"],
        ),
        ("# rm $1\nrm $2 # $3", vec!["$2"]),
        ("printf '%s\\n' \\\n  $1", vec!["$1"]),
        ("f() { rm $1; }; f x", vec!["$1"]),
        ("echo $'it\\'s' $1", vec!["$1"]),
    ] {
        assert_eq!(split_parameters(script), expected, "{script}");
    }
}

#[test]
fn everything_else_stays_whole() {
    for script in [
        "rm \"$1\" \"x${2}y\" '$3' \\$4",
        "echo $# $? $$ $! $- ${#1}",
        "[[ $1 == $2 && -e $3 ]]",
        "[[ ( $1 < $2 ) || $3 > $4 ]]",
        "a=$1; b+=$2 c[0]=$3; export D=$4; local e=$5",
        "files=($1 $2)",
        "case $1 in $2) ;; esac",
        "case \"$1\" in (a|b) ;; $2) ;; esac",
        "x=$(( $1 + $2 )); (( $1 > 2 ))",
        "for word in $1; do :; done",
        "set -- $1; : ${1:?}",
        "cat <<< $1",
        "echo ${1:+\"$1\"} ${1+x}",
        "echo \"$(printf '%s' \"$1\")\" \"a `cat \"$1\"` b\"",
        "printf '%s\\n' \"$@\"",
        "sed 's/$1/x/' \"$1\"",
        "awk '{print $1}' \"$1\"",
        "$(",
        "`",
        "${",
        "\"$(",
        "case",
        "case $1 in",
        "<<",
        "[[ (",
        "a=(",
        "$",
        "\\",
    ] {
        assert!(split_parameters(script).is_empty(), "{script}");
    }
}

/// A file is from its author, but may be anything.
#[test]
fn deeply_nested_commands_are_skipped() {
    for open in ["$(", "\"$(", "a=(", "`\"$("] {
        split_parameters(&open.repeat(100_000));
    }
}
