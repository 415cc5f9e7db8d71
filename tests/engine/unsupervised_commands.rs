//! Commands without a supervisor, as on systems that don't support one. This is a test binary of its own, because a
//! process with a supervisor is a subreaper: it would also adopt the orphans of these commands.

use crate::support::engine_turn::{TestTurn, shell_call};
use toolq_core::types::Outcome;

/// Without a supervisor, process groups are still killed. Limits can't be enforced, so the call isn't started.
#[test]
fn without_a_supervisor_groups_are_killed_and_limits_refused() {
    let ran = TestTurn::default()
        .unsupervised()
        .call(shell_call("sleep 1000 >/dev/null 2>&1 3>&1 & echo $!", &[]))
        .run();
    let pid = rustix::process::Pid::from_raw(ran.text().parse().unwrap()).unwrap();
    while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(pid) {
        std::thread::yield_now();
    }
    let overdue = shell_call("trap '' TERM; sleep 1000", &[]).timeout(100, 50);
    let ran = TestTurn::default().unsupervised().call(overdue).run();
    assert!(matches!(ran.outcome(), Outcome::TimedOut { .. }));
    let limited = shell_call(":", &[]).command_backing(|backing| backing.limits.files = Some(10));
    let ran = TestTurn::default().unsupervised().call(limited).run();
    assert!(matches!(ran.outcome(), Outcome::NotStarted(_)));
}

/// Returns whether a process is a zombie. It may remain one of the process that adopted it.
fn is_zombie(pid: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}
