//! toolq in a pid namespace of its own, as in a container: who leads its session is outside, and /proc may show other
//! numbers than it has.

use std::process::{Child, Command, Stdio};

use super::started::{Marked, answer, until};

/// As the namespace's first process, which waits for the end of its input before it ends. Nobody ends with it before.
const FIRST: &str = r#""$@" < /dev/null; code=$?; read -r _; exit $code"#;

/// Who may make a namespace, and where its /proc comes from; none on this machine if the system refuses.
fn unshare(own_proc: bool) -> Option<Command> {
    let user: &[&str] = if rustix::process::geteuid().is_root() {
        &[]
    } else {
        &["--map-root-user"]
    };
    let proc: &[&str] = if own_proc { &["--mount-proc"] } else { &[] };
    let made = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork"]).args(user).args(proc);
        command
    };
    let tried = made().arg("true").stderr(Stdio::null()).status();
    if tried.is_ok_and(|status| status.success()) {
        return Some(made());
    }
    println!("skipped: no pid namespace can be had here");
    None
}

/// Starts a toolq that is in `namespace`, below `first` where there is one.
fn start(mut namespace: Command, first: &[&str], marked: &Marked) -> Child {
    let toolq = marked.command(&["input"]);
    namespace.args(first).arg(toolq.get_program());
    namespace.args(toolq.get_args());
    namespace.current_dir(toolq.get_current_dir().unwrap());
    let variables = toolq.get_envs();
    namespace
        .env_clear()
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// FAULTS 48, 51: everything is answered, and what is late is ended, whatever the numbers of processes look like.
#[test]
fn calls_are_answered_and_ended_in_any_namespace() {
    for own_proc in [true, false] {
        for first in [&[][..], &["sh", "-c", FIRST, "sh"]] {
            let Some(namespace) = unshare(own_proc) else {
                return;
            };
            let marked = Marked::new().stdin(answer("a", &["echo", "late", "echo"]));
            let child = start(namespace, first, &marked);
            let started = marked.started(child);
            until("the session ends", || {
                let log = started.marked().log();
                log.last()
                    .is_some_and(|record| record["type"] == "session_end")
            });
            // Where somebody else is the first, the namespace is still there, and doesn't end those in it.
            until("nobody is left", || started.marked().alive().is_empty());
            let ended = started.end();
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            assert_eq!((ended.count("ok"), ended.count("timeout")), (2, 1));
            assert!(ended.stdout.contains("Until then it wrote:\\nbegun"));
            ended.assert_log_is_whole();
        }
    }
}
