//! Hostile programs: regardless of what a program does, its call gets its result in time and no descendant survives.
//!
//! Each program carries a mark in its environment, by which the tests find it and its descendants afterwards.

mod kills;
pub mod repertoire;

use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use rustix::process::Signal;
use toolq_core::types::{CallEnding, CommandLimits, LimitKind, Outcome};

use crate::engine_turn::{TestCall, TestTurn, command_call, success_text, text_template};
use crate::process_marks::{self, MARK_VARIABLE};
use crate::stall_clock::{ActiveSpan, subtract_stalls};
use crate::{PLAY, beside_others, choose, without_others};

use repertoire::HostileProgram;

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

/// Each kind of harm once.
const FEW: [&str; 10] = [
    "ignores_all",
    "stops_itself_on_term",
    "floods_stdout",
    "leaves_a_daemon",
    "leaves_a_fork_relay_in_sessions",
    "leaves_a_sibling",
    "closes_everything_and_keeps_running",
    "stops_reaper_and_supervisor",
    "fork_bombs",
    "dies_by_segv",
];

/// The program that does nothing wrong.
const DECENT: &str = "prints_done";

/// The trial that runs the programs at the same time.
const ALL_AT_ONCE: &str = "all_at_once";

/// Returns the trials: chosen programs, each alone; all programs at once; and toolq killed while such programs run.
pub fn trials() -> Vec<Trial> {
    let programs = choose(repertoire::ALL.iter(), |program| program.name, &FEW);
    let alone = programs.iter().map(|program| {
        let name = program.name;
        let run = || beside_others(|| run_in_own_process(name));
        Trial::test(format!("programs::{name}"), run)
    });
    // Thousands of processes at a time leave nothing for others.
    let all_at_once = || without_others(|| run_in_own_process(ALL_AT_ONCE));
    let kills = || {
        without_others(kills::kill_repeatedly);
        Ok(())
    };
    alone
        .chain([
            Trial::test(format!("programs::{ALL_AT_ONCE}"), all_at_once),
            Trial::test("programs::kills", kills),
        ])
        .collect()
}

/// Runs a trial in a process of its own: what the engine leaves open or running there belongs to no other trial.
fn run_in_own_process(name: &str) -> Result<(), Failed> {
    let test_binary = std::env::current_exe()?;
    let output = Command::new(test_binary)
        .args([PLAY, "caller", name])
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}\n{messages}", output.status).into())
}

/// Calls one program, or all at once. Checks results, times and leftovers.
pub fn play_caller(name: &str) {
    // The first turn opens what every turn of a process shares.
    let decent = call_program(find(DECENT));
    let descriptors_before = process_marks::open_descriptor_count();
    if name == ALL_AT_ONCE {
        call_all_at_once();
    } else {
        let program = find(name);
        assert_in_time(program, call_program(program), decent);
    }
    let descriptors_after = process_marks::open_descriptor_count();
    assert_eq!(descriptors_after, descriptors_before, "open descriptors");
    let children = process_marks::child_processes();
    assert!(children.is_empty(), "{children:?}");
}

fn find(name: &str) -> &'static HostileProgram {
    let mut all = repertoire::ALL.iter();
    all.find(|program| program.name == name).unwrap()
}

/// Calls a program. Returns how long it took until the result, without stalls of the machine.
fn call_program(program: &HostileProgram) -> Duration {
    let mark = format!("{}-{}", program.name, std::process::id());
    let span = ActiveSpan::begin();
    let ran = TestTurn::default().call(program_call(program, &mark)).run();
    let answered = subtract_stalls(ran.durations[&0], span.stalled_time());
    assert_outcome(program, ran.outcome());
    process_marks::wait_until_gone(&mark, program.name);
    answered
}

/// Asserts that a call got its result soon enough after its timeout and grace period. `decent` is how long a program took that
/// does nothing wrong: the more, the busier is the machine.
fn assert_in_time(program: &HostileProgram, answered: Duration, decent: Duration) {
    let limit = call_timeout(program) + GRACE + MAX_DELAY + 2 * decent;
    assert!(
        answered < limit,
        "{} got its result after {answered:?}; the limit is {limit:?}",
        program.name
    );
}

/// Runs the programs at the same time: no program may harm the call of another.
fn call_all_at_once() {
    let mark = format!("all-at-once-{}", std::process::id());
    let programs: Vec<_> = repertoire::ALL
        .iter()
        .filter(|program| program.name != "kills_reaper_and_supervisor")
        .collect();
    let calls = programs.iter().fold(TestTurn::default(), |turn, program| {
        turn.call(program_call(program, &mark))
    });
    let span = ActiveSpan::begin();
    let ran = calls.run();
    let stalled = span.stalled_time();
    let answered = |position| subtract_stalls(ran.durations[&position], stalled);
    let decent = programs.iter().position(|program| program.name == DECENT);
    for (position, program) in programs.iter().enumerate() {
        assert_outcome(program, &ran.outcomes[&position]);
        assert_in_time(program, answered(position), answered(decent.unwrap()));
    }
    process_marks::wait_until_gone(&mark, "running all at once");
}

/// The timeout of a program's call. Calls that must fail get more time, because they are expected to end well before it.
fn call_timeout(program: &HostileProgram) -> Duration {
    match program.end {
        ExpectedEnd::Fails => TIMEOUT * 4,
        _ => TIMEOUT,
    }
}

fn program_call(program: &HostileProgram, mark: &str) -> TestCall {
    let test_binary = std::env::current_exe().unwrap();
    let mut limits = CommandLimits::default();
    if let ExpectedEnd::ExceedsLimit(LimitKind::Processes) = program.end {
        limits.processes = Some(16);
    }
    let test_call = command_call(&[test_binary.to_str().unwrap(), PLAY, "program", program.name])
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

fn assert_outcome(program: &HostileProgram, outcome: &Outcome) {
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
