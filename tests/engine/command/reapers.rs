//! Reapers that are killed.

use toolq_core::types::{DoubtCause, Effect, Outcome};

use crate::support::engine_turn::{TestTurn, shell_call, success_text};

/// If an idle reaper is killed, no call is lost: the next call gets a new reaper.
#[cfg(target_os = "linux")]
#[test]
fn an_idle_reaper_that_is_killed_is_replaced() {
    let temp_dir = tempfile::tempdir().unwrap();
    let temp_dir = temp_dir.path().to_str().unwrap();
    // Each waits for the other, so that there are two reapers.
    let meet = r#"touch "$1/$2"; while [ ! -e "$1/$3" ]; do sleep 0.01; done; echo met"#;
    let kill = r"supervisor=$(sed -n 's/^PPid:\s*//p' /proc/$PPID/status)
        for reaper in $(cat /proc/$supervisor/task/$supervisor/children); do
            [ $reaper = $PPID ] && continue
            kill -9 $reaper && echo killed
            while [ -e /proc/$reaper ]; do sleep 0.01; done
        done";
    let ran = TestTurn::default()
        .call(shell_call(meet, &[temp_dir, "a", "b"]))
        .call(shell_call(meet, &[temp_dir, "b", "a"]))
        .call(shell_call(kill, &[]).not_concurrency_safe())
        .call(shell_call(meet, &[temp_dir, "c", "d"]))
        .call(shell_call(meet, &[temp_dir, "d", "c"]))
        .run();
    let texts: Vec<&str> = ran.outcomes.values().map(success_text).collect();
    assert_eq!(texts, ["met", "met", "killed", "met", "met"]);
}

/// It may have had its effect before the reaper was killed.
#[cfg(target_os = "linux")]
#[test]
fn a_write_whose_reaper_is_killed_is_in_doubt() {
    let kill = "echo paid; kill -9 $PPID; sleep 60";
    let run = |effect| {
        shell_call(kill, &[])
            .tool(|tool| tool.effect = effect)
            .run()
    };
    let written = run(Effect::Write);
    assert!(
        matches!(
            written.outcome(),
            Outcome::InDoubt {
                cause: DoubtCause::ReaperKilled,
                ..
            }
        ),
        "{:?}",
        written.outcome()
    );
    let read = run(Effect::Read);
    assert!(
        matches!(read.outcome(), Outcome::InternalError(_)),
        "{:?}",
        read.outcome()
    );
}
