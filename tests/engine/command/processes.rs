//! How a program ends, and what happens to the processes that it leaves.

use std::fs;
use std::time::{Duration, Instant};

use toolq_core::types::{CallEnding, Leftovers, Outcome};

use crate::command::wait_until_exited;
use crate::support::engine_turn::{TestTurn, shell_call, success_text};

/// Exit codes and signals are reported as distinct endings.
#[test]
fn exit_codes_and_signals() {
    let mut turn = TestTurn::default();
    for code in [0, 1, 2, 75, 126, 255] {
        turn = turn.call(shell_call(
            "echo out; echo err >&2; exit $1",
            &[&code.to_string()],
        ));
    }
    for signal in ["TERM", "KILL", "SEGV"] {
        turn = turn.call(shell_call("kill -$1 $$", &[signal]));
    }
    let ran = turn
        .call(
            shell_call("exit 1", &[]).command_backing(|backing| backing.success_exit = vec![0, 1]),
        )
        .run();
    let endings: Vec<Option<CallEnding>> = ran.outcomes.values().map(Outcome::ending).collect();
    let exits = [0, 1, 2, 75, 126, 255].map(|code| Some(CallEnding::ExitCode(code)));
    assert_eq!(endings[..6], exits);
    assert_eq!(
        endings[6..9],
        [15, 9, 11].map(|signal| Some(CallEnding::Signal(signal)))
    );
    assert_eq!(success_text(&ran.outcomes[&9]), "");
    match &ran.outcomes[&1] {
        Outcome::Failed { output, .. } => {
            assert_eq!((&*output.text, &*output.stderr), ("out", "err"));
        }
        other => panic!("{other:?}"),
    }
}

/// The programs get a SIGTERM, so the call ends long before its grace period does. A stopped program is terminated too.
#[test]
fn a_timeout_terminates_the_process_group() {
    for script in ["echo begun; sleep 1000 & wait", "echo begun; kill -STOP $$"] {
        let ran = shell_call(script, &[]).timeout(150, 20_000).run();
        match ran.outcome() {
            Outcome::TimedOut { output, limit, .. } => {
                assert_eq!(
                    (&*output.text, *limit),
                    ("begun", Duration::from_millis(150))
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(ran.elapsed < Duration::from_secs(10), "{:?}", ran.elapsed);
    }
}

/// The last lines of stderr often explain why a call timed out.
#[test]
fn a_timeout_keeps_stderr() {
    let ran = shell_call("echo begun; echo waiting for the lock >&2; sleep 1000", &[])
        .timeout(150, 50)
        .run();
    assert!(
        matches!(ran.outcome(), Outcome::TimedOut { output, .. } if output.text == "begun" && output.stderr == "waiting for the lock"),
        "{:?}",
        ran.outcome()
    );
}

/// After its grace period.
#[test]
fn a_program_that_ignores_term_is_killed() {
    let ran = shell_call(
        "trap '' TERM; echo begun; while :; do sleep 1000; done",
        &[],
    )
    .timeout(150, 50)
    .run();
    assert!(matches!(ran.outcome(), Outcome::TimedOut { output, .. } if output.text == "begun"));
    assert!(ran.elapsed < Duration::from_secs(10), "{:?}", ran.elapsed);
}

/// A grandchild that keeps the pipes open doesn't block the call, and output written before the exit is kept.
#[cfg(target_os = "linux")] // It needs the program `setsid`.
#[test]
fn a_pipe_held_by_a_grandchild_does_not_block_the_call() {
    for script in ["sleep 1000 & echo done", "setsid sleep 10 & echo done"] {
        let ran = shell_call(script, &[]).run();
        assert_eq!(ran.text(), "done");
        assert!(ran.elapsed < Duration::from_secs(8), "{:?}", ran.elapsed);
    }
}

/// Processes that are left in the process group are killed before the call ends.
#[test]
fn the_rest_of_the_process_group_is_killed() {
    let ran = shell_call("sleep 1000 >/dev/null 2>&1 3>&1 & echo $!", &[]).run();
    wait_until_exited(ran.text());
}

/// A user of the library may drop an answer that is in progress.
#[test]
fn dropping_a_turn_kills_its_programs() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("pid");
    let call = shell_call(
        "sleep 1000 & echo $! >$1.new; mv $1.new $1; wait",
        &[file.to_str().unwrap()],
    );
    TestTurn::default().call(call).drop_when_exists(&file);
    wait_until_exited(fs::read_to_string(file).unwrap().trim());
}

/// Neither toolq's nor those of programs.
#[test]
fn no_zombies_are_left() {
    let calls = (0..50).map(|_| shell_call(":", &[]));
    calls.fold(TestTurn::default(), TestTurn::call).run();
    // Concurrent tests have short-lived zombies of their own, so wait until each of those seen now is gone.
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut seen = zombie_children();
    while !seen.is_empty() {
        assert!(Instant::now() < deadline, "{seen:?}");
        let now = zombie_children();
        seen.retain(|pid| now.contains(pid));
    }
}

/// Returns the process IDs of our own children that have exited but haven't been reaped.
fn zombie_children() -> Vec<String> {
    let ours = format!(") Z {} ", std::process::id());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter(|process| {
        let stat = fs::read_to_string(process.path().join("stat"));
        stat.is_ok_and(|stat| stat.contains(&ours))
    });
    pids.map(|process| process.file_name().to_string_lossy().into_owned())
        .collect()
}

/// What a program leaves behind may be a filter of its own output, which is read to its end.
#[cfg(target_os = "linux")]
#[test]
fn output_behind_the_end_of_a_program_is_read_until_it_ends_or_is_cut_off() {
    let slowly = "(for i in 1 2 3 4 5 6 7 8; do sleep 0.1; echo $i; done) & echo begun";
    let ran = shell_call(slowly, &[]).run();
    assert_eq!(ran.text(), "begun\n1\n2\n3\n4\n5\n6\n7\n8");
    let endlessly = "(while :; do echo more; sleep 0.01; done) & echo begun";
    for (script, cut_off) in [
        (endlessly, true),
        ("sleep 1000 & echo begun", false),
        (
            "(while :; do echo more >&2; sleep 0.01; done) & echo begun",
            false,
        ),
    ] {
        let ran = shell_call(script, &[]).timeout(60_000, 500).run();
        let captured = ran.outcome().captured().unwrap();
        assert_eq!(
            (captured.was_printing, captured.killed_leftovers > 0),
            (cut_off, true),
            "{script}"
        );
        assert!(ran.text().contains("begun"), "{script}");
    }
}

/// Not even the end of toolq's process ends what `leftovers: allow` leaves behind, which goes on printing.
#[cfg(target_os = "linux")]
#[test]
fn allowed_leftovers_can_print_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let script = "cd $1; (until [ -e go ]; do sleep 0.01; done; yes | head -c 300000; yes | head -c 300000 >&2; touch printed) & echo begun";
    let place = dir.path().to_str().unwrap();
    let ran = shell_call(script, &[place])
        .command_backing(|backing| backing.leftovers = Leftovers::Allow)
        .run();
    assert_eq!(ran.text(), "begun");
    fs::write(file("go"), "").unwrap();
    while !file("printed").exists() {
        std::thread::yield_now();
    }
}

/// Processes left running after the program exits are killed and counted, or released with `leftovers: allow`.
#[cfg(target_os = "linux")]
#[test]
fn leftovers_are_killed_and_counted_or_allowed() {
    let script = "for i in 1 2; do setsid sleep 1000 >/dev/null 2>&1 3>&1 & echo $!; done";
    let ran = shell_call(script, &[]).run();
    assert_eq!(ran.outcome().captured().unwrap().killed_leftovers, 2);
    ran.text().lines().for_each(wait_until_exited);
    let ran = shell_call("sleep 0.01 & wait", &[]).run();
    assert_eq!(ran.outcome().captured().unwrap().killed_leftovers, 0);
    let call =
        shell_call(script, &[]).command_backing(|backing| backing.leftovers = Leftovers::Allow);
    let ran = call.run();
    assert_eq!(ran.outcome().captured().unwrap().killed_leftovers, 0);
    for pid in ran.text().lines() {
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}
