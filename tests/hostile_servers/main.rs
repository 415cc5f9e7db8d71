//! Hostile MCP servers: regardless of what a server does, each call gets one answer in time, no effect happens twice, and no
//! process of the server survives.
//!
//! This test binary plays the servers itself. Started with the arguments `server NAME`, it is the program of that name in
//! [`programs`]; those in [`endpoints`] are reached over HTTP and are threads of this process. Each runs with a toolq of its
//! own, several at a time. Other arguments select servers by name; `-v` prints what each took.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test without the standard harness, whose servers exit on purpose"
)]

#[cfg(target_os = "linux")]
mod endpoints;
#[cfg(target_os = "linux")]
mod expectation;
#[cfg(target_os = "linux")]
mod http_wire;
#[cfg(target_os = "linux")]
#[path = "../hostile_programs/process_marks.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod process_marks;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod scenario;
#[cfg(target_os = "linux")]
mod script;
#[cfg(target_os = "linux")]
#[path = "../hostile_programs/stall_clock.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod stall_clock;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: descendants are only supervised on Linux");
}

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name] = arguments.as_slice()
        && first == "server"
    {
        return programs::play(name);
    }
    scenario::run_all(&arguments);
}
