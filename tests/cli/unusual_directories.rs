//! Names of directories that aren't UTF-8.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;

use crate::support::CliSandbox;

/// Whatever a command does with the directory that it runs in, with a file there or with a program, the name is only a name.
#[test]
fn a_directory_may_have_any_name() {
    let sandbox = CliSandbox::new();
    let dir = sandbox.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&dir).unwrap();
    let tools = "version: 1\ntools: {now: {input_schema: {type: object}, effect: read, paths: [], command: [echo, now]}}\n";
    fs::write(dir.join("tools.yaml"), tools).unwrap();
    let message = r#"[{"type":"tool_use","id":"a","name":"now","input":{}}]"#;
    fs::write(dir.join("message"), format!("{message}\n")).unwrap();
    for (arguments, printed) in [
        ("run", "now"),
        ("run --log s.jsonl", "now"),
        ("run --follow", "now"),
        ("call now {}", "now"),
        ("plan", "echo now"),
        ("plan --format json --out plan.json", ""),
        ("plan --format html", "now"),
        ("check", ""),
        ("check --machine", ""),
        ("tools", "now"),
        ("approvals", ""),
        ("serve", ""),
        ("log", ""),
        ("log list", ""),
        ("log verify s.jsonl", ""),
        ("log export --format html s.jsonl", "now"),
        ("replay s.jsonl", ""),
        ("init minimal", ""),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let mut command = sandbox.command(&arguments);
        command.current_dir(&dir);
        command.stdin(File::open(dir.join("message")).unwrap());
        let output = command.output().unwrap();
        let [stdout, stderr] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_ne!(output.status.code(), Some(101), "{arguments:?}: {stderr}");
        assert!(stdout.contains(printed), "{arguments:?}: {stdout} {stderr}");
    }
}
