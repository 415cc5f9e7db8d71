//! Programs, servers and escape attempts that mean harm. Each is a trial of its own.
//!
//! This test binary also plays them: started with [`PLAY`] and a role, it behaves like that program, server or attempt. The
//! harness is libtest-mimic, since the roles crash, fork and exit in ways that need a `main` of their own.

#![allow(
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::large_stack_arrays,
    reason = "a test without the standard harness, whose programs crash on purpose"
)]

#[cfg(target_os = "linux")]
#[path = "../support/engine_turn.rs"]
mod engine_turn;
#[cfg(target_os = "linux")]
mod process_marks;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod servers;
#[cfg(target_os = "linux")]
#[path = "../support/skipped_test.rs"]
mod skipped_test;
#[cfg(target_os = "linux")]
mod stall_clock;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: descendants are only supervised, and programs confined, on Linux");
}

/// The first argument of a process that plays a role. The harness knows no such flag.
#[cfg(target_os = "linux")]
const PLAY: &str = "--play";

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, role, rest @ ..] = arguments.as_slice()
        && first == PLAY
    {
        play(role, rest);
        return std::process::ExitCode::SUCCESS;
    }
    let arguments = harness_arguments();
    let trials = programs::trials()
        .into_iter()
        .chain(servers::trials())
        .chain(sandbox::trials(arguments.list));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Returns the arguments for the harness. Most trials wait for something, so several share a processor.
#[cfg(target_os = "linux")]
fn harness_arguments() -> libtest_mimic::Arguments {
    let mut arguments = libtest_mimic::Arguments::from_args();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    arguments.test_threads.get_or_insert(3 * processors);
    arguments
}

#[cfg(target_os = "linux")]
fn play(role: &str, arguments: &[String]) {
    match (role, arguments) {
        ("program", [name, ..]) => programs::repertoire::play(name),
        ("caller", [name]) => programs::play_caller(name),
        ("server", [name, ..]) => servers::programs::play(name),
        ("attempt", [name, place]) => sandbox::attempts::play(name, place.as_ref()),
        ("victim", []) => sandbox::outside::play_victim(),
        _ => panic!("no role: {role} {arguments:?}"),
    }
}

/// Returns the named ones of all, or all with the feature `slow-tests`.
#[cfg(target_os = "linux")]
fn choose<T>(all: impl Iterator<Item = T>, name: impl Fn(&T) -> &str, few: &[&str]) -> Vec<T> {
    if cfg!(feature = "slow-tests") {
        return all.collect();
    }
    let chosen: Vec<T> = all.filter(|item| few.contains(&name(item))).collect();
    assert_eq!(chosen.len(), few.len(), "one of {few:?} doesn't exist");
    chosen
}

/// Runs a trial while others may run.
#[cfg(target_os = "linux")]
fn beside_others<T>(run: impl FnOnce() -> T) -> T {
    let binary = open_binary();
    binary.lock_shared().unwrap();
    run()
}

/// Runs a trial while no other runs.
#[cfg(target_os = "linux")]
fn without_others<T>(run: impl FnOnce() -> T) -> T {
    let binary = open_binary();
    binary.lock().unwrap();
    run()
}

/// Returns the file whose lock trials hold until they close it. Some runners start each trial in a process of its own.
#[cfg(target_os = "linux")]
fn open_binary() -> std::fs::File {
    std::fs::File::open(std::env::current_exe().unwrap()).unwrap()
}
