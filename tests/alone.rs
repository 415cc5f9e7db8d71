//! Commands without a supervisor, as on systems that can't have one. By itself: who is supervised takes in orphans, also
//! those of this.

mod scene;

use scene::{Scene, sh};
use toolq_core::types::Outcome;

/// Without a supervisor a group is ended, and limits are refused rather than forgotten.
#[test]
fn a_group_is_ended_and_limits_are_refused() {
    let ran = Scene::default()
        .alone()
        .call(sh("sleep 1000 >/dev/null 2>&1 3>&1 & echo $!", &[]))
        .run();
    let pid = rustix::process::Pid::from_raw(ran.text().parse().unwrap()).unwrap();
    while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(pid) {
        std::thread::yield_now();
    }
    let late = sh("trap '' TERM; sleep 1000", &[]).timeout(100, 50);
    let ran = Scene::default().alone().call(late).run();
    assert!(matches!(ran.outcome(), Outcome::TimedOut { .. }));
    let limited = sh(":", &[]).backing(|backing| backing.limits.files = Some(10));
    let ran = Scene::default().alone().call(limited).run();
    assert!(matches!(ran.outcome(), Outcome::NotStarted(_)));
}

/// It may stay one of whoever adopted it.
fn is_zombie(pid: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}
