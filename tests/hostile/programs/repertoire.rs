//! The hostile programs, each with how its call must end.

use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, exit};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, getpid, getppid, kill_current_process_group, kill_process, setsid,
};
use toolq_core::types::LimitKind;

use crate::PLAY;
use crate::programs::ExpectedEnd;

/// A hostile program.
pub struct HostileProgram {
    pub name: &'static str,
    pub end: ExpectedEnd,
    action: fn(),
}

macro_rules! hostile_programs {
    ($($name:ident => $end:expr, $action:expr;)*) => {
        /// All programs.
        pub const ALL: &[HostileProgram] = &[$(HostileProgram { name: stringify!($name), end: $end, action: $action }),*];
    };
}

const PRINTS_DONE: ExpectedEnd = ExpectedEnd::Prints("done");

hostile_programs! {
    sleeps => ExpectedEnd::TimesOut, || sleep_long();
    spins => ExpectedEnd::TimesOut, || loop { std::hint::spin_loop() };
    ignores_term => ExpectedEnd::TimesOut, || { ignore(Signal::TERM); sleep_long() };
    ignores_all => ExpectedEnd::TimesOut, || { ignore_all(); sleep_long() };
    blocks_all => ExpectedEnd::TimesOut, || { block_all(); sleep_long() };
    stops_itself => ExpectedEnd::TimesOut, || { raise(Signal::STOP); sleep_long() };
    stops_its_group => ExpectedEnd::TimesOut, || { let _ = kill_current_process_group(Signal::STOP); sleep_long() };
    stops_itself_on_term => ExpectedEnd::TimesOut, || { on_term(stop_handler); sleep_long() };
    forks_on_term => ExpectedEnd::TimesOut, || { on_term(fork_handler); sleep_long() };
    closes_everything => ExpectedEnd::TimesOut, || { close_all(); sleep_long() };
    execs_without_environment => ExpectedEnd::TimesOut, || exec_without_environment();
    ends_its_main_thread => ExpectedEnd::TimesOut, || { std::thread::spawn(sleep_long); exit_thread() };
    leaves_zombies_unreaped => ExpectedEnd::TimesOut, || { (0..100).for_each(|_| fork_child(|| ())); sleep_long() };
    starts_a_chain_of_sessions => ExpectedEnd::TimesOut, || { fork_session_chain(10); sleep_long() };
    floods_stdout => ExpectedEnd::TimesOut, || write_endlessly(&mut std::io::stdout());
    floods_stderr => ExpectedEnd::TimesOut, || write_endlessly(&mut std::io::stderr());
    floods_status => ExpectedEnd::TimesOut, || write_endlessly(&mut std::fs::File::create("/proc/self/fd/3").unwrap());
    leaves_a_child => PRINTS_DONE, || { fork_child(sleep_long); print_done() };
    leaves_a_child_in_a_session => PRINTS_DONE, || { fork_child(|| { new_session(); ignore_all(); sleep_long() }); print_done() };
    leaves_a_stopped_child => PRINTS_DONE, || { fork_child(|| { new_session(); raise(Signal::STOP); sleep_long() }); print_done() };
    leaves_a_daemon => PRINTS_DONE, || { daemonize(|| { close_all(); sleep_long() }); print_done() };
    leaves_a_daemon_with_pipes => PRINTS_DONE, || { daemonize(|| { ignore_all(); sleep_long() }); print_done() };
    leaves_a_child_that_floods_stderr => PRINTS_DONE, || { fork_child(|| { new_session(); write_endlessly(&mut std::io::stderr()) }); print_done() };
    leaves_fifty_children => PRINTS_DONE, || { (0..50).for_each(|_| fork_child(sleep_long)); print_done() };
    leaves_children_in_groups => PRINTS_DONE, || { (0..5).for_each(|_| fork_child(|| { new_group(); sleep_long() })); print_done() };
    leaves_a_fork_relay => PRINTS_DONE, || { fork_child(|| fork_relay(3_000)); print_done() };
    leaves_a_fork_relay_in_sessions => PRINTS_DONE, || { fork_child(|| { ignore_all(); fork_relay_in_sessions(100_000) }); print_done() };
    leaves_several_fork_relays => PRINTS_DONE, || { (0..4).for_each(|_| fork_child(|| { new_session(); fork_relay(1_000) })); print_done() };
    leaves_a_subreaper => PRINTS_DONE, || { fork_child(|| { become_subreaper(); fork_session_chain(4); sleep_long() }); print_done() };
    leaves_a_child_with_a_strange_name => PRINTS_DONE, || { fork_child(|| { set_process_name(c") Z 1 1 ("); new_session(); sleep_long() }); print_done() };
    leaves_a_child_without_exit_signal => PRINTS_DONE, || { clone_child(0, sleep_long); print_done() };
    leaves_a_sibling => PRINTS_DONE, || { clone_child(libc::CLONE_PARENT | libc::SIGCHLD, sleep_long); print_done() };
    execs_itself => PRINTS_DONE, || { block_all(); exec_self_as("prints_done") };
    prints_done => PRINTS_DONE, || print_done();
    closes_stdin => PRINTS_DONE, || { close(0); print_done() };
    closes_stdout_and_keeps_running => ExpectedEnd::Prints("x"), || { print_now("x"); close(1); sleep(Duration::from_millis(50)) };
    closes_everything_and_keeps_running => ExpectedEnd::Prints("x"), || { print_now("x"); close_all(); sleep(Duration::from_millis(50)) };
    reads_part_of_stdin => PRINTS_DONE, || { std::io::stdin().read_exact(&mut [0; 1000]).unwrap(); print_done() };
    writes_byte_by_byte => PRINTS_DONE, || b"done".iter().for_each(|byte| { print_now(std::str::from_utf8(&[*byte]).unwrap()); sleep(Duration::from_millis(5)) });
    has_no_terminal => ExpectedEnd::Prints("none"), || print_now(std::fs::File::open("/dev/tty").map_or("none", |_| "one"));
    leads_its_session => ExpectedEnd::Prints("yes"), || print_now(if rustix::process::getsid(None).unwrap() == getpid() { "yes" } else { "no" });
    opens_many_files => PRINTS_DONE, || { let _files: Vec<_> = (0..500).map_while(|_| std::fs::File::open("/dev/null").ok()).collect(); print_done() };
    signals_its_parent => PRINTS_DONE, || { for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::ALARM, Signal::CHILD, Signal::PIPE] { signal_parent(signal) } print_done() };
    kills_its_parent => ExpectedEnd::Fails, || { fork_child(|| { new_session(); sleep_long() }); signal_parent(Signal::KILL); sleep_long() };
    stops_its_parent => ExpectedEnd::Fails, || { fork_child(|| { new_session(); sleep_long() }); signal_parent(Signal::STOP) };
    stops_reaper_and_supervisor => ExpectedEnd::Fails, || { fork_child(sleep_long); signal_reaper_and_supervisor(Signal::STOP) };
    kills_reaper_and_supervisor => ExpectedEnd::Fails, || { signal_reaper_and_supervisor(Signal::KILL); sleep_long() };
    kills_its_group => ExpectedEnd::KilledBySignal(Signal::KILL), || { fork_child(sleep_long); let _ = kill_current_process_group(Signal::KILL); };
    forks_threads_without_their_first => ExpectedEnd::ExceedsLimit(LimitKind::Processes), || { (0..40).for_each(|_| fork_child(|| { std::thread::spawn(sleep_long); exit_thread() })); sleep_long() };
    fork_bombs => ExpectedEnd::ExceedsLimit(LimitKind::Processes), || fork_bomb(400);
    dies_by_hup => ExpectedEnd::KilledBySignal(Signal::HUP), || raise(Signal::HUP);
    dies_by_int => ExpectedEnd::KilledBySignal(Signal::INT), || raise(Signal::INT);
    dies_by_quit => ExpectedEnd::KilledBySignal(Signal::QUIT), || raise(Signal::QUIT);
    dies_by_ill => ExpectedEnd::KilledBySignal(Signal::ILL), || raise(Signal::ILL);
    dies_by_trap => ExpectedEnd::KilledBySignal(Signal::TRAP), || raise(Signal::TRAP);
    dies_by_abort => ExpectedEnd::KilledBySignal(Signal::ABORT), || raise(Signal::ABORT);
    dies_by_bus => ExpectedEnd::KilledBySignal(Signal::BUS), || raise(Signal::BUS);
    dies_by_fpe => ExpectedEnd::KilledBySignal(Signal::FPE), || raise(Signal::FPE);
    dies_by_kill => ExpectedEnd::KilledBySignal(Signal::KILL), || raise(Signal::KILL);
    dies_by_segv => ExpectedEnd::KilledBySignal(Signal::SEGV), || raise(Signal::SEGV);
    dies_by_pipe => ExpectedEnd::KilledBySignal(Signal::PIPE), || raise(Signal::PIPE);
    dies_by_alarm => ExpectedEnd::KilledBySignal(Signal::ALARM), || raise(Signal::ALARM);
    dies_by_term => ExpectedEnd::KilledBySignal(Signal::TERM), || raise(Signal::TERM);
    dies_by_xcpu => ExpectedEnd::KilledBySignal(Signal::XCPU), || raise(Signal::XCPU);
    dies_by_xfsz => ExpectedEnd::KilledBySignal(Signal::XFSZ), || raise(Signal::XFSZ);
    dies_by_sys => ExpectedEnd::KilledBySignal(Signal::SYS), || raise(Signal::SYS);
}

/// Behaves like the program of this name.
pub fn play(name: &str) {
    match ALL.iter().find(|program| program.name == name) {
        Some(program) => (program.action)(),
        None if name == "tree" => fork_tree(3),
        None if name == "relays" => {
            ignore_all();
            drop(start_fork_relays(75));
            sleep_long();
        }
        None if name == "stops_cleanup" => {
            ignore_all();
            stop_cleanup();
        }
        None => panic!("unknown program: {name}"),
    }
}

fn print_done() {
    print_now("done");
}

fn print_now(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
}

/// Sleeps longer than any test runs.
fn sleep_long() {
    sleep(Duration::from_secs(1_000));
}

/// Forks a tree of processes that ignore all signals, half of them in new sessions. The second level exits at once, so
/// that its children are orphaned.
fn fork_tree(depth: u32) {
    ignore_all();
    if depth > 0 {
        for branch in 0..2 {
            fork_child(move || {
                if branch == 1 {
                    new_session();
                }
                fork_tree(depth - 1);
            });
        }
    }
    if depth == 2 {
        exit(0);
    }
    sleep_long();
}

/// Forks a chain of processes, each in its own session.
fn fork_session_chain(depth: u32) {
    if depth > 0 {
        fork_child(move || {
            new_session();
            fork_session_chain(depth - 1);
            sleep_long();
        });
    }
}

/// Runs `action` in a daemon: forks twice, with a new session in between.
fn daemonize(action: fn()) {
    fork_child(move || {
        new_session();
        fork_child(action);
    });
}

/// Hops from process to process, each of which lives for a millisecond.
fn fork_relay(steps: u32) {
    if steps > 0 {
        sleep(Duration::from_millis(1));
        fork_child(move || fork_relay(steps - 1));
    }
}

/// Like [`fork_relay`], but each process starts a new session, and without pauses.
fn fork_relay_in_sessions(steps: u32) {
    if steps > 0 {
        new_session();
        fork_child(move || fork_relay_in_sessions(steps - 1));
    } else {
        sleep_long();
    }
}

/// Starts this many relays of processes, each in a session of its own. They wait until the returned end of a pipe is
/// closed, because nothing else would get any processor time.
fn start_fork_relays(count: u32) -> std::io::PipeWriter {
    let (mut gate, opener) = std::io::pipe().unwrap();
    let pipes = [gate.as_raw_fd(), opener.as_raw_fd()];
    for _ in 0..count {
        fork_child(|| {
            ignore_all();
            close(pipes[1]);
            let _ = gate.read(&mut [0]);
            close(pipes[0]);
            fork_relay_in_sessions(u32::MAX);
        });
    }
    opener
}

fn fork_bomb(max_children: u32) {
    for _ in 0..max_children {
        fork_child(sleep_long);
    }
    sleep_long();
}

fn write_endlessly(to: &mut dyn std::io::Write) {
    while to.write_all(&[b'x'; 1 << 16]).is_ok() {}
    sleep_long();
}

fn signal_parent(signal: Signal) {
    let _ = kill_process(getppid().unwrap(), signal);
}

/// Signals the reaper (the parent) and its supervisor, starting with the supervisor, which would react to the reaper's
/// death.
fn signal_reaper_and_supervisor(signal: Signal) {
    let reaper = getppid().unwrap();
    let supervisor = parent_of(reaper);
    let _ = kill_process(supervisor, signal);
    let _ = kill_process(reaper, signal);
}

/// Waits until toolq is gone, and then stops those who would clean up.
fn stop_cleanup() {
    let supervisor = parent_of(getppid().unwrap());
    let toolq = parent_of(supervisor);
    while parent_of(supervisor) == toolq {
        sleep(Duration::from_millis(1));
    }
    signal_reaper_and_supervisor(Signal::STOP);
    sleep_long();
}

fn parent_of(process: Pid) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap();
    let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap();
    Pid::from_raw(parent.parse().unwrap()).unwrap()
}

fn exec_self_as(name: &str) {
    let exec_error = Command::new(std::env::current_exe().unwrap())
        .args([PLAY, "program", name])
        .exec();
    panic!("{exec_error}");
}

fn exec_without_environment() {
    let mark = std::env::vars_os()
        .find(|(name, _)| name == crate::process_marks::MARK_VARIABLE)
        .unwrap()
        .1;
    let error = Command::new(std::env::current_exe().unwrap())
        .args([PLAY, "program", "ignores_all"])
        .arg(mark)
        .env_clear()
        .exec();
    panic!("{error}");
}

fn set_process_name(name: &std::ffi::CStr) {
    rustix::thread::set_name(name).unwrap();
}

fn become_subreaper() {
    rustix::process::set_child_subreaper(Some(getpid())).unwrap();
}

fn new_session() {
    setsid().unwrap();
}

fn new_group() {
    rustix::process::setpgid(None, None).unwrap();
}

fn raise(signal: Signal) {
    // Undo the handlers of the Rust runtime (SIGSEGV, SIGBUS, SIGPIPE).
    if signal != Signal::KILL && signal != Signal::STOP {
        // SAFETY: the default action runs no code of ours.
        unsafe { libc::signal(signal.as_raw(), libc::SIG_DFL) };
    }
    kill_process(getpid(), signal).unwrap();
}

fn ignore(signal: Signal) {
    // SAFETY: ignoring runs no code of ours.
    unsafe { libc::signal(signal.as_raw(), libc::SIG_IGN) };
}

fn ignore_all() {
    for signal in 1..32 {
        // SAFETY: ignoring runs no code of ours; the kernel refuses signals that can't be ignored.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn block_all() {
    // SAFETY: the set is initialized before it is used.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

fn on_term(handler: extern "C" fn(i32)) {
    // SAFETY: the handlers here only call async-signal-safe functions.
    unsafe { libc::signal(libc::SIGTERM, handler as *const () as libc::sighandler_t) };
}

extern "C" fn stop_handler(_: i32) {
    // SAFETY: raise is async-signal-safe.
    unsafe { libc::raise(libc::SIGSTOP) };
}

extern "C" fn fork_handler(_: i32) {
    // SAFETY: fork, setsid and pause are async-signal-safe; this process has one thread.
    unsafe {
        if libc::fork() == 0 {
            libc::setsid();
            loop {
                libc::pause();
            }
        }
    }
}

fn close(descriptor: i32) {
    // SAFETY: nothing in this process uses the descriptor afterwards.
    unsafe { libc::close(descriptor) };
}

fn close_all() {
    (0..64).for_each(close);
}

fn exit_thread() {
    // SAFETY: ends only this thread, which has nothing left to do.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

fn fork_child(action: impl FnOnce()) {
    // SAFETY: this process has one thread.
    if unsafe { libc::fork() } == 0 {
        action();
        exit(0);
    }
}

/// Creates a child with these clone(2) flags: `CLONE_PARENT` makes it a sibling; without an exit signal its end isn't
/// reported to the parent.
fn clone_child(flags: i32, action: fn()) {
    // SAFETY: without CLONE_VM this is a fork; this process has one thread.
    if unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } == 0 {
        action();
        exit(0);
    }
}
