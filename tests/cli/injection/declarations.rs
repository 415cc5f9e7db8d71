//! Declarations through which a value would run something: they are errors in tools.yaml, so no call runs. Each is tested
//! beside a form that serves ordinary values.

use serde_json::json;

use crate::support::{CliOutput, CliSandbox, lacks, model_response};

/// Runs a call of a tool with these keys, whose inputs `x` and `path` are `value`.
fn run_with(keys: &str, value: &str) -> CliOutput {
    let tools = format!(
        "tools:\n  t:\n    input_schema: {{type: object, properties: {{x: {{type: string}}, path: {{type: string}}}}, required: [x, path]}}\n    {}\n",
        keys.replace(" ⏎ ", "\n    ")
    );
    CliSandbox::new()
        .tools(&tools)
        .file("f", "word\n")
        .file("lock", "")
        .stdin(model_response(&[("t", json!({"x": value, "path": value}))]))
        .run(&["run", "-q"])
}

fn assert_refused(rows: &[(&str, &str)]) {
    for (keys, value) in rows {
        let ran = run_with(keys, value);
        assert_eq!(ran.code, 2, "{keys}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.dir.path().join("canary").exists(), "{keys}");
    }
}

fn assert_served(rows: &[(&str, &str, &str)]) {
    for (keys, value, text) in rows {
        let ran = run_with(keys, value).assert_exit(0);
        assert_eq!(ran.result_texts(), [((*text).to_owned(), false)], "{keys}");
    }
}

/// `perl -n` opens its operands as shell redirections, so `touch x |` runs.
#[test]
fn a_path_is_no_operand_of_perl_that_opens_it() {
    assert_refused(&[
        (
            "paths: [path] ⏎ command: [perl, -ne, 'print', --, \"{path}\"]",
            "touch canary|",
        ),
        (
            "paths: [path] ⏎ command: [perl, -pe, '1', \"{path}\"]",
            "touch canary|",
        ),
    ]);
    assert_served(&[(
        "paths: [path] ⏎ command: [sh, -c, 'cat < \"$1\"', --, \"{path}\"]",
        "f",
        "word",
    )]);
}

/// Nothing is run from stdin unless the file says what stdin is.
#[test]
fn the_input_is_never_run_from_stdin() {
    assert_refused(&[
        ("command: [bash, -s, --, \"{x}\"]", "$(touch canary)"),
        ("command: [sh]", "$(touch canary)"),
        ("command: [make, -f, \"-\"]", "$(shell touch canary)"),
        ("command: [xargs, -I%, sh, -c, 'echo %']", "$(touch canary)"),
        ("command: [python3, \"-\", \"{x}\"]", "open('canary', 'w')"),
        ("command: [sqlite3, app.db]", ".shell touch canary"),
    ]);
    assert_served(&[
        ("command: {argv: [sh], stdin: \"{x}\"}", "echo ran", "ran"),
        (
            "command: {argv: [sh, -s, --, \"{x}\"], stdin: 'echo \"$1\"'}",
            "a b",
            "a b",
        ),
        ("command: [xargs, -I%, echo, \"%\"]", "ü", "{x:ü,path:ü}"),
    ]);
}

/// Options that take a value don't hide the program of a wrapper.
#[test]
fn a_value_is_never_the_program_of_a_wrapper() {
    let program = "touch";
    assert_refused(&[
        ("command: [env, -u, FOO, \"{x}\", canary]", program),
        ("command: [xargs, -a, f, --, \"{x}\", canary]", program),
        (
            "command: [flock, -w, \"5\", lock, \"{x}\", canary]",
            program,
        ),
        ("command: [stdbuf, -o, L, \"{x}\", canary]", program),
        ("command: [sudo, -u, root, --, \"{x}\", canary]", program),
        ("command: [docker, exec, box, \"{x}\", canary]", program),
        (
            "command: [setpriv, --reuid, \"0\", \"{x}\", canary]",
            program,
        ),
        ("command: [runuser, -u, root, --, \"{x}\", canary]", program),
        ("command: [nice, -n, \"5\", \"{x}\", canary]", program),
        (
            "command: [timeout, -k, \"1\", \"5\", \"{x}\", canary]",
            program,
        ),
        ("command: [nohup, \"{x}\", canary]", program),
        ("command: [find, f, -exec, \"{x}\", canary, ;]", program),
        (
            "command: [tar, -xf, f, \"--to-command={x}\"]",
            "touch canary",
        ),
        ("command: [git, -c, \"{x}\", x]", "alias.x=!touch canary"),
        ("command: [make, \"{x}\"]", "A=$(shell touch canary)"),
    ]);
    assert_served(&[
        ("command: [env, -u, FOO, echo, \"{x}\"]", "a b", "a b"),
        ("command: [nice, -n, \"5\", echo, \"{x}\"]", "ü", "ü"),
        (
            "command: [timeout, -k, \"1\", \"5\", echo, \"{x}\"]",
            "src",
            "src",
        ),
        ("command: [find, f, -exec, echo, \"{x}\", ;]", "src", "src"),
    ]);
}

/// A value can't set a variable that decides what programs run.
#[test]
fn a_value_never_steers_a_program_through_a_variable() {
    for name in [
        "MAKEFILES",
        "TAR_OPTIONS",
        "HOME",
        "EXINIT",
        "RSYNC_RSH",
        "CC",
        "npm_config_script_shell",
        "LESSOPEN",
    ] {
        assert_refused(&[(
            &format!("command: {{argv: [cat, f], env: {{{name}: \"{{x}}\"}}}}"),
            "touch canary",
        )]);
    }
    assert_served(&[(
        "command: {argv: [sh, -c, 'echo \"$QUERY\"'], env: {QUERY: \"{x}\"}}",
        "-n $(x)",
        "-n $(x)",
    )]);
}

/// Commands of sqlite3 run programs. With `-safe`, a statement is only a statement.
#[test]
fn a_statement_of_sqlite3_needs_safe_mode() {
    assert_refused(&[("command: [sqlite3, app.db, \"{x}\"]", ".shell touch canary")]);
    if lacks(&["sqlite3"]) {
        return;
    }
    let safe = "command: [sqlite3, -safe, \":memory:\", \"{x}\"]";
    for value in [
        ".shell touch canary",
        "SELECT 1\n/\n.shell touch canary",
        "SELECT 1;\n.shell touch canary",
    ] {
        let ran = run_with(safe, value).assert_exit(0);
        assert!(!ran.dir.path().join("canary").exists(), "{value}");
    }
    assert_served(&[(safe, "SELECT 'a b'", "a b")]);
}

/// A value can't be the option itself, nor a file or module that an option loads.
#[test]
fn a_value_is_never_an_option_or_what_an_option_loads() {
    assert_refused(&[
        ("command: [env, \"-{x}\"]", "S touch canary"),
        ("command: [sort, \"-{x}\", f]", "ocanary"),
        ("command: [find, f, \"-{x}\", canary]", "fprint"),
        ("command: [sed, \"-n{x}\", p, f]", "e1e touch canary"),
        ("command: [awk, -f, \"{x}\", f]", "evil"),
        (
            "command: [perl, \"-M{x}\", -e, \"1\"]",
            "strict;system('touch canary')",
        ),
        (
            "command: [node, \"--import={x}\", -e, \"1\"]",
            "data:text/javascript,import('fs').then(f=>f.writeFileSync('canary',''))",
        ),
        (
            "command: [tar, -cf, a.tar, \"--use-compress={x}\", f]",
            "touch canary",
        ),
        (
            "command: [git, rebase, --root, -x, \"{x}\"]",
            "touch canary",
        ),
        ("command: [git, bisect, run, \"{x}\", canary]", "touch"),
        ("command: [choom, -n, \"0\", \"{x}\", canary]", "touch"),
        ("command: [npx, -c, \"{x}\"]", "touch canary"),
        ("command: [setarch, x86_64]", "touch canary"),
        ("command: [ssh, host, bash]", "$(touch canary)"),
    ]);
    assert_served(&[
        ("command: [head, -n, \"1\", \"f\"]", "x", "word"),
        ("command: [sort, \"--field-separator=,\", f]", "x", "word"),
        ("command: [printf, \"%s\", \"+{x}\"]", "-n", "+-n"),
    ]);
}
