//! Hostile programs: regardless of what a program does, its call gets its result in time and no descendant survives.
//!
//! This test binary plays the programs itself: started with the arguments `program NAME`, it behaves like that program
//! (see [`programs`]). Each program carries a mark in its environment, by which the tests find it and its descendants
//! afterwards. `HOSTILE_PROGRAMS_TIMES=25` runs each program 25 times, `HOSTILE_PROGRAMS_KILLS=200` kills toolq 200
//! times. Other arguments select programs by name; `all_at_once` and `kills` select the other two tests.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::large_stack_arrays,
    reason = "a test without the standard harness, whose programs crash on purpose"
)]

#[path = "../support/engine_turn.rs"]
#[cfg(target_os = "linux")]
mod engine_turn;
#[cfg(target_os = "linux")]
mod kills;
#[cfg(target_os = "linux")]
mod process_marks;
#[cfg(target_os = "linux")]
mod program_runs;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod stall_clock;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: descendants are only supervised on Linux");
}

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name, rest @ ..] = arguments.as_slice()
        && first == "program"
    {
        return programs::run_by_name(name, rest);
    }
    let chosen: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| name.contains(word));
    let run_count = program_runs::run_all(is_chosen);
    let kill_count = if is_chosen("kills") {
        kills::kill_repeatedly()
    } else {
        0
    };
    println!("{run_count} runs, {kill_count} kills, no process left");
}

/// Returns the number in an environment variable, or `default`.
#[cfg(target_os = "linux")]
fn env_number(name: &str, default: usize) -> usize {
    let value = std::env::var(name);
    value
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}
