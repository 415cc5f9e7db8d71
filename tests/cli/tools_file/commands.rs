//! `command`: programs, arguments, environment, working directory and limits.

use std::path::Path;
use std::time::Duration;

use toolq_core::types::{Backing, CommandBacking, CommandLimits, Leftovers, StdinSource};

use crate::support::CliSandbox;
use crate::tools_file::{
    assert_no_problems, assert_refused, assert_warned, file_with_tool, load_tools,
};

fn load_command(keys: &str) -> CommandBacking {
    match load_tools(&file_with_tool(keys)).tools[0].backing.clone() {
        Some(Backing::Command(command)) => command,
        other => panic!("{other:?}"),
    }
}

/// A command is a list, because no shell splits a string.
#[test]
fn a_command_is_a_list() {
    assert_refused(
        file_with_tool,
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

/// An input value can't become a program, or code that a program runs.
#[test]
fn values_are_never_run() {
    assert_refused(
        file_with_tool,
        r#"
        command: ["{a}"] ⇒ {a} ⇒ can't name a program
        command: ["/usr/bin/{a}", x] ⇒ {a} ⇒ can't name a program
        command: [env, A=b, "{a}"] ⇒ {a} ⇒ can't name a program
        command: [sh, -c, "ls {a}"] ⇒ {a} ⇒ code that is run
        command: [/usr/bin/env, bash, -euc, "ls {a}"] ⇒ {a} ⇒ code that is run
        command: [python3, -c, "print('{a}')"] ⇒ {a} ⇒ code that is run
        command: [perl, -ne, "/{a}/"] ⇒ {a} ⇒ code that is run
        command: [node, "--eval={a}"] ⇒ {a} ⇒ code that is run
        command: [awk, "/{a}/", file] ⇒ {a} ⇒ code that is run
        command: [awk, "-F,", --, "/{a}/", file] ⇒ {a} ⇒ code that is run
        command: [sed, -n, "/{a}/p", file] ⇒ {a} ⇒ code that is run
        command: [sh, -c, --, "ls {a}"] ⇒ {a} ⇒ code that is run
        command: [bash, -c, -o, pipefail, -e, "ls {a}"] ⇒ {a} ⇒ code that is run
        command: [node, -r, ./hook.js, -e, "run({a})"] ⇒ {a} ⇒ code that is run
        command: [su, root, -c, "ls {a}"] ⇒ {a} ⇒ code that is run
        command: {argv: [sh, -c, "echo {n}"]} ⇒ {n} ⇒ code that is run
        command: [python3, "{a}"] ⇒ {a} ⇒ can't choose the file
        command: [python3, -m, "{a}"] ⇒ {a} ⇒ can't choose the file
        command: [/usr/bin/env, bash, -x, --, "scripts/{a}.sh"] ⇒ {a} ⇒ can't choose the file
        command: [node, "{list...}"] ⇒ {list...} ⇒ can't choose the file
        command: [env, -u, FOO, "{a}"] ⇒ {a} ⇒ can't name a program
        command: [xargs, -a, f, --, "{a}"] ⇒ {a} ⇒ can't name a program
        command: [flock, -w, "5", lock, "{a}"] ⇒ {a} ⇒ can't name a program
        command: [stdbuf, -o, L, "{a}"] ⇒ {a} ⇒ can't name a program
        command: [sudo, -u, root, --, "{a}"] ⇒ {a} ⇒ can't name a program
        command: [docker, exec, -i, box, "{a}"] ⇒ {a} ⇒ can't name a program
        command: [setpriv, --reuid, "1", "{a}"] ⇒ {a} ⇒ can't name a program
        command: [runuser, -u, me, --, "{a}"] ⇒ {a} ⇒ can't name a program
        command: [find, ., -exec, "{a}", ;] ⇒ {a} ⇒ can't name a program
        command: [tar, -xf, x.tar, "--to-command={a}"] ⇒ {a} ⇒ code that is run
        command: [git, -c, "{a}", log] ⇒ {a} ⇒ code that is run
        command: [env, "PATH={a}", cat] ⇒ {a} ⇒ code that is run
        command: [sqlite3, app.db, "{a}"] ⇒ {a} ⇒ code that is run
        command: [make, "{a}"] ⇒ "{a}" ⇒ can't be an operand of `make`
        command: [vim, "{a}"] ⇒ "{a}" ⇒ can't be an operand of `vim`
        paths: [a] ⏎ command: [perl, -ne, 'print if /x/', "{a}"] ⇒ "{a}" ⇒ can't be an operand of `perl`
        command: [sed, -n, "{n},5p", file] ⇒ {n} ⇒ code that is run
        "#,
    );
    assert_no_problems(
        file_with_tool,
        r#"
        command: [sh, -c, 'for f in *; do echo ${f} ${HOME}; done', --, "{a}"]
        command: {argv: [bash, -c, 'printf %s "$SCRIPT"'], env: {SCRIPT: "{a}"}}
        command: [awk, '{print $1}', --, "{a}"]
        command: [make, "t{n}"]
        paths: [a] ⏎ command: [vim, "{a}"]
        command: [sqlite3, -safe, -readonly, app.db, "{a}"]
        command: [env, -u, FOO, cat, "{a}"]
        command: [sudo, -nu, root, cat, "{a}"]
        command: [git, commit, -c, "{a}"]
        command: [jq, '.items | {sum: .a}']
        command: [python3, tool.py, --, "{a}"]
        command: [sh, -c, 'exec python3 tool.py "$1"', --, "{a}"]
        command: {argv: [bash, -s, --, "{a}"], stdin: none}
        command: {argv: [bash, -s, --, "{a}"], stdin: "echo \"$1\""}
        "#,
    );
}

/// A program that runs its stdin needs a `stdin`, so that no input is run by accident.
#[test]
fn stdin_is_run_only_if_the_file_says_so() {
    assert_refused(
        file_with_tool,
        r#"
        command: [sh] ⇒ sh ⇒ runs what it reads from stdin
        command: [bash, -s, --, "{a}"] ⇒ bash ⇒ runs what it reads from stdin
        command: [python3, "-", "{a}"] ⇒ python3 ⇒ runs what it reads from stdin
        command: [make, -f, "-"] ⇒ make ⇒ runs what it reads from stdin
        command: [xargs, -I%, sh, -c, 'echo %'] ⇒ xargs ⇒ runs what it reads from stdin
        command: [sqlite3, app.db] ⇒ sqlite3 ⇒ runs what it reads from stdin
        command: [timeout, "5", node] ⇒ node ⇒ runs what it reads from stdin
        "#,
    );
    assert_warned(
        file_with_tool,
        r#"
        command: {argv: [sh], stdin: "{a}"} ⇒ "{a}" ⇒ runs what it reads from stdin
        command: {argv: [sh], stdin: input} ⇒ input ⇒ runs what it reads from stdin
        "#,
    );
}

/// An input that is called like a path should stay inside the root, unless the file says that it needn't.
#[test]
fn paths_that_may_lead_anywhere_cause_warnings() {
    let with = |schema: &str, keys: &str| {
        format!(
            "tools:\n  t:\n    input_schema: {{type: object, required: [x], properties: {{x: {{type: string}}, {schema}}}}}\n    {keys}\n"
        )
    };
    assert_warned(
        |schema| with(schema, "command: [cat, --, \"{path?}\"]"),
        r#"
        path: {type: string} ⇒ "{path?}" ⇒ isn't kept inside the root
        path: {type: array} ⇒ "{path?}" ⇒ isn't kept inside the root
        "#,
    );
    assert_warned(
        |schema| with(schema, "command: [tool, \"--to={out_file?}\"]"),
        r#"out_file: {type: string} ⇒ "--to={out_file?}" ⇒ isn't kept inside the root"#,
    );
    assert_no_problems(
        |keys| {
            with(
                "path: {type: string, pattern: '^[^-]'}, kind_file: {enum: [a, b]}",
                &keys.replace(" ; ", "\n    "),
            )
        },
        r#"
        paths: [path] ; command: [cat, --, "{path?}"]
        paths: [] ; command: [cat, --, "{path?}"]
        command: [tool, "--kind={kind_file?}"]
        command: {argv: [cat], stdin: "{path?}"}
        "#,
    );
}

/// A call is refused if an argument begins with `-`. A warning says where the schema lets that happen.
#[test]
fn values_that_could_be_options_cause_warnings() {
    assert_warned(
        file_with_tool,
        r#"
        command: [cat, "{text}"] ⇒ "{text}" ⇒ begins with `-`
        command: [cat, --, "{text}"] ⇒ "{text}" ⇒ begins with `-`
        command: [cat, "{text}.txt", --] ⇒ "{text}.txt" ⇒ begins with `-`
        command: [seq, --, "{number}"] ⇒ "{number}" ⇒ begins with `-`
        paths: [a] ⏎ command: [cat, --, "{text}"] ⇒ "{text}" ⇒ begins with `-`
        "#,
    );
    assert_no_problems(
        file_with_tool,
        r#"
        command: [cat, --, "{a}"]
        command: [cat, --, "{list?...}"]
        command: [cat, "{list?}"]
        command: [cat, "--file={text}"]
        command: [cat, "<{text}>"]
        command: [seq, "{n}"]
        command: {argv: [seq, "{number}"], dashes: [number]}
        command: {argv: [cat], stdin: "{text}"}
        command: {argv: [cat], env: {A: "{text}"}}
        paths: [text] ⏎ command: [cat, "{text}"]
        "#,
    );
}

/// `dashes` names inputs that begin an argument; anything else is a mistake.
#[test]
fn dashes_name_inputs_that_begin_an_argument() {
    let command = load_command(r#"command: {argv: [seq, "{number}"], dashes: [number]}"#);
    assert_eq!(command.dashes, [["number"]]);
    assert_refused(
        file_with_tool,
        r#"
        command: {argv: [cat, "{a}"], dashes: [numbr]} ⇒ numbr ⇒ the input has no `numbr`
        command: {argv: [cat, "{a}"], dashes: [" "]} ⇒ " " ⇒ isn't a valid name of an input
        "#,
    );
    assert_warned(
        file_with_tool,
        r#"
        command: {argv: [cat, "x{a}"], dashes: [a]} ⇒ a ⇒ no argument begins with `a`
        paths: [a] ⏎ command: {argv: [cat, "{a}"], dashes: [a]} ⇒ a ⇒ never begins with `-`
        "#,
    );
}

/// What a script is given, its programs may take for options: to write `--option={x}` there would be no help.
#[test]
fn a_leading_dash_behind_a_script_is_for_the_script_to_stand() {
    let hint = |command: &str| {
        let tools = format!(
            "tools:\n  a:\n    input_schema: {{type: object, properties: {{x: {{type: string}}}}, required: [x]}}\n    command: {command}\n"
        );
        let checked = CliSandbox::new()
            .tools(&tools)
            .run(&["check"])
            .assert_exit(0);
        checked
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    for command in [
        r#"[sh, -c, 'grep "$1" notes', sh, "{x}"]"#,
        r#"[env, sh, ./search.sh, "{x}"]"#,
    ] {
        let said = hint(command);
        assert!(
            said.contains("what the script starts could take it"),
            "{said}"
        );
        assert!(
            said.contains("`grep -- \"$1\"` does, then allow it"),
            "{said}"
        );
        assert!(!said.contains("--option"), "{said}");
    }
    let said = hint(r#"[grep, "{x}", notes]"#);
    assert!(said.contains("write `--option={x}`"), "{said}");
    let restriction = "add a `pattern` that excludes a leading `-`, such as `^[^-]`,";
    assert!(said.contains(restriction), "{said}");
    assert!(
        said.contains("inside `command: {argv: …, dashes: [x]}`"),
        "{said}"
    );
    // The form that is recommended has no warning, and takes the value.
    let tools = r#"
tools:
  search:
    input_schema: {type: object, properties: {x: {type: string}}, required: [x]}
    effect: read
    command: {argv: [sh, -c, 'grep -- "$1" notes', sh, "{x}"], dashes: [x]}
"#;
    let ran = CliSandbox::new()
        .tools(tools)
        .file("notes", "a -v b\n")
        .run_shell(r#""$TOOLQ" check --strict && "$TOOLQ" call search '{"x":"-v"}'"#);
    assert_eq!(ran.stdout, "a -v b\n", "{}", ran.stderr);
}

/// Without a `stdin`, the input is handed over once: through templates, or else on stdin.
#[test]
fn stdin_is_the_input_only_if_no_template_uses_it() {
    let stdin = |keys: &str| match load_command(keys).stdin {
        StdinSource::Input => "input",
        StdinSource::None => "none",
        StdinSource::Template(_) => "template",
    };
    for (keys, expected) in [
        ("command: [wc, -l]", "input"),
        ("command: [cat, '{{a}']", "input"),
        ("command: {argv: [wc], env: {V: \"${A}\"}}", "input"),
        ("command: [wc, -l, \"{a}\"]", "none"),
        ("command: [wc, -l, \"--x={n}\"]", "none"),
        ("command: {argv: [wc, -l], env: {V: \"{a}\"}}", "none"),
        ("command: {argv: [wc, \"{a}\"], stdin: input}", "input"),
        ("command: {argv: [wc, -l], stdin: none}", "none"),
        ("command: {argv: [wc, \"{a}\"], stdin: \"{a}\"}", "template"),
    ] {
        assert_eq!(stdin(keys), expected, "{keys}");
    }
}

/// Input values can't set variables that decide which code runs, and reserved or invalid names are refused.
#[test]
fn values_cannot_set_sensitive_variables() {
    let env = |pair: &str| file_with_tool(&format!("command: {{argv: [a], env: {{{pair}}}}}"));
    assert_refused(
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
        MAKEFILES: "{a}" ⇒ {a} ⇒ decides what programs run
        TAR_OPTIONS: "{a}" ⇒ {a} ⇒ decides what programs run
        HOME: "{a}" ⇒ {a} ⇒ decides what programs run
        EXINIT: "{a}" ⇒ {a} ⇒ decides what programs run
        RSYNC_RSH: "{a}" ⇒ {a} ⇒ decides what programs run
        CC: "{a}" ⇒ {a} ⇒ decides what programs run
        npm_config_script_shell: "{a}" ⇒ {a} ⇒ decides what programs run
        RUBYOPT: "{a}" ⇒ {a} ⇒ decides what programs run
        TOOLQ_X: "1" ⇒ TOOLQ_X ⇒ reserved
        "{a}": "1" ⇒ "{a}" ⇒ isn't a valid name for an environment variable
        A-B: "1" ⇒ A-B ⇒ isn't a valid name for an environment variable
        A: "${1}" ⇒ ${ ⇒ doesn't begin a variable
        A: "x\0" ⇒ "x\0" ⇒ NUL
        "#,
    );
    assert_no_problems(
        env,
        r#"
        PATH: /opt/bin, LD_PRELOAD: lib.so
        A: "{a} ${B} ${C:-c} $${D}"
        "#,
    );
    assert_refused(
        |names| file_with_tool(&format!("command: {{argv: [a], pass_env: [{names}]}}")),
        r"
        LC_* ⇒ LC_* ⇒ isn't a valid name for an environment variable
        TOOLQ_X ⇒ TOOLQ_X ⇒ reserved
        ",
    );
}

/// The working directory is fixed by the author and must be within the root.
#[test]
fn a_command_runs_inside_the_root() {
    let command_in = |cwd: &str| format!("command: {{argv: [a], cwd: \"{cwd}\"}}");
    assert_refused(
        |cwd| file_with_tool(&command_in(cwd)),
        r#"
        .. ⇒ ".." ⇒ out of the root
        a/../../b ⇒ "a/../../b" ⇒ out of the root
        /etc ⇒ "/etc" ⇒ out of the root
        /srv2 ⇒ "/srv2" ⇒ out of the root
        {a} ⇒ "{a}" ⇒ can't be a template
        "#,
    );
    for (cwd, expected) in [
        ("a/b", "/srv/a/b"),
        ("/srv/x", "/srv/x"),
        (".", "/srv"),
        ("", "/srv"),
    ] {
        assert_eq!(load_command(&command_in(cwd)).cwd, Path::new(expected));
    }
}

/// What happens to processes that a command leaves running, and its resource limits.
#[test]
fn leftovers_and_limits_are_parsed() {
    let defaults = load_command("command: [a]");
    assert_eq!(
        (defaults.leftovers, defaults.limits),
        (Leftovers::Kill, CommandLimits::default())
    );
    let text = format!(
        "defaults: {{leftovers: report, limits: {{cpu: 1m, files: 9}}}}\n{}",
        file_with_tool("command: {argv: [a], limits: {cpu: 2s, memory: 1KiB}}")
    );
    let Some(Backing::Command(command)) = load_tools(&text).tools[0].backing.clone() else {
        panic!("{text}");
    };
    assert_eq!(command.leftovers, Leftovers::Report);
    let limits = CommandLimits {
        cpu: Some(Duration::from_secs(2)),
        memory: Some(1024),
        files: Some(9),
        ..CommandLimits::default()
    };
    assert_eq!(command.limits, limits);
    assert_refused(
        file_with_tool,
        r"
        command: {argv: [a], leftovers: keep} ⇒ keep ⇒ cannot be `keep`
        command: {argv: [a], limits: {cpu: 1500ms}} ⇒ 1500ms ⇒ whole seconds
        command: {argv: [a], limits: {cpu: 0s}} ⇒ 0s ⇒ whole seconds
        command: {argv: [a], limits: {cpu: 10}} ⇒ 10 ⇒ needs a unit
        command: {argv: [a], limits: {memory: 0}} ⇒ 0 ⇒ no program can run
        command: {argv: [a], limits: {file_size: 0}} ⇒ 0 ⇒ no program can run
        command: {argv: [a], limits: {files: 3}} ⇒ 3 ⇒ fewer than a program starts with
        command: {argv: [a], limits: {processes: 0}} ⇒ 0 ⇒ no program can run
        command: {argv: [a], limits: {procs: 1}} ⇒ procs ⇒ unknown key
        ",
    );
}
