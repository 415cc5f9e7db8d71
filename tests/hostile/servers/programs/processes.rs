//! Programs that don't end, or that leave orphans.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio, exit};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process, setsid};

use crate::hostile_servers;
use crate::servers::expectation::End::{Fails, InDoubt};
use crate::servers::script::legacy;

hostile_servers! {
    ignores_the_end_of_stdin => legacy().at_end(|_| sleep_long());
    ignores_term => legacy().at_start(|_| ignore(libc::SIGTERM)).at_end(|_| sleep_long());
    ignores_every_signal => legacy().at_start(|_| (1..32).for_each(ignore)).at_end(|_| sleep_long());
    stops_itself_at_the_end => legacy().at_end(|_| kill_process(getpid(), Signal::STOP).unwrap());
    spins_at_the_end => legacy().at_end(|_| loop { std::hint::spin_loop() });
    writes_at_the_end => legacy().at_end(|wire| loop { wire.line("not yet") });
    complains_at_the_end => legacy().at_end(|_| loop { eprintln!("not yet") });
    fails_at_the_end => legacy().at_end(|_| exit(9));
    leaves_a_child => legacy().on_call(|wire, call| { leave_child(false, true); wire.answer_call(call) });
    leaves_a_child_with_its_pipes => legacy().on_call(|wire, call| { leave_child(false, false); wire.answer_call(call) });
    leaves_a_session => legacy().on_call(|wire, call| { leave_child(true, false); wire.answer_call(call) });
    leaves_children_and_ignores_term => legacy().at_start(|_| ignore(libc::SIGTERM)).on_call(|wire, call| {
        (0..10).for_each(|n| leave_child(n % 2 == 0, n % 3 == 0));
        wire.answer_call(call);
    }).at_end(|_| sleep_long());
    dies_and_leaves_its_pipes_open => legacy().on_call(|_, call| { call.apply(); leave_child(true, false); exit(3) }).ends(Fails("exited with code 3"), InDoubt("exited with code 3"));
    never_answers_and_never_ends => legacy().at_start(|_| (1..32).for_each(ignore)).on_call(|_, call| call.apply()).times_out().at_end(|_| sleep_long());
}

fn sleep_long() {
    std::thread::sleep(Duration::from_mins(10));
}

fn ignore(signal: i32) {
    // SAFETY: no code of ours runs at the signal.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Starts a process that sleeps, perhaps in a session of its own, and perhaps without the pipes of this one.
#[allow(clippy::zombie_processes, reason = "it is left behind on purpose")]
fn leave_child(in_session: bool, is_quiet: bool) {
    let mut command = Command::new("sleep");
    command.arg("600");
    if is_quiet {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
    }
    if in_session {
        // SAFETY: `setsid` is async-signal-safe.
        unsafe { command.pre_exec(|| setsid().map(drop).map_err(Into::into)) };
    }
    command.spawn().unwrap();
}
