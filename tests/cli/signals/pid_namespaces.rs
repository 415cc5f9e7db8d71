//! toolq in a PID namespace of its own, as in a container. The leader of its session is outside of the namespace, and
//! /proc may show the PIDs of another one.

use std::fs;
use std::process::{Child, Command, Stdio};

use super::marked_run::{MarkedSandbox, response_with_calls};
use crate::support::waiting::wait_until;
use crate::support::{reset_signals, skip};

/// A script for the init process of the namespace. When init exits, the kernel kills all other processes in the
/// namespace, so it waits until its stdin is closed.
const INIT_SCRIPT: &str = r#""$@" < /dev/null; code=$?; read -r _; exit $code"#;

/// Returns the command that creates a namespace, with the host's /proc or its own, or `None` if that isn't allowed.
fn unshare_command(own_proc: bool) -> Option<Command> {
    let user: &[&str] = if rustix::process::geteuid().is_root() {
        &[]
    } else {
        &["--map-root-user"]
    };
    let proc: &[&str] = if own_proc { &["--mount-proc"] } else { &[] };
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork"]).args(user).args(proc);
        command
    };
    let tried = unshare().arg("true").stderr(Stdio::null()).status();
    if tried.is_ok_and(|status| status.success()) {
        return Some(unshare());
    }
    skip("this user may not create a PID namespace");
    None
}

/// Starts toolq in the namespace, as a child of `init` if that isn't empty.
fn start_in_namespace(mut namespace: Command, init: &[&str], sandbox: &MarkedSandbox) -> Child {
    let toolq = sandbox.command(&["input"]);
    namespace.args(init).arg(toolq.get_program());
    namespace.args(toolq.get_args());
    namespace.current_dir(toolq.get_current_dir().unwrap());
    let variables = toolq.get_envs();
    namespace
        .env_clear()
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    reset_signals(&mut namespace);
    namespace.spawn().unwrap()
}

/// Lets processes outlive their calls. Otherwise toolq doesn't run where it can't see them.
fn allow_leftovers(sandbox: &MarkedSandbox) {
    let path = sandbox.path_of("tools.yaml");
    let tools = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{tools}\ndefaults: {{leftovers: allow}}\n")).unwrap();
}

/// Every call gets its result, and calls that time out are killed, regardless of the PIDs that toolq sees.
#[test]
fn calls_get_results_and_time_out_in_any_pid_namespace() {
    for own_proc in [true, false] {
        for init in [&[][..], &["sh", "-c", INIT_SCRIPT, "sh"]] {
            let Some(namespace) = unshare_command(own_proc) else {
                return;
            };
            let sandbox = MarkedSandbox::new()
                .stdin(response_with_calls("a", &["echo", "times_out", "echo"]));
            if !own_proc {
                allow_leftovers(&sandbox);
            }
            let child = start_in_namespace(namespace, init, &sandbox);
            let run = sandbox.into_run(child);
            wait_until("the session ends", || {
                let log = run.sandbox().log_records();
                log.last()
                    .is_some_and(|record| record["type"] == "session_end")
            });
            // With another init, the namespace still exists, so it isn't the kernel that killed the processes.
            wait_until("all processes are gone", || {
                run.sandbox().marked_processes().is_empty()
            });
            let output = run.wait_for_output();
            assert_eq!(output.code, Some(0), "{}", output.stderr);
            assert_eq!(
                (output.count_status("ok"), output.count_status("timeout")),
                (2, 1)
            );
            assert!(output.stdout.contains("Output until then:\\nbegun"));
            output.assert_log_complete();
        }
    }
}

/// If /proc doesn't show the processes of a call, they can't all be ended, so no process is started.
#[test]
fn a_foreign_or_missing_proc_is_an_error() {
    let Some(foreign) = unshare_command(false) else {
        return;
    };
    let mut missing = unshare_command(false).unwrap();
    missing.args([
        "--mount",
        "sh",
        "-c",
        r#"mount -t tmpfs none /proc && exec "$@""#,
        "sh",
    ]);
    for namespace in [foreign, missing] {
        let sandbox = MarkedSandbox::new().stdin(response_with_calls("a", &["echo"]));
        let child = start_in_namespace(namespace, &[], &sandbox);
        let output = sandbox.into_run(child).wait_for_output();
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        assert!(
            output
                .stderr
                .contains("/proc is missing or shows another PID namespace"),
            "{}",
            output.stderr
        );
        assert!(
            output.stderr.contains("leftovers: allow"),
            "{}",
            output.stderr
        );
        assert!(output.stdout.is_empty() && output.log.is_empty());
    }
}
