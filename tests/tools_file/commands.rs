//! Programs, their arguments and their environment.

use std::path::Path;
use std::time::Duration;

use toolq_core::types::{Backing, CommandBacking, Leftovers, Limits};

use crate::{quiet, refused, tool, tools, warned};

fn command(keys: &str) -> CommandBacking {
    match tools(&tool(keys)).tools[0].backing.clone() {
        Some(Backing::Command(command)) => command,
        other => panic!("{other:?}"),
    }
}

/// FAULTS 34: there is no shell to hand a string to.
#[test]
fn a_command_is_a_list() {
    refused(
        tool,
        r#"
        command: "cat {a}" ⇒ "cat {a}" ⇒ must be a list of the program
        command: [] ⇒ command ⇒ no program
        command: [""] ⇒ command ⇒ no program
        command: {stdin: none} ⇒ command ⇒ has no `argv`
        command: {argv: "cat"} ⇒ "cat" ⇒ must be a list
        command: [1, x] ⇒ 1 ⇒ must be text
        command: [a, "x\0"] ⇒ "x\0" ⇒ NUL
        command: [a] ⏎ http: {url: "http://h/"} ⇒ http ⇒ one backing
        "#,
    );
}

/// FAULTS 35: a value becomes no program and no text of one.
#[test]
fn values_are_never_run() {
    refused(
        tool,
        r#"
        command: ["{a}"] ⇒ {a} ⇒ cannot name a program
        command: ["/usr/bin/{a}", x] ⇒ {a} ⇒ cannot name a program
        command: [env, A=b, "{a}"] ⇒ {a} ⇒ cannot name a program
        command: [sh, -c, "ls {a}"] ⇒ {a} ⇒ a text that is run
        command: [/usr/bin/env, bash, -euc, "ls {a}"] ⇒ {a} ⇒ a text that is run
        command: [python3, -c, "print('{a}')"] ⇒ {a} ⇒ a text that is run
        command: [perl, -ne, "/{a}/"] ⇒ {a} ⇒ a text that is run
        command: [node, "--eval={a}"] ⇒ {a} ⇒ a text that is run
        command: [awk, "/{a}/", file] ⇒ {a} ⇒ a text that is run
        command: [awk, "-F,", --, "/{a}/", file] ⇒ {a} ⇒ a text that is run
        command: [sed, -n, "/{a}/p", file] ⇒ {a} ⇒ a text that is run
        command: [sh, -c, --, "ls {a}"] ⇒ {a} ⇒ a text that is run
        command: [bash, -c, -o, pipefail, -e, "ls {a}"] ⇒ {a} ⇒ a text that is run
        command: [node, -r, ./hook.js, -e, "run({a})"] ⇒ {a} ⇒ a text that is run
        command: [su, root, -c, "ls {a}"] ⇒ {a} ⇒ a text that is run
        command: {argv: [sh, -c, "echo {n}"]} ⇒ {n} ⇒ a text that is run
        command: [python3, "{a}"] ⇒ {a} ⇒ cannot choose the file
        command: [python3, -m, "{a}"] ⇒ {a} ⇒ cannot choose the file
        command: [/usr/bin/env, bash, -x, --, "scripts/{a}.sh"] ⇒ {a} ⇒ cannot choose the file
        command: [node, "{list...}"] ⇒ {list...} ⇒ cannot choose the file
        "#,
    );
    quiet(
        tool,
        r#"
        command: [sh, -c, 'for f in *; do echo ${f} ${HOME}; done', --, "{a}"]
        command: {argv: [bash, -c, 'eval "$SCRIPT"'], env: {SCRIPT: "{a}"}}
        command: [awk, '{print $1}', --, "{a}"]
        command: {argv: [sh], stdin: "{a}"}
        command: [jq, '.items | {sum: .a}']
        command: [python3, tool.py, --, "{a}"]
        command: [sh, -c, 'exec python3 "$1"', --, "{a}"]
        command: [bash, -s, --, "{a}"]
        "#,
    );
}

/// FAULTS 36.
#[test]
fn a_value_that_could_be_an_option_is_pointed_out() {
    warned(
        tool,
        r#"
        command: [cat, "{a}"] ⇒ "{a}" ⇒ begins with `-`
        command: [cat, "{a}.txt", --] ⇒ "{a}.txt" ⇒ begins with `-`
        command: [env, --, cat, "{a}"] ⇒ "{a}" ⇒ begins with `-`
        command: [cat, "{list?...}"] ⇒ "{list?...}" ⇒ begins with `-`
        "#,
    );
    quiet(
        tool,
        r#"
        command: [cat, --, "{a}"]
        command: [cat, --, "{list?...}"]
        command: [cat, "{list?}"]
        command: [cat, "--file={a}"]
        command: [seq, "{n}"]
        command: [sh, -c, 'echo "$1"', --, "{a}"]
        "#,
    );
    let command = command(r#"command: [cat, x, --, "{a}"]"#);
    let after: Vec<bool> = command.arguments.iter().map(|a| a.after_dashes).collect();
    assert_eq!(after, [false, false, true]);
}

/// FAULTS 41.
#[test]
fn a_program_gets_only_declared_variables() {
    let env = |pair: &str| tool(&format!("command: {{argv: [a], env: {{{pair}}}}}"));
    refused(
        env,
        r#"
        PATH: "x{a}" ⇒ {a} ⇒ decides what programs run
        LD_PRELOAD: "{a}" ⇒ {a} ⇒ decides what programs run
        DYLD_INSERT_LIBRARIES: "{a}" ⇒ {a} ⇒ decides what programs run
        BASH_ENV: "{a}" ⇒ {a} ⇒ decides what programs run
        ENV: "{a}" ⇒ {a} ⇒ decides what programs run
        IFS: "{a}" ⇒ {a} ⇒ decides what programs run
        GIT_SSH_COMMAND: "{a}" ⇒ {a} ⇒ decides what programs run
        PYTHONPATH: "{a}" ⇒ {a} ⇒ decides what programs run
        NODE_OPTIONS: "{a}" ⇒ {a} ⇒ decides what programs run
        PERL5OPT: "{a}" ⇒ {a} ⇒ decides what programs run
        RUBYOPT: "{a}" ⇒ {a} ⇒ decides what programs run
        TOOLQ_X: "1" ⇒ TOOLQ_X ⇒ reserved
        "{a}": "1" ⇒ "{a}" ⇒ no name of an environment variable
        A-B: "1" ⇒ A-B ⇒ no name of an environment variable
        A: "${1}" ⇒ ${ ⇒ begins no variable
        A: "x\0" ⇒ "x\0" ⇒ NUL
        "#,
    );
    quiet(
        env,
        r#"
        PATH: /opt/bin, LD_PRELOAD: lib.so
        A: "{a} ${B} ${C:-c} $${D}"
        "#,
    );
    refused(
        |names| tool(&format!("command: {{argv: [a], pass_env: [{names}]}}")),
        r"
        LC_* ⇒ LC_* ⇒ no name of an environment variable
        TOOLQ_X ⇒ TOOLQ_X ⇒ reserved
        ",
    );
}

/// FAULTS 70: the folder is the author's.
#[test]
fn a_command_runs_inside_the_root() {
    let inside = |cwd: &str| format!("command: {{argv: [a], cwd: \"{cwd}\"}}");
    refused(
        |cwd| tool(&inside(cwd)),
        r#"
        .. ⇒ ".." ⇒ out of the root
        a/../../b ⇒ "a/../../b" ⇒ out of the root
        /etc ⇒ "/etc" ⇒ out of the root
        /srv2 ⇒ "/srv2" ⇒ out of the root
        {a} ⇒ "{a}" ⇒ no template
        "#,
    );
    for (cwd, expected) in [
        ("a/b", "/srv/a/b"),
        ("/srv/x", "/srv/x"),
        (".", "/srv"),
        ("", "/srv"),
    ] {
        assert_eq!(command(&inside(cwd)).cwd, Path::new(expected));
    }
}

/// FAULTS 53, 69: what is left running, and what may be used.
#[test]
fn leftovers_and_limits() {
    let silent = command("command: [a]");
    assert_eq!(
        (silent.leftovers, silent.limits),
        (Leftovers::Kill, Limits::default())
    );
    let text = format!(
        "defaults: {{leftovers: report, limits: {{cpu: 1m, files: 9}}}}\n{}",
        tool("command: {argv: [a], limits: {cpu: 2s, memory: 1KiB}}")
    );
    let Some(Backing::Command(both)) = tools(&text).tools[0].backing.clone() else {
        panic!("{text}");
    };
    assert_eq!(both.leftovers, Leftovers::Report);
    let limits = Limits {
        cpu: Some(Duration::from_secs(2)),
        memory: Some(1024),
        files: Some(9),
        ..Limits::default()
    };
    assert_eq!(both.limits, limits);
    refused(
        tool,
        r"
        command: {argv: [a], leftovers: keep} ⇒ keep ⇒ cannot be `keep`
        command: {argv: [a], limits: {cpu: 1500ms}} ⇒ 1500ms ⇒ whole seconds
        command: {argv: [a], limits: {cpu: 0s}} ⇒ 0s ⇒ whole seconds
        command: {argv: [a], limits: {cpu: 10}} ⇒ 10 ⇒ needs a unit
        command: {argv: [a], limits: {memory: 0}} ⇒ 0 ⇒ no program runs
        command: {argv: [a], limits: {file_size: 0}} ⇒ 0 ⇒ no program runs
        command: {argv: [a], limits: {files: 3}} ⇒ 3 ⇒ less than a program is given
        command: {argv: [a], limits: {processes: 0}} ⇒ 0 ⇒ no program runs
        command: {argv: [a], limits: {procs: 1}} ⇒ procs ⇒ unknown key
        ",
    );
}
