//! Paths judged as the arguments and variables that they become.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::testing::{sample_template, tool_with_backing};
use crate::types::{ArgumentTemplate, CommandLimits, Leftovers, StdinSource};

fn command_backing(argument: &str, root: &Path) -> CommandBacking {
    CommandBacking {
        program: "prog".to_owned(),
        arguments: vec![ArgumentTemplate {
            template: sample_template(argument),
            digits_only: false,
        }],
        dashes: Vec::new(),
        stdin: StdinSource::None,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: root.to_owned(),
        success_exit: vec![0],
        leftovers: Leftovers::default(),
        limits: CommandLimits::default(),
    }
}

/// Returns the pointers of the refused inputs. The inputs `p`, `q` and `list` are paths.
fn refused(command: CommandBacking, input: &Value, root: &Path) -> Vec<String> {
    let mut tool = tool_with_backing(Backing::Command(command));
    tool.paths = ["p", "q", "list"].map(|name| vec![name.to_owned()]).into();
    let input = Input::parse(&input.to_string()).unwrap();
    let details = find_outside_paths(&tool, &input, root);
    details.into_iter().map(|detail| detail.path).collect()
}

/// A root with `docs/` and `src/`, and links to a directory outside: `out`, `docs/out`, `out.txt` and `docs/out.md`.
fn sandbox() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    for name in ["root/docs", "root/src", "outside"] {
        std::fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    for link in ["out", "docs/out", "out.txt", "docs/out.md"] {
        symlink(dir.path().join("outside"), root.join(link)).unwrap();
    }
    (dir, root)
}

#[test]
fn a_path_is_judged_as_the_argument_that_it_becomes() {
    let (_dir, root) = sandbox();
    for (argument, input, pointers) in [
        ("{p}", json!({"p": "out/x"}), vec!["/p"]),
        ("{p}", json!({"p": "../outside"}), vec!["/p"]),
        ("docs/{p}", json!({"p": "out"}), vec!["/p"]),
        ("docs/{p}", json!({"p": "../../outside"}), vec!["/p"]),
        ("docs/{p}.md", json!({"p": "out"}), vec!["/p"]),
        ("{p}.txt", json!({"p": "out"}), vec!["/p"]),
        ("{p}/{q}", json!({"p": "docs", "q": "out"}), vec!["/p"]),
        ("{x}/{q}", json!({"x": "docs", "q": "out"}), vec!["/q"]),
        ("--file={p}", json!({"p": "out"}), vec!["/p"]),
        ("HEAD:{p}", json!({"p": "/etc/passwd"}), vec!["/p"]),
        ("a=b:docs/{p}", json!({"p": "out"}), vec!["/p"]),
        ("@{p}", json!({"p": "/etc/passwd"}), vec!["/p"]),
        ("@{p}/{q}", json!({"p": "docs", "q": "out"}), vec!["/p"]),
        ("{p}:/data", json!({"p": "out"}), vec!["/p"]),
        ("docs/{p}:/data", json!({"p": "out"}), vec!["/p"]),
        ("{p}", json!({"p": ["docs/a"]}), vec!["/p"]),
        ("{p}", json!({"p": 1}), vec!["/p"]),
        (
            "{list...}",
            json!({"list": ["a", "out/x"]}),
            vec!["/list/1"],
        ),
        ("{list...}", json!({"list": [["out/x"]]}), vec!["/list/0"]),
        ("{o}", json!({"o": {"p": "a"}, "p": "out"}), vec!["/p"]),
    ] {
        let found = refused(command_backing(argument, &root), &input, &root);
        assert_eq!(found, pointers, "{argument} {input}");
    }
    for (argument, input) in [
        ("{p}", json!({"p": "src/new.txt"})),
        ("{p}", json!({"p": "-delete"})),
        ("{p?}", json!({"p": null})),
        ("docs/{p}", json!({"p": "../src"})),
        ("docs/{p}.md", json!({"p": "a b"})),
        ("{p}.txt", json!({"p": "docs"})),
        ("{p}.md", json!({"p": "out"})),
        ("{p}/{q}", json!({"p": "docs", "q": "a/b"})),
        ("HEAD:{p}", json!({"p": "src"})),
        ("{p}:/data", json!({"p": "src"})),
        ("{list...}", json!({"list": ["a", "docs/b"]})),
    ] {
        let found = refused(command_backing(argument, &root), &input, &root);
        assert_eq!(found, [""; 0], "{argument} {input}");
    }
}

#[test]
fn a_path_in_a_variable_or_stdin_is_judged_too() {
    let (_dir, root) = sandbox();
    let with = |env: &str, stdin: &str| {
        let mut command = command_backing("x", &root);
        command.env = vec![("V".to_owned(), sample_template(env))];
        command.stdin = StdinSource::Template(sample_template(stdin));
        command
    };
    for (env, stdin, input) in [
        ("{p}", "", json!({"p": "out"})),
        ("a:{p}", "", json!({"p": "out"})),
        ("docs/{p}", "", json!({"p": "out"})),
        ("${BASE}/{p}", "", json!({"p": "out"})),
        ("{p}/${NAME}", "", json!({"p": "out"})),
        ("", "{p}", json!({"p": "out"})),
        ("docs/{p}", "{p}", json!({"p": "../../x"})),
    ] {
        let found = refused(with(env, stdin), &input, &root);
        assert_eq!(found, ["/p"], "{env} {stdin} {input}");
    }
    for (env, stdin) in [("docs/{p}", ""), ("${BASE}/{p}", "{p}"), ("", "open {p}")] {
        let found = refused(with(env, stdin), &json!({"p": "src/a"}), &root);
        assert_eq!(found, [""; 0], "{env} {stdin}");
    }
    let mut command = command_backing("x", &root);
    command.stdin = StdinSource::Input;
    assert_eq!(refused(command, &json!({"p": "out"}), &root), ["/p"]);
}
