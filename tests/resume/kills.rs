//! FAULTS 108, 110, 124: toolq is killed wherever it can be, and resumed. Counted is what the callees did: nothing twice, nothing
//! lost, and in doubt is exactly what had started and has no result.

#![expect(clippy::print_stdout, reason = "counts for who asks for them")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::stage::{Stage, callees, message, stream};

/// Pairs of a kill and a resume, at least.
const PAIRS: usize = 1_000;
/// Those at random times.
const RANDOM: usize = 40;
/// Kills at one time. Most of each is waiting: for a disk, for a process to end.
const WORKERS: usize = 4;

/// Ten calls of all effects.
const CALLS: [(&str, u32); 10] = [
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

/// How the ten calls are asked for, and the flags of the run.
const WAYS: [(&[usize], &[&str]); 6] = [
    (&[10], &[]),
    (&[3, 4, 3], &[]),
    (&[10], &["--to", "block-lines", "-j", "1"]),
    (&[1, 9], &["--sync", "all"]),
    (&[2, 5, 3], &["--follow"]),
    (&[6, 4], &["--from", "anthropic-sse"]),
];

fn stage(way: usize) -> Stage {
    let mut rest = &CALLS[..];
    let turns = WAYS[way].0.iter().map(|calls| {
        let (turn, others) = rest.split_at(*calls);
        rest = others;
        message(turn)
    });
    let turns: Vec<String> = turns.collect();
    let input = if WAYS[way].1.contains(&"anthropic-sse") {
        stream(&turns)
    } else {
        turns.join("\n")
    };
    Stage::new(&callees(), &input)
}

fn arguments<'a>(way: usize, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "--log", "log.jsonl", "input.json"];
    arguments.extend(WAYS[way].1);
    arguments.extend(more);
    arguments
}

/// Runs toolq until it passes its `at`-th failpoint. Whether it was killed there.
fn killed_at(stage: &Stage, at: u32, arguments: &[&str]) -> bool {
    let failpoint = format!("any:{at}:kill");
    let done = stage.with(&[("TOOLQ_FAILPOINT", &failpoint)], arguments);
    done.code.is_none()
}

/// The calls that write, by what they say, that have a start and no result.
fn open(stage: &Stage) -> BTreeSet<u64> {
    let log = stage.log();
    let numbers: Vec<(&Value, &Value)> = log
        .iter()
        .filter(|record| record["type"] == "tool_call")
        .map(|record| (&record["id"], &record["content"]["input"]["n"]))
        .collect();
    let number = |record: &Value| {
        let call = numbers.iter().find(|(id, _)| **id == record["parentId"]);
        call.unwrap().1.as_u64().unwrap()
    };
    let mut open = BTreeSet::new();
    for record in &log {
        match record["type"].as_str().unwrap() {
            "tool_start" if record["metadata"]["effect"] == "write" => {
                open.insert(number(record));
            }
            "tool_result" => {
                open.remove(&number(record));
            }
            _ => {}
        }
    }
    open
}

/// The results on stdout, in whatever form.
fn results(stdout: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for value in crate::support::json_lines(stdout) {
        let alone = [value.clone()];
        let blocks = value["content"]
            .as_array()
            .filter(|_| value["role"] == "user");
        for block in blocks.map_or(&alone[..], Vec::as_slice) {
            texts.push(block["content"].as_str().unwrap().to_owned());
        }
    }
    texts
}

/// Resumes, and holds what the callees did against what the model is told.
fn check(stage: &Stage, way: usize, what: &str) {
    let open = open(stage);
    let resumed = stage.toolq(&arguments(way, &["--resume"]));
    let said = format!("{what}\n{}\n{}", resumed.stdout, resumed.stderr);
    assert_eq!(
        resumed.code,
        Some(if open.is_empty() { 0 } else { 3 }),
        "{said}"
    );
    let texts = results(&resumed.stdout);
    assert_eq!(texts.len(), CALLS.len(), "{said}");
    let effects = stage.effects();
    for ((name, n), text) in CALLS.iter().zip(&texts) {
        let done = effects
            .iter()
            .filter(|line| **line == format!("{name} {n}"));
        let (done, writes) = (done.count(), *name == "pay");
        let expected = format!("{}ed {n}", if *name == "keep" { "kept" } else { name })
            .replace("kepted", "kept")
            .replace("payed", "paid");
        if open.contains(&u64::from(*n)) {
            assert!(
                text.starts_with("In doubt") && done <= 1,
                "{name} {n} {done}: {said}"
            );
        } else {
            assert_eq!(*text, expected, "{said}");
            assert!(
                done == 1 || !writes && done > 1,
                "{name} {n} {done}: {said}"
            );
        }
    }
    stage.log_is_in_order();
    if fastrand::u8(..4) == 0 {
        let again = stage.toolq(&arguments(way, &["--resume"]));
        assert_eq!(
            (again.stdout, again.code),
            (resumed.stdout, resumed.code),
            "{what}"
        );
        assert_eq!(stage.effects(), effects, "{what}");
    }
}

/// Does `work` for 1, 2, 3 … on several threads until it has no more.
fn each(work: impl Fn(u32) -> bool + Sync) {
    let (next, over) = (AtomicU32::new(1), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    if !work(next.fetch_add(1, Ordering::SeqCst)) {
                        over.store(true, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}

#[test]
fn killed_anywhere_and_resumed() {
    let (begun, pairs) = (Instant::now(), AtomicUsize::new(0));
    let count = |what: &str| {
        let pairs = pairs.load(Ordering::SeqCst);
        println!(
            "{pairs} pairs of kill and resume so far: {what}, {:?}",
            begun.elapsed()
        );
    };
    for way in 0..WAYS.len() {
        each(|at| {
            let stage = stage(way);
            if !killed_at(&stage, at, &arguments(way, &[])) {
                return false;
            }
            check(&stage, way, &format!("way {way}, killed at {at}"));
            pairs.fetch_add(1, Ordering::SeqCst);
            true
        });
        count("a run was killed at every step");
    }
    // The first death leaves a torn end, a start, a result; the second comes at every step of what the resume does.
    for first in [3, 9, 22] {
        each(|at| {
            let stage = stage(0);
            killed_at(&stage, first, &arguments(0, &[]));
            if !killed_at(&stage, at, &arguments(0, &["--resume"])) {
                return false;
            }
            check(&stage, 0, &format!("killed at {first}, then at {at}"));
            pairs.fetch_add(1, Ordering::SeqCst);
            true
        });
        count("the resume was killed, too");
    }
    let rest = PAIRS.saturating_sub(pairs.load(Ordering::SeqCst));
    let rest = rest.max(RANDOM);
    each(|at| {
        if at as usize > rest {
            return false;
        }
        killed_sometime();
        pairs.fetch_add(1, Ordering::SeqCst);
        true
    });
    count("the rest at random times");
    assert!(pairs.load(Ordering::SeqCst) >= PAIRS);
}

/// The kill comes from outside, at any time.
fn killed_sometime() {
    let way = fastrand::usize(..WAYS.len());
    let stage = stage(way);
    let mut child = stage.start(&arguments(way, &[]));
    let after = Duration::from_micros(fastrand::u64(..60_000));
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    if stage.log_path().exists() {
        check(&stage, way, &format!("way {way}, killed after {after:?}"));
    }
}
