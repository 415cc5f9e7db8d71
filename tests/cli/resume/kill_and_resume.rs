//! Kills toolq at every step and at random times, and runs the same input again, in another form. The effects of the tools show
//! that no write ran twice, no call was lost, and every write that may have run without a result is in doubt.

#![expect(clippy::print_stdout, reason = "prints counts, shown with --nocapture")]

use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use tempfile::TempDir;

use crate::support::full_or_short;
use crate::support::resume_sandbox::{
    ResumeRunOutput, ResumeSandbox, calls_message, effect_recording_tools, message_stream,
};

/// The minimum number of kills, each followed by another run.
const MIN_KILL_RESUME_PAIRS: usize = full_or_short(1_000, 10);
/// The minimum number of kills at random times.
const MIN_RANDOM_KILLS: usize = full_or_short(40, 2);
/// From one step at which toolq is killed to the next.
const STRIDE: u32 = full_or_short(1, 24);
/// The number of threads. They mostly wait: for the disk, or for a process to exit.
const WORKERS: usize = 4;

/// Ten calls of tools with every kind of effect.
const TEN_CALLS: [(&str, u32); 10] = [
    ("look", 0),
    ("look", 1),
    ("keep", 2),
    ("pay", 3),
    ("look", 4),
    ("pay", 5),
    ("keep", 6),
    ("pay", 7),
    ("pay", 8),
    ("look", 9),
];

/// Stands for a run without `--log`.
const SHARED_MEMORY: &str = "";

/// How the ten calls are distributed over turns, and the flags of the run.
const RUN_VARIANTS: [(&[usize], &[&str]); 6] = [
    (&[10], &[]),
    (&[3, 4, 3], &[]),
    (&[10], &["--to", "block-lines", "-j", "1"]),
    (&[1, 9], &[SHARED_MEMORY]),
    (&[2, 5, 3], &["--follow"]),
    (&[6, 4], &["--from", "anthropic-sse"]),
];

fn sandbox_for_variant(variant: usize) -> ResumeSandbox {
    let mut rest = &TEN_CALLS[..];
    let turns = RUN_VARIANTS[variant].0.iter().map(|calls| {
        let (turn, others) = rest.split_at(*calls);
        rest = others;
        calls_message(turn)
    });
    let turns: Vec<String> = turns.collect();
    let input = if RUN_VARIANTS[variant].1.contains(&"anthropic-sse") {
        message_stream(&turns)
    } else {
        turns.join("\n")
    };
    ResumeSandbox::new(&effect_recording_tools(), &input)
}

fn run_arguments(variant: usize) -> Vec<&'static str> {
    let variant_flags = RUN_VARIANTS[variant].1;
    let mut arguments = vec!["run", "input.json"];
    if !variant_flags.contains(&SHARED_MEMORY) {
        arguments.extend(["--log", "log.jsonl"]);
    }
    arguments.extend(variant_flags.iter().filter(|flag| **flag != SHARED_MEMORY));
    arguments
}

/// Runs toolq and kills it at its `step`-th failpoint. Returns whether it got there.
fn run_until_killed_at(sandbox: &ResumeSandbox, step: u32, arguments: &[&str]) -> bool {
    let failpoint = format!("any:{step}:kill");
    let done = sandbox.run_with_env(&[("TOOLQ_FAILPOINT", &failpoint)], arguments);
    done.code.is_none()
}

/// Writes the input in another form that means the same.
fn reformat_input(sandbox: &ResumeSandbox) {
    let input = sandbox.read_file("input.json");
    if !input.starts_with("event:") && fastrand::bool() {
        let spaced = input.replace("\"input\":{", "\"input\": { ");
        sandbox.write_file("input.json", &format!("{spaced}\n"));
    }
}

/// Returns the texts of the results on stdout, in any output form.
fn result_texts(stdout: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for value in crate::support::parse_json_lines(stdout) {
        let single = [value.clone()];
        let blocks = value["content"]
            .as_array()
            .filter(|_| value["role"] == "user");
        for block in blocks.map_or(&single[..], Vec::as_slice) {
            texts.push(block["content"].as_str().unwrap().to_owned());
        }
    }
    texts
}

/// The source of a library for `LD_PRELOAD` that sets the clock of the system back by an hour.
const EARLIER_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, now);
    if (!failed && id == CLOCK_REALTIME) now->tv_sec -= 3600;
    return failed;
}
"#;

/// Returns the path of that library.
fn earlier_clock() -> &'static str {
    static LIBRARY: LazyLock<(TempDir, String)> = LazyLock::new(|| {
        let dir = TempDir::new().unwrap();
        let (source, library) = (dir.path().join("clock.c"), dir.path().join("clock.so"));
        fs::write(&source, EARLIER_CLOCK).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]);
        let built = compiler.args([&library, &source]).arg("-ldl").status();
        assert!(built.unwrap().success());
        let library = library.to_str().unwrap().to_owned();
        (dir, library)
    });
    &LIBRARY.1
}

/// Runs the input again, in some runs with an earlier clock.
fn run_again(sandbox: &ResumeSandbox, variant: usize) -> ResumeRunOutput {
    let arguments = run_arguments(variant);
    if cfg!(target_os = "linux") && fastrand::u8(..4) == 0 {
        return sandbox.run_with_env(&[("LD_PRELOAD", earlier_clock())], &arguments);
    }
    sandbox.run_toolq(&arguments)
}

/// Runs the input again and asserts that the results match the effects of the tools.
fn assert_resumes(sandbox: &ResumeSandbox, variant: usize, history: &str) {
    reformat_input(sandbox);
    let before = sandbox.effects();
    let resumed = run_again(sandbox, variant);
    let context = format!("{history}\n{}\n{}", resumed.stdout, resumed.stderr);
    let texts = result_texts(&resumed.stdout);
    assert_eq!(texts.len(), TEN_CALLS.len(), "{context}");
    let effects = sandbox.effects();
    for ((name, n), text) in TEN_CALLS.iter().zip(&texts) {
        let count = |effects: &[String]| {
            let line = format!("{name} {n}");
            effects.iter().filter(|effect| **effect == line).count()
        };
        let (done, writes) = (count(&effects), *name == "pay");
        let expected = match *name {
            "keep" => format!("kept {n}"),
            "pay" => format!("paid {n}"),
            _ => format!("{name}ed {n}"),
        };
        if text.starts_with("In doubt") {
            // It didn't run now, and may have run before.
            let is_unchanged = count(&before) == done;
            assert!(
                writes && done <= 1 && is_unchanged,
                "{name} {n} {done}: {context}"
            );
        } else {
            assert_eq!(*text, expected, "{context}");
            assert!(
                done == 1 || !writes && done > 1,
                "{name} {n} {done}: {context}"
            );
        }
    }
    let is_in_doubt = texts.iter().any(|text| text.starts_with("In doubt"));
    assert_eq!(
        resumed.code,
        Some(if is_in_doubt { 3 } else { 0 }),
        "{context}"
    );
    if sandbox.log_path().exists() {
        sandbox.assert_log_sequence();
    }
    if fastrand::u8(..4) == 0 {
        let again = sandbox.run_toolq(&run_arguments(variant));
        let writes = |effects: &[String]| {
            let writes = effects.iter().filter(|effect| effect.starts_with("pay"));
            writes.count()
        };
        assert_eq!(
            (again.stdout, again.code),
            (resumed.stdout, resumed.code),
            "{history}"
        );
        assert_eq!(writes(&sandbox.effects()), writes(&effects), "{history}");
    }
}

/// Calls `work` with each step, or each that is `stride` after the one before, on several threads until it returns false.
fn run_steps_in_parallel(stride: u32, work: impl Fn(u32) -> bool + Sync) {
    let (next, done) = (AtomicU32::new(1 + stride / 2), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    if !work(next.fetch_add(stride, Ordering::SeqCst)) {
                        done.store(true, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}

/// What ran stays known when the clock is set back, and the log of that run begins before the one it follows.
#[cfg(target_os = "linux")]
#[test]
fn an_earlier_clock_changes_nothing() {
    let sandbox = sandbox_for_variant(0);
    let arguments = run_arguments(0);
    let first = sandbox.run_toolq(&arguments);
    let again = sandbox.run_with_env(&[("LD_PRELOAD", earlier_clock())], &arguments);
    assert_eq!((again.stdout, again.code), (first.stdout, first.code));
    let writes = sandbox.effects();
    let writes = writes.iter().filter(|effect| effect.starts_with("pay"));
    assert_eq!(writes.count(), 4);
    let log = fs::read_to_string(sandbox.log_path()).unwrap();
    let times: Vec<u64> = crate::support::parse_json_lines(&log)
        .iter()
        .map(|record| record["timestamp"].as_u64().unwrap())
        .collect();
    assert!(!times.is_sorted(), "the clock was set back");
}

#[test]
fn a_run_killed_at_any_step_resumes() {
    let (started_at, pairs) = (Instant::now(), AtomicUsize::new(0));
    let report = |phase: &str| {
        let pairs = pairs.load(Ordering::SeqCst);
        println!(
            "{pairs} kills so far, each followed by another run: {phase}, {:?}",
            started_at.elapsed()
        );
    };
    for variant in 0..RUN_VARIANTS.len() {
        run_steps_in_parallel(STRIDE, |step| {
            let sandbox = sandbox_for_variant(variant);
            if !run_until_killed_at(&sandbox, step, &run_arguments(variant)) {
                return false;
            }
            let history = format!("variant {variant}, killed at step {step}");
            assert_resumes(&sandbox, variant, &history);
            pairs.fetch_add(1, Ordering::SeqCst);
            true
        });
        report("killed a run at every step");
    }
    // The first kill leaves a torn record, a start, or a result. The second is at every step of the second run.
    for first in full_or_short(&[3, 9, 22][..], &[9]) {
        run_steps_in_parallel(STRIDE, |step| {
            let sandbox = sandbox_for_variant(0);
            run_until_killed_at(&sandbox, *first, &run_arguments(0));
            if !run_until_killed_at(&sandbox, step, &run_arguments(0)) {
                return false;
            }
            let history = format!("killed at step {first}, then at step {step}");
            assert_resumes(&sandbox, 0, &history);
            pairs.fetch_add(1, Ordering::SeqCst);
            true
        });
        report("killed the second run, too");
    }
    let rest = MIN_KILL_RESUME_PAIRS.saturating_sub(pairs.load(Ordering::SeqCst));
    let rest = rest.max(MIN_RANDOM_KILLS);
    run_steps_in_parallel(1, |number| {
        if number as usize > rest {
            return false;
        }
        kill_at_a_random_time();
        pairs.fetch_add(1, Ordering::SeqCst);
        true
    });
    report("killed runs at random times");
    assert!(pairs.load(Ordering::SeqCst) >= MIN_KILL_RESUME_PAIRS);
}

/// Kills a run at a random time and runs it again.
fn kill_at_a_random_time() {
    let variant = fastrand::usize(..RUN_VARIANTS.len());
    let sandbox = sandbox_for_variant(variant);
    let mut child = sandbox.spawn(&run_arguments(variant));
    let after = Duration::from_micros(fastrand::u64(..60_000));
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let history = format!("variant {variant}, killed after {after:?}");
    assert_resumes(&sandbox, variant, &history);
}
