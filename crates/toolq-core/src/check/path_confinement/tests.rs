//! Paths judged as the arguments and variables that they become.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::testing::{accepted_call, sample_template, tool_with_backing};
use crate::tools_file::parse_tools_file;
use crate::types::{CommandLimits, Leftovers, RejectionReason, StderrUse, StdinSource, Verdict};

fn command_backing(argument: &str, root: &Path) -> CommandBacking {
    CommandBacking {
        program: "prog".to_owned(),
        arguments: vec![sample_template(argument)],
        dashes: Vec::new(),
        stdin: StdinSource::None,
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: root.to_owned(),
        success_exit: vec![0],
        stderr: StderrUse::default(),
        leftovers: Leftovers::default(),
        limits: CommandLimits::default(),
        sandbox: None,
        wrapper: None,
    }
}

fn within(root: &Path) -> PathLimits<'_> {
    PathLimits {
        root,
        own_files: &[],
    }
}

/// Returns what is wrong with the paths of a call.
fn refused_details(tool: &Tool, input: &Input, limits: PathLimits<'_>) -> Vec<ProblemDetail> {
    let rejection = check_paths(tool, input, limits).err();
    rejection.map_or_else(Vec::new, |rejection| rejection.details)
}

/// Returns the pointers of the refused inputs. The inputs `p`, `q` and `list` are paths.
fn refused(command: CommandBacking, input: &Value, root: &Path) -> Vec<String> {
    let mut tool = tool_with_backing(Backing::Command(command));
    tool.paths = ["p", "q", "list"].map(|name| vec![name.to_owned()]).into();
    let input = Input::parse(&input.to_string()).unwrap();
    let details = refused_details(&tool, &input, within(root));
    details.into_iter().map(|detail| detail.path).collect()
}

/// A root with `docs/` and `src/`, and links to a directory outside: `out`, `docs/out`, `out.txt` and `docs/out.md`.
fn sandbox() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    for name in ["root/docs", "root/src", "outside"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    for name in ["root/x=y", "root/day 12:00"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    for link in [
        "out",
        "docs/out",
        "out.txt",
        "docs/out.md",
        "x=y/out",
        "day 12:00/out",
    ] {
        symlink(dir.path().join("outside"), root.join(link)).unwrap();
    }
    (dir, root)
}

/// A path may be inside, and `docs/{name}`, `{path}.txt` or `{dir}:/data` not. Where a `:` makes a program split, each
/// part must be inside.
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
        ("x=y/{p}", json!({"p": "out"}), vec!["/p"]),
        ("day 12:00/{p}", json!({"p": "out"}), vec!["/p"]),
        // A program that splits `a:b` splits values with a `:`, too.
        ("{p}:{q}", json!({"p": "src", "q": "docs:out"}), vec!["/q"]),
        ("{p}:{q}", json!({"p": "x:/etc", "q": "docs"}), vec!["/p"]),
        ("{p}:{q}", json!({"p": "docs:../x", "q": "src"}), vec!["/p"]),
        ("{p}:/data", json!({"p": "src:/etc"}), vec!["/p"]),
        ("-Wl,{p}", json!({"p": "src,/etc"}), vec!["/p"]),
        (
            "--mount=type=bind,src={p}",
            json!({"p": "src,src=/etc"}),
            vec!["/p"],
        ),
        ("{p}", json!({"p": ["docs/a"]}), vec!["/p"]),
        ("{p}", json!({"p": 1}), vec!["/p"]),
        (
            "{list...}",
            json!({"list": ["a", "out/x"]}),
            vec!["/list/1"],
        ),
        ("{list...}", json!({"list": [["out/x"]]}), vec!["/list/0/0"]),
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
        ("{p}:/data/{q}", json!({"p": "src", "q": "a"})),
        ("{p}:{q}", json!({"p": "a=b", "q": "h:x"})),
        ("{p}:{q}", json!({"p": "-n", "q": "ü"})),
        ("--file={p}", json!({"p": "a=/b:c"})),
        ("--file={p}", json!({"p": "src/../docs/a"})),
        ("x=y/{p}", json!({"p": "a:b"})),
        ("docs/{p}", json!({"p": "a,b;c=../d"})),
        ("-Wl,{p}", json!({"p": "src,docs/a"})),
        ("docs/{p}", json!({"p": "%2e%2e/x"})),
        ("{list...}", json!({"list": ["a", "docs/b"]})),
    ] {
        let found = refused(command_backing(argument, &root), &input, &root);
        assert_eq!(found, [""; 0], "{argument} {input}");
    }
}

/// A program decodes what it finds in a URL.
#[test]
fn a_path_in_a_url_does_not_climb_once_it_is_decoded() {
    let (_dir, root) = sandbox();
    let url = format!("file://{}/docs/{{p}}", root.display());
    for (path, is_refused) in [
        ("%2e%2e/%2e%2e/outside", true),
        ("..%2F..%2Foutside", true),
        ("a/%2E./x", true),
        ("a%20b", false),
        ("100%", false),
        ("..a%2f", false),
    ] {
        let found = refused(command_backing(&url, &root), &json!({"p": path}), &root);
        assert_eq!(!found.is_empty(), is_refused, "{path}");
    }
}

/// The finished text is judged, not the value in it: a path may be inside, and `{path}.txt` or `{dir}:/data` not.
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
        // Programs split variables and lines.
        ("{p}", "", json!({"p": "src:/etc"})),
        ("{p}", "", json!({"p": "src out/x"})),
        ("-I{p}", "", json!({"p": "src,../x"})),
        ("", "{p}", json!({"p": "src\n/etc/passwd"})),
        ("", "{p}", json!({"p": "src out/x"})),
        ("", "{p}", json!({"p": "'/etc/passwd'"})),
        ("", "open {p}", json!({"p": "\\/etc/passwd"})),
    ] {
        let found = refused(with(env, stdin), &input, &root);
        assert_eq!(found, ["/p"], "{env} {stdin} {input}");
    }
    for (env, stdin) in [
        ("docs/{p}", ""),
        ("${BASE}/{p}", "{p}"),
        ("", "open {p}"),
        ("/", "/bin/x {p}"),
    ] {
        for value in ["src/a", "a b", "12:30", "it's", "src/ü, x", "-n"] {
            let found = refused(with(env, stdin), &json!({"p": value}), &root);
            assert_eq!(found, [""; 0], "{env} {stdin} {value}");
        }
    }
    let mut command = command_backing("x", &root);
    command.stdin = StdinSource::Input;
    assert_eq!(refused(command, &json!({"p": "out"}), &root), ["/p"]);
}

/// The program would run there, regardless of its arguments.
#[test]
fn a_working_directory_stays_inside_the_root() {
    let (_dir, root) = sandbox();
    for (cwd, is_refused) in [
        ("docs", false),
        ("out", true),
        ("docs/out", true),
        ("missing", false),
    ] {
        let command = CommandBacking {
            cwd: root.join(cwd),
            ..command_backing("x", &root)
        };
        let tool = tool_with_backing(Backing::Command(command));
        let input = Input::parse("{}").unwrap();
        let details = refused_details(&tool, &input, within(&root));
        assert_eq!(!details.is_empty(), is_refused, "{cwd}");
    }
}

/// A directory may have been replaced by a link since the call was checked.
#[test]
fn a_path_is_judged_again_before_the_call_starts() {
    let (dir, root) = sandbox();
    let mut tool = tool_with_backing(Backing::Command(command_backing("{p}", &root)));
    tool.paths = vec![vec!["p".to_owned()]];
    let checked = accepted_call(0, tool, true, r#"{"p": "src/x"}"#);
    let Verdict::Accepted(accepted) = &checked.verdict else {
        unreachable!()
    };
    assert!(recheck_paths(accepted, within(&root)).is_ok());
    fs::remove_dir(root.join("src")).unwrap();
    symlink(dir.path().join("outside"), root.join("src")).unwrap();
    let details = recheck_paths(accepted, within(&root)).unwrap_err().details;
    assert_eq!(details[0].path, "/p");
}

/// If stdin or JSON also contains a path, the program may open it as it is, not only after the text that precedes it in
/// an argument.
#[test]
fn a_path_that_is_also_passed_on_as_data_is_judged_as_it_is() {
    let (_dir, root) = sandbox();
    fs::create_dir(root.join("docs/src")).unwrap();
    let template = |text| StdinSource::Template(sample_template(text));
    let count_refused = |argument, stdin| {
        let mut command = command_backing("docs/src/{o.p}", &root);
        command.env = vec![("V".to_owned(), sample_template(argument))];
        command.stdin = stdin;
        let mut tool = tool_with_backing(Backing::Command(command));
        tool.paths = vec![vec!["o".to_owned(), "p".to_owned()]];
        let input = Input::parse(r#"{"o": {"p": "../../x", "q": 1}}"#).unwrap();
        refused_details(&tool, &input, within(&root)).len()
    };
    for (argument, stdin, count) in [
        ("", StdinSource::None, 0),
        ("{o.q}", template("{o.q}"), 0),
        ("", StdinSource::Input, 1),
        ("", template("{o.p}"), 1),
        ("", template("{o}"), 1),
        ("{o}", StdinSource::None, 1),
        ("{o.p.r?}", StdinSource::None, 1),
    ] {
        let shown = format!("{argument} {stdin:?}");
        assert_eq!(count_refused(argument, stdin), count, "{shown}");
    }
}

/// A name leads through each list on its way, however deep.
#[test]
fn a_path_in_a_list_is_judged() {
    let (_dir, root) = sandbox();
    let mut command = command_backing("docs", &root);
    command.stdin = StdinSource::Input;
    let mut tool = tool_with_backing(Backing::Command(command));
    tool.paths = vec![vec!["a".to_owned(), "path".to_owned()]];
    for (input, pointers) in [
        (json!({"a": {"path": "../x"}}), &["/a/path"][..]),
        (json!({"a": {"path": ["docs", "../x"]}}), &["/a/path/1"]),
        (
            json!({"a": [{"path": "docs"}, {"path": "../x"}]}),
            &["/a/1/path"],
        ),
        (
            json!({"a": [[{"path": "../x"}], {"path": ["/x"]}]}),
            &["/a/0/0/path", "/a/1/path/0"],
        ),
        (json!({"a": [{"path": [["../x"]]}]}), &["/a/0/path/0/0"]),
        (
            json!({"a": [{"path": null}, {"name": "../x"}, "../x", null]}),
            &[],
        ),
    ] {
        let input = Input::parse(&input.to_string()).unwrap();
        let details = refused_details(&tool, &input, within(&root));
        let found: Vec<&str> = details.iter().map(|detail| &*detail.path).collect();
        assert_eq!(found, pointers, "{}", input.text());
    }
}

/// Only what a program makes of a value is guessed. The value itself must be a path that can be judged.
#[test]
fn a_value_that_cannot_be_judged_is_refused() {
    let (_dir, root) = sandbox();
    for value in ["", "~/x", "missing/../x"] {
        let command = command_backing("{p}", &root);
        assert_eq!(
            refused(command, &json!({"p": value}), &root),
            ["/p"],
            "{value}"
        );
    }
}

/// A server runs where its own command says, and gets the arguments that the tool declares.
#[test]
fn paths_of_a_servers_tool_are_judged_where_the_server_runs() {
    let (_dir, root) = sandbox();
    let yaml = r#"
servers:
  notes:
    command: {argv: [server], cwd: docs}
tools:
  read:
    description: Read a note.
    input_schema: {type: object, properties: {p: {type: string}}, required: [p]}
    paths: [p]
    mcp: {server: notes, arguments: {file: "../src/{p}", kind: note}}
"#;
    let tools = parse_tools_file(yaml, &root, &root).tools.unwrap();
    for (value, is_refused) in [
        ("x", false),
        // The value itself is judged, too, and `docs/out` leads outside.
        ("out", true),
        ("../../root/src/x", true),
        // It stays inside from `docs`, where the server runs, but would leave `root` from there.
        ("../src/x", false),
        ("../../x", true),
    ] {
        let input = Input::parse(&json!({ "p": value }).to_string()).unwrap();
        let details = refused_details(&tools.tools[0], &input, within(&root));
        assert_eq!(!details.is_empty(), is_refused, "{value}");
    }
    symlink("../../outside", root.join("src/link")).unwrap();
    let input = Input::parse(r#"{"p": "link"}"#).unwrap();
    assert!(!refused_details(&tools.tools[0], &input, within(&root)).is_empty());
}

/// What says what may run isn't for a model to write. Reading it is harmless.
#[test]
fn only_a_tool_that_reads_gets_the_path_of_an_own_file() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::write(root.join("tools.yaml"), "").unwrap();
    symlink("tools.yaml", root.join("link")).unwrap();
    let own_files = [root.join("tools.yaml"), root.join("tools.lock")];
    let limits = PathLimits {
        root: &root,
        own_files: &own_files,
    };
    let mut tool = tool_with_backing(Backing::Command(command_backing("{p}", &root)));
    tool.paths = vec![vec!["p".to_owned()]];
    for effect in [Effect::Read, Effect::Idempotent, Effect::Write] {
        tool.effect = effect;
        for (path, is_own) in [
            ("tools.yaml", true),
            ("link", true),
            ("tools.lock", true),
            ("a", false),
        ] {
            let input = Input::parse(&json!({ "p": path }).to_string()).unwrap();
            let rejection = check_paths(&tool, &input, limits).err();
            let is_refused = is_own && effect != Effect::Read;
            assert_eq!(rejection.is_some(), is_refused, "{effect:?} {path}");
            let reason = rejection.as_ref().map(|rejection| rejection.reason);
            let expected = is_refused.then_some(RejectionReason::OwnFile);
            assert_eq!(reason, expected, "{effect:?} {path}");
            let details = rejection.map_or_else(Vec::new, |rejection| rejection.details);
            if let Some(detail) = details.first() {
                assert!(
                    detail.message.contains("belongs to toolq"),
                    "{}",
                    detail.message
                );
            }
        }
    }
}

/// Git runs what its files name, so a model that writes one runs programs as the user.
#[test]
fn only_a_tool_that_reads_gets_a_path_into_git() {
    let dir = tempfile::tempdir().unwrap();
    // A `.git` around the root protects nothing in it.
    let root = dir.path().canonicalize().unwrap().join(".git/root");
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    fs::write(root.join(".git/config"), "").unwrap();
    fs::create_dir(root.join("src")).unwrap();
    symlink("../.git", root.join("src/link")).unwrap();
    symlink("../.git/config", root.join("src/file")).unwrap();
    let mut tool = tool_with_backing(Backing::Command(command_backing("{p}", &root)));
    tool.paths = vec![vec!["p".to_owned()]];
    for effect in [Effect::Read, Effect::Idempotent, Effect::Write] {
        tool.effect = effect;
        for (path, is_git) in [
            (".git/config", true),
            (".git/hooks/pre-commit", true),
            (".git", true),
            ("src/../.git/new/file", true),
            ("src/link/config", true),
            ("src/link/hooks/pre-commit", true),
            ("src/file", true),
            ("vendor/lib/.GIT/config", true),
            (".gitignore", false),
            ("src/new", false),
            (".", false),
        ] {
            let input = Input::parse(&json!({ "p": path }).to_string()).unwrap();
            let rejection = check_paths(&tool, &input, within(&root)).err();
            let reason = rejection.map(|rejection| rejection.reason);
            let is_refused = is_git && effect != Effect::Read;
            let expected = is_refused.then_some(RejectionReason::OwnFile);
            assert_eq!(reason, expected, "{effect:?} {path}");
        }
    }
}
