//! Programs that end, or stop talking, when they shouldn't.

use std::process::{abort, exit};

use rustix::process::{Signal, getpid, kill_process};

use crate::hostile_servers;
use crate::servers::expectation::End::{Fails, InDoubt, OneOf, Served, TimesOut};
use crate::servers::script::legacy;
use crate::servers::wire::drain_stdin;

hostile_servers! {
    dies_at_its_start => legacy().at_start(|_| { eprintln!("no config"); exit(7) }).all(Fails("no config")).again(Fails("isn't started again"));
    ends_at_its_start => legacy().at_start(|_| exit(0)).all(Fails("exited with code 0")).again(Fails("isn't started again"));
    dies_in_the_probe => legacy().on_discover(|_, _| exit(1));
    dies_in_initialize => legacy().on_initialize(|_, _| exit(1)).all(Fails("exited with code 1")).again(Fails("isn't started again"));
    dies_after_the_handshake => legacy().on_initialize(|wire, request| { wire.answer_initialize(request); exit(1) })
        .all(Fails("exited with code 1")).ends(Fails("exited with code 1"), OneOf(&[Fails("exited with code 1"), InDoubt("exited with code 1")]))
        .again(OneOf(&[Fails("isn't started again"), Fails("exited with code 1")]));
    dies_before_the_effect => legacy().on_call(|_, _| exit(3)).ends(Fails("exited with code 3"), InDoubt("exited with code 3"));
    dies_in_the_effect => legacy().on_call(|_, call| { call.apply(); exit(3) }).ends(Fails("exited with code 3"), InDoubt("exited with code 3"));
    ends_in_the_effect => legacy().on_call(|_, call| { call.apply(); exit(0) }).ends(Fails("exited with code 0"), InDoubt("exited with code 0"));
    dies_after_its_answer => legacy().on_call(|wire, call| { wire.answer_call(call); exit(3) })
        .ends(OneOf(&[Served, Fails("exited with code 3")]), OneOf(&[Served, InDoubt("exited with code 3")])).again(OneOf(&[Served, Fails("exited with code 3")]));
    crashes => legacy().on_call(|_, call| { call.apply(); abort() }).ends(Fails("signal 6"), InDoubt("signal 6"));
    kills_itself => legacy().on_call(|_, call| { call.apply(); signal_self(Signal::KILL) }).ends(Fails("signal 9"), InDoubt("signal 9"));
    stops_itself => legacy().on_call(|_, call| { call.apply(); signal_self(Signal::STOP) }).times_out().again(TimesOut);
    dies_with_a_long_farewell => legacy().on_call(|_, call| { call.apply(); eprintln!("{}\nlast words", "x".repeat(1 << 22)); exit(3) }).ends(Fails("last words"), InDoubt("last words"));
    closes_stdout_and_goes_on => legacy().on_call(|_, call| { call.apply(); close(1); drain_stdin() }).ends(Fails("closed its stdout"), InDoubt("closed its stdout"));
    closes_stdin_and_goes_on => legacy().on_call(|_, call| { call.apply(); close(0); sleep_long() }).times_out()
        .ends(OneOf(&[TimesOut, Fails("closed its stdin")]), OneOf(&[InDoubt("no complete response"), InDoubt("closed its stdin")])).again(OneOf(&[Served, TimesOut, Fails("closed its stdin")]));
    closes_stderr => legacy().at_start(|_| close(2));
    closes_everything => legacy().on_call(|_, call| { call.apply(); (0..3).for_each(close); sleep_long() }).ends(Fails("closed its stdout"), InDoubt("closed its stdout"));
    is_slow_to_die => legacy().on_call(|_, call| { call.apply(); close(1); close(2); std::thread::sleep(std::time::Duration::from_secs(1)); exit(3) }).ends(Fails("closed its stdout"), InDoubt("closed its stdout"));
}

fn signal_self(signal: Signal) {
    kill_process(getpid(), signal).unwrap();
}

fn close(descriptor: i32) {
    // SAFETY: nothing in this process uses the descriptor after it was closed, except to find that out.
    unsafe { libc::close(descriptor) };
}

fn sleep_long() {
    std::thread::sleep(std::time::Duration::from_mins(10));
}
