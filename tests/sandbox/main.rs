//! Programs that try to get out of their sandbox. All of them fail. The same programs succeed without a sandbox, which shows
//! that each attempt can succeed. Each program also has to do its allowed work inside, since one that can't even start would
//! prove nothing.
//!
//! This test binary plays the programs itself: started with the arguments `program NAME DIRECTORY`, it does its work and
//! makes that attempt (see [`attempts`]). `DIRECTORY` is outside of the working root. Other arguments select attempts by
//! name.

#![allow(
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test without the standard harness"
)]

#[cfg(target_os = "linux")]
mod attempts;
#[cfg(target_os = "linux")]
mod escape_runs;
#[cfg(target_os = "linux")]
mod outside;
#[cfg(target_os = "linux")]
mod system_calls;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: programs are only confined on Linux");
}

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name, directory] = arguments.as_slice()
        && first == "program"
    {
        return attempts::play(name, directory.as_ref());
    }
    if arguments == ["victim"] {
        return outside::play_victim();
    }
    // A number is the value of a flag of the standard harness, such as `--test-threads 8`.
    let is_name = |word: &&String| !word.starts_with('-') && word.parse::<usize>().is_err();
    let words = arguments.iter().filter(is_name);
    let words: Vec<&String> = words.collect();
    escape_runs::run_all(|name| words.is_empty() || words.iter().any(|word| name.contains(*word)));
}
