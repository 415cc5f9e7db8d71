//! Replays a recording on a throw-away copy of `root`, for the tests of `--on-copy`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::replay::{ok_result, recorded_turn};
use crate::support::{CliOutput, CliSandbox, eprint_uncaptured};

pub const TOOLS: &str = r#"version: 1
tools:
  read:
    description: Read a file.
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    effect: read
    paths: [path]
    command: [cat, --, "{path}"]
  write:
    description: Write a file.
    input_schema: {type: object, properties: {path: {type: string}, text: {type: string}}, required: [path, text]}
    paths: [path]
    command: {argv: [sh, -c, 'cat > "$1" && echo written', --, "{path}"], stdin: "{text}"}
  shell:
    description: Run a script.
    input_schema: {type: object, properties: {script: {type: string}}, required: [script]}
    command: {argv: [sh, -c, 'eval "$SCRIPT"'], env: {SCRIPT: "{script}"}}
  fetch:
    description: Send a request.
    input_schema: {type: object}
    effect: read
    http: {url: "http://127.0.0.1:9/"}
"#;

pub fn sandbox() -> CliSandbox {
    CliSandbox::new()
        .tools(TOOLS)
        .file("root/poem", "so much depends\n")
}

pub fn shell(script: &str, result_text: &str) -> String {
    recorded_turn(&[(
        "s",
        "shell",
        json!({"script": script}),
        ok_result(result_text),
    )])
}

/// Everything below a directory: kind, permissions, time, and content.
pub fn snapshot(root: &Path) -> BTreeMap<String, (u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        let state = (
            metadata.mode(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            content,
        );
        found.insert(path.display().to_string(), state);
    }
    found
}

/// The result of replaying a recording on a copy of `root/`.
pub struct CopyReplay {
    pub ran: CliOutput,
    /// TMPDIR, which exists as long as this.
    pub temp: TempDir,
    /// What is left in TMPDIR.
    pub left_over: Vec<String>,
}

/// Returns whether this system can't confine programs to a copy, and says that the test is skipped.
pub fn is_refused(stderr: &str) -> bool {
    let is_refused = stderr.contains("this system can't confine");
    if is_refused {
        eprint_uncaptured(format_args!("skipped: {stderr}\n"));
    }
    is_refused
}

/// Replays `recordings` on a copy, and asserts that nothing in the original changed. Returns `None` if this system
/// doesn't allow the confinement.
pub fn replay_on_copy(
    sandbox: CliSandbox,
    recordings: &[&str],
    arguments: &[&str],
) -> Option<CopyReplay> {
    replay_with_tools(TOOLS, sandbox, recordings, arguments)
}

pub fn replay_with_tools(
    tools: &str,
    sandbox: CliSandbox,
    recordings: &[&str],
    arguments: &[&str],
) -> Option<CopyReplay> {
    let temp = TempDir::new().unwrap();
    let mut sandbox = sandbox
        .tools(&tools.replace("version: 1", "version: 1\nroot: root"))
        .env("TMPDIR", temp.path().to_str().unwrap());
    let names: Vec<String> = (0..recordings.len())
        .map(|number| format!("{number}.jsonl"))
        .collect();
    for (name, text) in names.iter().zip(recordings) {
        sandbox = sandbox.file(name, text);
    }
    let before = snapshot(&sandbox.path().join("root"));
    let mut all = vec!["replay", "--on-copy", "--json", "-"];
    all.extend(names.iter().map(String::as_str));
    all.extend(arguments);
    let ran = sandbox.run(&all);
    assert_eq!(
        snapshot(&ran.dir.path().join("root")),
        before,
        "{}",
        ran.stderr
    );
    if is_refused(&ran.stderr) {
        return None;
    }
    let left_over = fs::read_dir(temp.path()).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().display().to_string();
    let left_over = left_over.map(|entry| name(entry.unwrap())).collect();
    Some(CopyReplay {
        ran,
        temp,
        left_over,
    })
}
