//! SIGINT, SIGTERM, SIGHUP and SIGQUIT, at any time and repeatedly.

use std::os::unix::process::CommandExt as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::marked_run::{MarkedRunOutput, MarkedSandbox, response_with_calls, result_ids};
use crate::support::reset_signals;
use crate::support::waiting::wait_until;

/// How long a second signal may take to end all. The grace period, which it cuts short, is three times as long.
const MAX_KILL_TIME: Duration = Duration::from_secs(20);

const SIGNALS_WITH_EXIT_CODES: [(Signal, i32); 4] = [
    (Signal::INT, 130),
    (Signal::TERM, 143),
    (Signal::HUP, 129),
    (Signal::QUIT, 131),
];

/// Returns a turn of eight calls per prefix. The first three calls run, the others wait.
fn hanging_turns(prefixes: &[&str]) -> String {
    let turn = |prefix: &&str| response_with_calls(prefix, &["hang"; 8]);
    let turns: Vec<String> = prefixes.iter().map(turn).collect();
    turns.join("\n")
}

fn assert_all_have_results(output: &MarkedRunOutput, prefixes: &[&str]) {
    let expected = prefixes
        .iter()
        .flat_map(|prefix| (0..8).map(move |at| format!("{prefix}{at}")));
    assert_eq!(result_ids(&output.stdout), expected.collect::<Vec<_>>());
    assert_eq!(
        output.count_status("interrupted"),
        3,
        "{:?}",
        output.statuses()
    );
    assert_eq!(output.count_status("not_executed"), 8 * prefixes.len() - 3);
    output.assert_log_complete();
}

/// In every output form, all results are printed in order, the log is complete, and no process is left.
#[test]
fn every_call_gets_a_result_whenever_a_signal_arrives() {
    let forms: [(&[&str], &[&str]); 4] = [
        (&["a"], &[]),
        (&["a"], &["--to", "block-lines"]),
        (&["a", "b", "c"], &[]),
        (&["a", "b", "c"], &["--to", "block-lines"]),
    ];
    for (signal, code) in SIGNALS_WITH_EXIT_CODES {
        for (prefixes, flags) in forms {
            let run = MarkedSandbox::new()
                .stdin(hanging_turns(prefixes))
                .start(flags);
            run.wait_for_calls(3);
            sleep(Duration::from_millis(fastrand::u64(..100)));
            run.signal(signal);
            let output = run.wait_for_output();
            assert_eq!(output.code, Some(code), "{}", output.stderr);
            assert_all_have_results(&output, prefixes);
            assert!(output.stdout.contains("Output until then:\\nbegun"));
        }
    }
}

/// Signals arrive at random times while many short calls run.
#[test]
fn a_signal_between_start_and_end_loses_nothing() {
    for _ in 0..10 {
        let names = ["echo"; 200];
        let run = MarkedSandbox::new()
            .stdin(response_with_calls("a", &names))
            .start(&[]);
        run.wait_for_log();
        sleep(Duration::from_micros(fastrand::u64(..200_000)));
        run.signal(Signal::TERM);
        let output = run.wait_for_output();
        assert_eq!(result_ids(&output.stdout).len(), names.len());
        output.assert_log_complete();
        let code = output.code.unwrap();
        // A signal that arrives after the last call has finished changes nothing.
        assert!(code == 143 || code == 0 && output.count_status("ok") == names.len());
    }
}

/// After the first signal, programs that ignore SIGTERM have their grace period. The second one kills them.
#[test]
fn a_second_signal_kills() {
    let run = MarkedSandbox::new()
        .stdin(response_with_calls(
            "a",
            &["ignores_term", "hang", "ignores_term", "echo"],
        ))
        .start(&[]);
    run.wait_for_first_lines(3);
    run.signal(Signal::INT);
    sleep(Duration::from_millis(300));
    let signaled_at = Instant::now();
    run.signal(Signal::INT);
    let output = run.wait_for_output();
    assert!(signaled_at.elapsed() < MAX_KILL_TIME);
    assert_eq!(output.code, Some(130));
    assert_eq!(output.stdout.matches("Output until then").count(), 3);
    assert_eq!(result_ids(&output.stdout), ["a0", "a1", "a2", "a3"]);
    // The tool that ignores SIGTERM has no `effect`, so it counts as one that writes.
    assert_eq!(output.count_status("interrupted"), 1);
    assert_eq!(output.count_status("in_doubt"), 2);
    output.assert_log_complete();
}

/// `timeout` sends a signal to its program and immediately afterwards to the process group, so toolq gets it twice.
#[test]
fn two_signals_at_once_are_one() {
    let run = MarkedSandbox::new().stdin(hanging_turns(&["a"])).start(&[]);
    run.wait_for_first_lines(3);
    run.signal(Signal::TERM);
    run.signal(Signal::HUP);
    let output = run.wait_for_output();
    assert!(output.stdout.contains("begun"), "{}", output.stdout);
    assert_all_have_results(&output, &["a"]);
}

/// The result says that the call may have had some of its effects.
#[test]
fn an_interrupted_write_may_have_had_effects() {
    let run = MarkedSandbox::new()
        .stdin(response_with_calls("a", &["ignores_term"]))
        .start(&[]);
    run.wait_for_calls(1);
    run.signal(Signal::TERM);
    sleep(Duration::from_millis(100));
    run.signal(Signal::TERM);
    let output = run.wait_for_output();
    assert!(
        output
            .stdout
            .contains("In doubt: ignores_term may have done its work"),
        "{}",
        output.stdout
    );
}

/// A signal that was ignored when toolq was started, as with `nohup`, stays ignored.
#[test]
fn an_ignored_signal_stays_ignored() {
    let sandbox = MarkedSandbox::new().stdin(response_with_calls("a", &["one_second"]));
    let toolq = sandbox.command(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    command.arg(toolq.get_program()).args(toolq.get_args());
    command.current_dir(toolq.get_current_dir().unwrap());
    command.stdin(std::fs::File::open(sandbox.path_of("input")).unwrap());
    command.stdout(std::process::Stdio::piped());
    reset_signals(&mut command);
    let child = command.spawn().unwrap();
    let run = sandbox.into_run(child);
    run.wait_for_calls(1);
    run.signal(Signal::HUP);
    let output = run.wait_for_output();
    assert_eq!((output.code, output.count_status("ok")), (Some(0), 1));
}

/// A parent may pass on blocked signals. toolq reacts to them all the same.
#[test]
fn a_signal_that_the_parent_blocks_ends_the_run() {
    let sandbox = MarkedSandbox::new().stdin(response_with_calls("a", &["hang"]));
    let mut command = sandbox.command(&[]);
    let block_all = || {
        // SAFETY: the set is initialized before it is used, and both functions are async-signal-safe.
        unsafe {
            let mut all = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: the function only makes calls that are async-signal-safe.
    unsafe { command.pre_exec(block_all) };
    let child = command.spawn().unwrap();
    let run = sandbox.into_run(child);
    run.wait_for_calls(1);
    run.signal(Signal::TERM);
    let output = run.wait_for_output();
    assert_eq!(
        (output.code, output.statuses()),
        (Some(143), vec!["interrupted"])
    );
    output.assert_log_complete();
}

/// A `describe` command is ended like a call. The calls that wait for it get a result.
#[test]
fn a_signal_ends_tools_that_describe_themselves() {
    for (signal, code) in SIGNALS_WITH_EXIT_CODES {
        let input = response_with_calls("a", &["describe_hangs", "echo", "describe_hangs"])
            + "\n"
            + &response_with_calls("b", &["describe_hangs"]);
        let run = MarkedSandbox::new().stdin(input).start(&[]);
        run.wait_for_record("describe_start");
        // The shell and its child.
        wait_until("it is running", || {
            run.sandbox().marked_processes().len() >= 2
        });
        run.signal(signal);
        let output = run.wait_for_output();
        assert_eq!(output.code, Some(code), "{}", output.stderr);
        assert_eq!(result_ids(&output.stdout), ["a0", "a1", "a2", "b0"]);
        assert_eq!(output.statuses(), ["not_executed"; 4]);
        assert_describes_interrupted(&output, 1);
        assert!(!output.stderr.contains("could not describe itself"));
        output.assert_log_complete();
    }
}

/// The second signal doesn't wait for the grace period of a `describe` command that ignores SIGTERM.
#[test]
fn a_second_signal_kills_describe_commands() {
    let names = ["describe_ignores_term", "describe_hangs"];
    let run = MarkedSandbox::new()
        .stdin(response_with_calls("a", &names))
        .start(&[]);
    wait_until("both are running", || {
        run.sandbox().marked_processes().len() >= 3
    });
    run.signal(Signal::INT);
    sleep(Duration::from_millis(300));
    let signaled_at = Instant::now();
    run.signal(Signal::INT);
    let output = run.wait_for_output();
    assert!(signaled_at.elapsed() < MAX_KILL_TIME);
    assert_eq!(output.code, Some(130));
    assert_eq!(result_ids(&output.stdout), ["a0", "a1"]);
    assert_describes_interrupted(&output, 2);
    output.assert_log_complete();
}

/// Asserts that this many `describe` commands ran, and that all were interrupted.
fn assert_describes_interrupted(output: &MarkedRunOutput, tools: usize) {
    let ends = output
        .log
        .iter()
        .filter(|record| record["type"] == "describe_end");
    let statuses: Vec<&str> = ends
        .map(|end| end["metadata"]["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, vec!["interrupted"; tools]);
}
