//! The limits of the process in which toolq runs: threads and open files.

use serde_json::json;

use crate::run::TOOLS;
use crate::support::{CliSandbox, copy_program, model_response};

/// toolq raises its own limit on open files. Some programs can't handle more than 1024.
#[cfg(target_os = "linux")]
#[test]
fn programs_get_the_limit_on_open_files_that_toolq_got() {
    let tools = "tools: {limit: {input_schema: {type: object}, command: [sh, -c, 'ulimit -Sn']}}";
    let ran = CliSandbox::new()
        .tools(tools)
        .stdin(model_response(&[("limit", json!({}))]))
        .run_shell("ulimit -Sn 200; exec \"$TOOLQ\" run")
        .assert_exit(0);
    assert_eq!(ran.result_texts(), [("200".to_owned(), false)]);
}

/// Runs toolq with this limit on threads, as a user other than the superuser, who may have any number of them.
#[cfg(target_os = "linux")]
fn run_as_user(max_threads: Option<u64>) -> std::process::Output {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{Resource, Rlimit, setrlimit};

    /// A user without other processes.
    const UNUSED_USER: u32 = 64_999;
    let dir = tempfile::TempDir::new().unwrap();
    let bin = dir.path().join("toolq");
    copy_program(env!("CARGO_BIN_EXE_toolq").as_ref(), &bin);
    std::fs::set_permissions(&bin, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(dir.path().join("tools.yaml"), TOOLS).unwrap();
    let input = model_response(&[("say", json!({"text": "hi"}))]);
    std::fs::write(dir.path().join("input.json"), input).unwrap();
    let mut command = std::process::Command::new(&bin);
    command
        .args(["run", "--no-log", "input.json"])
        .current_dir(dir.path())
        .stdin(std::process::Stdio::null());
    if rustix::process::geteuid().is_root() {
        chown(dir.path(), Some(UNUSED_USER), Some(UNUSED_USER)).unwrap();
        command.uid(UNUSED_USER).gid(UNUSED_USER);
    }
    if max_threads.is_some() {
        let limit = move || {
            let threads = Rlimit {
                current: max_threads,
                maximum: max_threads,
            };
            Ok(setrlimit(Resource::Nproc, threads)?)
        };
        // SAFETY: the function only makes a call that is async-signal-safe.
        unsafe { command.pre_exec(limit) };
    }
    command.output().unwrap()
}

/// A process that had started would keep stdout open, so no process is left.
#[cfg(target_os = "linux")]
#[test]
fn without_threads_nothing_runs() {
    for limit in [1, 3] {
        let output = run_as_user(Some(limit));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(71), "{stderr}");
        assert!(
            stderr.contains("failed to start worker threads"),
            "{stderr}"
        );
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert!(output.stdout.is_empty());
    }
    let output = run_as_user(None);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
}

/// Descriptors for the program itself, but not for the runtime.
#[cfg(target_os = "linux")]
#[test]
fn without_descriptors_nothing_runs() {
    for limit in 4..10 {
        let ran = CliSandbox::new()
            .tools("tools:\n  e: {input_schema: {type: object}, command: [touch, ran]}\n")
            .file("input.json", model_response(&[("e", json!({}))]))
            .run_shell(&format!(
                "ulimit -n {limit}; exec \"$TOOLQ\" run --no-log input.json"
            ))
            .assert_exit(71);
        assert!(ran.stderr.contains("Too many open files"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        assert_eq!((&*ran.stdout, ran.file("ran")), ("", None));
    }
}

/// Stdin and the file to which it is copied need one each.
#[cfg(target_os = "linux")]
#[test]
fn without_descriptors_for_its_input_nothing_runs() {
    let inputs = ["cat input.json | ", ""];
    let names = ["-", "input.json input.json input.json input.json"];
    for (pipe, names) in inputs.into_iter().zip(names) {
        let ran = CliSandbox::new()
            .tools("tools:\n  e: {input_schema: {type: object}, command: [touch, ran]}\n")
            .file("input.json", model_response(&[("e", json!({}))]))
            .run_shell(&format!(
                "{pipe} sh -c 'ulimit -n 4; exec \"$TOOLQ\" run --no-log {names}'"
            ))
            .assert_exit(71);
        assert!(ran.stderr.contains("Too many open files"), "{}", ran.stderr);
        assert_eq!((&*ran.stdout, ran.file("ran")), ("", None));
    }
}

/// Descriptors for toolq itself, but hardly any for a call's program.
#[cfg(target_os = "linux")]
#[test]
fn with_few_descriptors_a_call_runs_or_names_the_limit() {
    for limit in [13, 16, 20, 24, 28] {
        let ran = CliSandbox::new()
            .tools("tools:\n  e: {input_schema: {type: object}, command: [echo, ran]}\n")
            .file("input.json", model_response(&[("e", json!({}))]))
            .run_shell(&format!(
                "ulimit -n {limit}; exec \"$TOOLQ\" run -q --no-log input.json"
            ));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let has_run = ran.stdout.contains(r#""content":"ran""#);
        assert!(has_run || said.contains("`ulimit -n`"), "{limit}: {said}");
    }
}
