//! INT, TERM, HUP and QUIT, at any moment and twice.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::started::{Ended, Marked, answer, ids, until};

const SIGNALS: [(Signal, i32); 4] = [
    (Signal::INT, 130),
    (Signal::TERM, 143),
    (Signal::HUP, 129),
    (Signal::QUIT, 131),
];

/// Three that run and five that wait, over as many turns as there are prefixes.
fn turns(prefixes: &[&str]) -> String {
    let turn = |prefix: &&str| answer(prefix, &["hang"; 8]);
    let turns: Vec<String> = prefixes.iter().map(turn).collect();
    turns.join("\n")
}

fn assert_answered(ended: &Ended, prefixes: &[&str]) {
    let expected = prefixes
        .iter()
        .flat_map(|prefix| (0..8).map(move |at| format!("{prefix}{at}")));
    assert_eq!(ids(&ended.stdout), expected.collect::<Vec<_>>());
    assert_eq!(ended.count("interrupted"), 3, "{:?}", ended.statuses());
    assert_eq!(ended.count("not_executed"), 8 * prefixes.len() - 3);
    ended.assert_log_is_whole();
}

/// FAULTS 60, 61: n answers in order, the right exit code, a closed log, nobody left; in every form.
#[test]
fn every_call_is_answered_at_any_moment() {
    let forms: [(&[&str], &[&str]); 4] = [
        (&["a"], &[]),
        (&["a"], &["--to", "block-lines"]),
        (&["a", "b", "c"], &[]),
        (&["a", "b", "c"], &["--to", "block-lines"]),
    ];
    for (signal, code) in SIGNALS {
        for (prefixes, flags) in forms {
            let started = Marked::new().stdin(turns(prefixes)).start(flags);
            started.wait_for_calls(3);
            sleep(Duration::from_millis(fastrand::u64(..100)));
            started.signal(signal);
            let ended = started.end();
            assert_eq!(ended.code, Some(code), "{}", ended.stderr);
            assert_answered(&ended, prefixes);
            assert!(ended.stdout.contains("Until then it wrote:\\nbegun"));
        }
    }
}

/// FAULTS 60: between the start of a call and the end of the last one there is no moment at which a signal breaks the
/// answer or the log.
#[test]
fn calls_that_end_all_the_time() {
    for _ in 0..10 {
        let names = ["echo"; 200];
        let started = Marked::new().stdin(answer("a", &names)).start(&[]);
        started.wait_for_log();
        sleep(Duration::from_micros(fastrand::u64(..200_000)));
        started.signal(Signal::TERM);
        let ended = started.end();
        assert_eq!(ids(&ended.stdout).len(), names.len());
        ended.assert_log_is_whole();
        let code = ended.code.unwrap();
        // A signal that comes when all is answered changes nothing.
        assert!(code == 143 || code == 0 && ended.count("ok") == names.len());
    }
}

/// FAULTS 60: what doesn't listen has its grace; the second signal doesn't wait for that.
#[test]
fn a_second_signal_kills() {
    let started = Marked::new()
        .stdin(answer("a", &["deaf", "hang", "deaf", "echo"]))
        .start(&[]);
    started.wait_for_calls(3);
    started.signal(Signal::INT);
    sleep(Duration::from_millis(300));
    let asked = Instant::now();
    started.signal(Signal::INT);
    let ended = started.end();
    assert!(asked.elapsed() < Duration::from_secs(2));
    assert_eq!(ended.code, Some(130));
    assert_eq!(ended.stdout.matches("Until then it wrote").count(), 3);
    assert_eq!(ids(&ended.stdout), ["a0", "a1", "a2", "a3"]);
    assert_eq!(ended.count("interrupted"), 3);
    ended.assert_log_is_whole();
}

/// `timeout` signals its program, and at once its group, which is the same program.
#[test]
fn two_signals_at_once_are_one() {
    let started = Marked::new().stdin(turns(&["a"])).start(&[]);
    started.wait_for_calls(3);
    started.signal(Signal::TERM);
    started.signal(Signal::HUP);
    let ended = started.end();
    assert!(ended.stdout.contains("begun"), "{}", ended.stdout);
    assert_answered(&ended, &["a"]);
}

/// A call that changes something may have done a part, and the model is told so.
#[test]
fn an_interrupted_write_says_so() {
    let started = Marked::new().stdin(answer("a", &["deaf"])).start(&[]);
    started.wait_for_calls(1);
    started.signal(Signal::TERM);
    sleep(Duration::from_millis(100));
    started.signal(Signal::TERM);
    let ended = started.end();
    assert!(
        ended.stdout.contains("may have done a part of its work"),
        "{}",
        ended.stdout
    );
}

/// What `nohup` says holds.
#[test]
fn an_ignored_signal_stays_ignored() {
    let marked = Marked::new().stdin(answer("a", &["doze"]));
    let toolq = marked.command(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    command.arg(toolq.get_program()).args(toolq.get_args());
    command.current_dir(toolq.get_current_dir().unwrap());
    command.stdin(std::fs::File::open(marked.file("input")).unwrap());
    command.stdout(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let started = marked.started(child);
    started.wait_for_calls(1);
    started.signal(Signal::HUP);
    let ended = started.end();
    assert_eq!((ended.code, ended.count("ok")), (Some(0), 1));
}

/// FAULTS 60: tools that are asked what they take are ended like calls, and theirs are answered.
#[test]
fn a_run_is_ended_while_tools_describe_themselves() {
    for (signal, code) in SIGNALS {
        let input = answer("a", &["shy", "echo", "shy"]) + "\n" + &answer("b", &["shy"]);
        let started = Marked::new().stdin(input).start(&[]);
        started.wait_for_record("describe_start");
        // The shell and its child.
        until("it runs", || started.marked().alive().len() >= 2);
        started.signal(signal);
        let ended = started.end();
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert_eq!(ids(&ended.stdout), ["a0", "a1", "a2", "b0"]);
        assert_eq!(ended.statuses(), ["not_executed"; 4]);
        assert_asked(&ended, 1);
        assert!(!ended.stderr.contains("could not describe itself"));
        ended.assert_log_is_whole();
    }
}

/// The second signal doesn't wait for the grace of what doesn't listen.
#[test]
fn a_second_signal_kills_what_describes_itself() {
    let names = ["stubborn", "shy"];
    let started = Marked::new().stdin(answer("a", &names)).start(&[]);
    until("both run", || started.marked().alive().len() >= 3);
    started.signal(Signal::INT);
    sleep(Duration::from_millis(300));
    let asked = Instant::now();
    started.signal(Signal::INT);
    let ended = started.end();
    assert!(asked.elapsed() < Duration::from_secs(2));
    assert_eq!(ended.code, Some(130));
    assert_eq!(ids(&ended.stdout), ["a0", "a1"]);
    assert_asked(&ended, 2);
    ended.assert_log_is_whole();
}

/// So many tools were asked, and ended with the run.
fn assert_asked(ended: &Ended, tools: usize) {
    let ends = ended
        .log
        .iter()
        .filter(|record| record["type"] == "describe_end");
    let statuses: Vec<&str> = ends
        .map(|end| end["metadata"]["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, vec!["interrupted"; tools]);
}
