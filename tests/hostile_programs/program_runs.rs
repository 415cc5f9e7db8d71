//! Runs each program as a call on its own engine, then all at once, and checks results, times and leftovers.

use std::time::Duration;

use rustix::process::Signal;
use toolq_core::types::{CallEnding, CommandLimits, LimitKind, Outcome};

use crate::engine_turn::{TestCall, TestTurn, command_call, success_text, text_template};
use crate::process_marks::{self, MARK_VARIABLE};
use crate::stall_clock::{ActiveSpan, subtract_stalls};
use crate::{env_number, programs};

/// The timeout of programs that never end by themselves.
const TIMEOUT: Duration = Duration::from_millis(150);
const GRACE: Duration = Duration::from_millis(100);
/// How much later than its timeout and grace period a call may get its result.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// How a program's call must end.
#[derive(Debug, Clone, Copy)]
pub enum ExpectedEnd {
    Prints(&'static str),
    KilledBySignal(Signal),
    TimesOut,
    ExceedsLimit(LimitKind),
    /// With any error, in time.
    Fails,
}

/// The longest times over many runs, without stalls of the machine.
#[derive(Debug, Clone, Copy, Default)]
struct WorstTimes {
    /// From the start of a call to its result.
    answered: Duration,
    /// From there until no descendant was left.
    cleaned_up: Duration,
}

/// Runs every chosen program alone, then all at once. Returns the number of runs.
pub fn run_all(is_chosen: impl Fn(&str) -> bool) -> usize {
    let chosen: Vec<_> = programs::ALL
        .iter()
        .filter(|program| is_chosen(program.name))
        .collect();
    assert!(programs::ALL.len() >= 40);
    let mut run_count = 0;
    let mut worst = WorstTimes::default();
    let mut expected_descriptors = None;
    for _ in 0..env_number("HOSTILE_PROGRAMS_TIMES", 1) {
        for program in &chosen {
            worst = worst.max(run_program(program, run_count));
            run_count += 1;
            let now = process_marks::open_descriptor_count();
            assert_eq!(
                *expected_descriptors.get_or_insert(now),
                now,
                "open descriptors after {}",
                program.name
            );
            assert!(
                process_marks::child_processes().is_empty(),
                "{}: {:?}",
                program.name,
                process_marks::child_processes()
            );
        }
    }
    if is_chosen("all_at_once") {
        worst = worst.max(run_all_at_once());
        run_count += 1;
    }
    println!(
        "results took at most {} ms, cleanup at most {} ms more",
        worst.answered.as_millis(),
        worst.cleaned_up.as_millis()
    );
    run_count
}

impl WorstTimes {
    fn max(self, other: Self) -> Self {
        Self {
            answered: self.answered.max(other.answered),
            cleaned_up: self.cleaned_up.max(other.cleaned_up),
        }
    }
}

fn run_program(program: &programs::HostileProgram, number: usize) -> WorstTimes {
    let mark = format!("{}-{}-{number}", program.name, std::process::id());
    let span = ActiveSpan::begin();
    let ran = TestTurn::default().call(program_call(program, &mark)).run();
    let answered = subtract_stalls(ran.durations[&0], span.stalled_time());
    assert_outcome(program, ran.outcome());
    assert_in_time(program, answered);
    WorstTimes {
        answered,
        cleaned_up: process_marks::wait_until_gone(&mark, program.name),
    }
}

/// Asserts that a call got its result soon enough after its timeout and grace period.
fn assert_in_time(program: &programs::HostileProgram, answered: Duration) {
    let limit = call_timeout(program) + GRACE + MAX_DELAY;
    assert!(
        answered < limit,
        "{} got its result after {answered:?}; the limit is {limit:?}",
        program.name
    );
}

/// Runs the programs at the same time: no program may harm the call of another.
fn run_all_at_once() -> WorstTimes {
    let mark = format!("all-at-once-{}", std::process::id());
    let programs: Vec<_> = programs::ALL
        .iter()
        .filter(|program| program.name != "kills_reaper_and_supervisor")
        .collect();
    let calls = programs.iter().fold(TestTurn::default(), |turn, program| {
        turn.call(program_call(program, &mark))
    });
    let span = ActiveSpan::begin();
    let ran = calls.run();
    let stalled = span.stalled_time();
    for (position, program) in programs.iter().enumerate() {
        assert_outcome(program, &ran.outcomes[&position]);
        assert_in_time(program, subtract_stalls(ran.durations[&position], stalled));
    }
    let answered = ran.durations.values().max().copied().unwrap_or_default();
    WorstTimes {
        answered: subtract_stalls(answered, stalled),
        cleaned_up: process_marks::wait_until_gone(&mark, "running all at once"),
    }
}

/// The timeout of a program's call. Calls that must fail get more time, because they are expected to end well before it.
fn call_timeout(program: &programs::HostileProgram) -> Duration {
    match program.end {
        ExpectedEnd::Fails => TIMEOUT * 4,
        _ => TIMEOUT,
    }
}

fn program_call(program: &programs::HostileProgram, mark: &str) -> TestCall {
    let test_binary = std::env::current_exe().unwrap();
    let mut limits = CommandLimits::default();
    if let ExpectedEnd::ExceedsLimit(LimitKind::Processes) = program.end {
        limits.processes = Some(16);
    }
    let test_call = command_call(&[test_binary.to_str().unwrap(), "program", program.name])
        .input(&format!(r#"{{"x":"{}"}}"#, "x".repeat(1 << 18)))
        .command_backing(|backing| backing.limits = limits)
        .command_invocation(|command| {
            command.env = [(MARK_VARIABLE.to_owned(), text_template(mark))].into();
        });
    match program.end {
        ExpectedEnd::TimesOut | ExpectedEnd::Fails => test_call.tool(|tool| {
            tool.timeout.after = call_timeout(program);
            tool.timeout.kill_grace = GRACE;
        }),
        _ => test_call,
    }
}

fn assert_outcome(program: &programs::HostileProgram, outcome: &Outcome) {
    let holds = match program.end {
        ExpectedEnd::Prints(text) => {
            outcome.ending() == Some(CallEnding::ExitCode(0)) && success_text(outcome) == text
        }
        ExpectedEnd::KilledBySignal(signal) => {
            outcome.ending() == Some(CallEnding::Signal(signal.as_raw()))
        }
        ExpectedEnd::ExceedsLimit(limit) => {
            outcome.ending() == Some(CallEnding::LimitExceeded(limit))
        }
        ExpectedEnd::TimesOut => matches!(outcome, Outcome::TimedOut { .. }),
        ExpectedEnd::Fails => outcome.is_error(),
    };
    assert!(
        holds,
        "{}: {outcome:?} instead of {:?}",
        program.name, program.end
    );
}
