//! FAULTS 47–54, 56–58, 65, 66, 68: hostile programs: whatever they do, their call is answered in time and nobody of theirs is left.
//!
//! This file is its own zoo: started as `zoo beast NAME`, it is that program (`beasts`). Each carries a mark in its
//! environment, by which it and all that comes of it are found afterwards. `ZOO_TIMES=25` runs everything so often,
//! `ZOO_KILLS=200` kills toolq so often; arguments choose by name.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::large_stack_arrays,
    reason = "a test that runs itself, and beasts that end as they like"
)]

#[cfg(target_os = "linux")]
mod beasts;
#[cfg(target_os = "linux")]
mod kills;
#[cfg(target_os = "linux")]
mod machine;
#[path = "../scene/mod.rs"]
#[cfg(target_os = "linux")]
mod scene;
#[cfg(target_os = "linux")]
mod tracks;
#[cfg(target_os = "linux")]
mod visits;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("nobody is kept on this system");
}

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name, rest @ ..] = arguments.as_slice()
        && first == "beast"
    {
        return beasts::be(name, rest);
    }
    let chosen: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| name.contains(word));
    let visited = visits::all(is_chosen);
    let killed = if is_chosen("kills") { kills::all() } else { 0 };
    println!("{visited} visits, {killed} kills, nobody left");
}

/// A number from the environment of the tests.
#[cfg(target_os = "linux")]
fn number(name: &str, otherwise: usize) -> usize {
    let value = std::env::var(name);
    value
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(otherwise)
}
