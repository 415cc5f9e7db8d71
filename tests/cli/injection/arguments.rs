//! Values that programs would read as options, programs or other paths: each attack is tested beside ordinary values, which
//! the same declaration serves.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::{CliSandbox, model_response};

/// Runs the calls in a sandbox with `tools`, whose root is `work/`. There are the files `work/a b`, `work/ü`, `work/-n`,
/// `work/src/x` and `secret`, which is outside, and `work/out` links to the outside.
fn run_in_work(
    tools: &str,
    calls: &[(&str, Value)],
) -> (crate::support::CliOutput, Vec<(String, bool)>) {
    let sandbox = CliSandbox::new()
        .tools(&format!("root: work\n{tools}"))
        .file("secret", "outside\n")
        .stdin(model_response(calls));
    let work = sandbox.path().join("work");
    std::fs::create_dir_all(work.join("src")).unwrap();
    for name in ["a b", "ü", "-n", "src/x"] {
        std::fs::write(work.join(name), format!("{name}\n")).unwrap();
    }
    symlink(sandbox.path(), work.join("out")).unwrap();
    let ran = sandbox.run(&["run", "-q"]).assert_exit(0);
    let texts = ran.result_texts();
    assert_eq!(texts.len(), calls.len());
    (ran, texts)
}

fn tool(name: &str, keys: &str) -> String {
    format!(
        "tools:\n  {name}:\n    input_schema: {{type: object, properties: {{path: {{type: string}}, n: {{type: integer}}}}}}\n    {keys}\n"
    )
}

/// `find` treats `-delete` as an action, even after `--`.
#[test]
fn a_path_is_never_an_action_of_find() {
    let tools = tool(
        "find",
        r#"paths: [path]
    command: [find, --, "{path}", -type, f]"#,
    );
    let calls = ["-delete", "(", "!", "src", "ü"].map(|path| ("find", json!({"path": path})));
    let (ran, texts) = run_in_work(&tools, &calls);
    for (text, is_error) in &texts[..3] {
        assert!(*is_error && text.contains("No such file"), "{text}");
    }
    assert_eq!(texts[3], ("src/x".to_owned(), false));
    assert_eq!(texts[4], ("./ü".to_owned(), false));
    assert!(ran.dir.path().join("work/src/x").exists());
}

/// The `--` of `sh -c` isn't one of the program in its script.
#[test]
fn a_path_is_never_an_option_of_a_program_in_a_script() {
    let tools = tool(
        "count",
        r#"paths: [path]
    command: [sh, -c, 'wc -l "$1" && sort "$1"', --, "{path}"]"#,
    );
    let dir = tempfile::tempdir().unwrap();
    let written = dir.path().join("written");
    let names = dir.path().join("names");
    std::fs::write(&names, "/etc/hostname\0").unwrap();
    let attacks = [
        format!("--files0-from={}", names.display()),
        format!("-o{}", written.display()),
    ];
    let values = attacks
        .iter()
        .map(String::as_str)
        .chain(["-n", "a b", "src/x", "ü"]);
    let calls: Vec<(&str, Value)> = values
        .map(|path| ("count", json!({"path": path})))
        .collect();
    let (_, texts) = run_in_work(&tools, &calls);
    assert!(
        texts[..2].iter().all(|(_, is_error)| *is_error),
        "{texts:?}"
    );
    assert!(!written.exists());
    let counted = |words: u32, path: &str, line: &str| (format!("{words} {path}\n{line}"), false);
    assert_eq!(
        texts[2..],
        [
            counted(1, "./-n", "-n"),
            counted(1, "a b", "a b"),
            counted(1, "src/x", "src/x"),
            counted(1, "./ü", "ü"),
        ]
    );
}

/// A path is judged again when its call starts: an earlier call of the turn may have made a link.
#[test]
fn a_link_that_an_earlier_call_made_is_noticed() {
    let tools = r#"
tools:
  unpack:
    input_schema: {type: object}
    command: [sh, -c, 'ln -s .. evil && mkdir good']
  read:
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    effect: read
    paths: [path]
    command: [cat, --, "{path}"]
  write:
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    paths: [path]
    command: {argv: [sh, -c, 'cat > "$1"', --, "{path}"], stdin: "text"}
"#;
    let calls = [
        ("unpack", json!({})),
        ("read", json!({"path": "evil/secret"})),
        ("write", json!({"path": "evil/new"})),
        ("write", json!({"path": "good/new"})),
        ("read", json!({"path": "good/new"})),
    ];
    let (ran, texts) = run_in_work(tools, &calls);
    for (text, is_error) in &texts[1..3] {
        assert!(
            *is_error && text.contains("Path must be within working directory"),
            "{text}"
        );
    }
    assert_eq!(texts[4], ("text".to_owned(), false));
    assert!(!ran.dir.path().join("new").exists());
    let statuses: Vec<Value> = ran
        .log_records()
        .iter()
        .filter(|record| record["type"] == "tool_result")
        .map(|record| record["metadata"]["status"].clone())
        .collect();
    assert_eq!(statuses[1..3], ["path_outside_root", "path_outside_root"]);
}

#[test]
fn dashes_hands_over_a_negative_number() {
    let tools = tool(
        "count",
        r#"command: {argv: [seq, "{n}", "1"], dashes: [n]}"#,
    );
    let (_, texts) = run_in_work(
        &tools,
        &[("count", json!({"n": -1})), ("count", json!({"n": 1}))],
    );
    assert_eq!(
        texts,
        [("-1\n0\n1".to_owned(), false), ("1".to_owned(), false)]
    );
}

/// The path that is judged is the one that the program opens.
#[test]
fn a_path_with_text_around_it_is_judged_with_that_text() {
    for (template, attack, served) in [
        ("src/{path}", "link/secret", "x"),
        ("{path}/secret", "out", "src"),
        ("{path}.txt", "link", "plain"),
    ] {
        let tools = format!(
            r#"
tools:
  prepare:
    input_schema: {{type: object}}
    command: [sh, -c, 'ln -s ../.. src/link; ln -s ../secret link.txt; echo src > plain.txt; echo src > src/secret']
  read:
    input_schema: {{type: object, properties: {{path: {{type: string}}}}, required: [path]}}
    paths: [path]
    command: [cat, "{template}"]
"#
        );
        let calls = [
            ("prepare", json!({})),
            ("read", json!({"path": attack})),
            ("read", json!({"path": served})),
        ];
        let (_, texts) = run_in_work(&tools, &calls);
        assert!(
            texts[1].1 && texts[1].0.contains("working directory"),
            "{template} {texts:?}"
        );
        assert!(
            !texts[2].1 && texts[2].0.contains("src"),
            "{template} {texts:?}"
        );
    }
}

/// Where a path leads is at its end.
#[test]
fn a_plan_shows_the_whole_path_that_it_refuses() {
    let path = format!("/elsewhere/{}readme.md", "deeper/".repeat(15));
    let tools =
        "tools: {read: {input_schema: {type: object}, paths: [path], command: [cat, '{path}']}}";
    let planned = CliSandbox::new()
        .tools(tools)
        .stdin(model_response(&[("read", json!({ "path": path }))]))
        .run(&["plan"])
        .assert_exit(0);
    assert!(planned.stdout.contains(&path), "{}", planned.stdout);
}

/// An open schema lets an array through. Its items aren't arguments there, so they can't be judged as paths.
#[test]
fn an_array_is_a_path_only_if_it_is_spread() {
    let tools = r#"
tools:
  one:
    input_schema: {type: object}
    paths: [path]
    command: [echo, "{path}"]
  each:
    input_schema: {type: object}
    paths: [path]
    command: [cat, "{path...}"]
"#;
    let calls = [
        ("one", json!({"path": ["src/x"]})),
        ("each", json!({"path": ["src/x", "out/secret"]})),
        ("each", json!({"path": ["src/x", "-n"]})),
    ];
    let (_, texts) = run_in_work(tools, &calls);
    assert!(
        texts[0].1 && texts[0].0.contains("/path: Path must be within"),
        "{texts:?}"
    );
    assert!(
        texts[1].1 && texts[1].0.contains("/path/1: Path must be within"),
        "{texts:?}"
    );
    assert_eq!(texts[2], ("src/x\n-n".to_owned(), false));
}

/// Programs split what they read from stdin into lists of paths.
#[test]
fn every_path_in_a_list_stays_inside() {
    let tools = tool(
        "read",
        r#"paths: [path]
    command: {argv: [sh, -c, "xargs cat"], stdin: "{path}"}"#,
    );
    let values = [
        "src/x out/secret",
        "'out/secret'",
        "\\out/secret",
        "src/x\nout/secret",
        "src/x",
        "ü",
    ];
    let calls = values.map(|path| ("read", json!({"path": path})));
    let (_, texts) = run_in_work(&tools, &calls);
    for (text, is_error) in &texts[..4] {
        assert!(
            *is_error && text.contains("within working directory"),
            "{text}"
        );
    }
    assert_eq!(
        texts[4..],
        [("src/x".to_owned(), false), ("ü".to_owned(), false)]
    );
}
