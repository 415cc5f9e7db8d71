//! The programs. Each does its worst; what is to come of it stands beside it.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, exit};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, getpid, getppid, kill_current_process_group, kill_process, setsid,
};
use toolq_core::types::Limit;

use crate::visits::End;

/// A hostile program.
pub struct Beast {
    pub name: &'static str,
    pub end: End,
    act: fn(),
}

macro_rules! beasts {
    ($($name:ident => $end:expr, $act:expr;)*) => {
        /// All of them.
        pub const ALL: &[Beast] = &[$(Beast { name: stringify!($name), end: $end, act: $act }),*];
    };
}

const DONE: End = End::Says("done");

beasts! {
    sleeps => End::Late, || linger();
    spins => End::Late, || loop { std::hint::spin_loop() };
    ignores_term => End::Late, || { ignore(Signal::TERM); linger() };
    ignores_all => End::Late, || { ignore_all(); linger() };
    blocks_all => End::Late, || { block_all(); linger() };
    stops_itself => End::Late, || { raise(Signal::STOP); linger() };
    stops_its_group => End::Late, || { let _ = kill_current_process_group(Signal::STOP); linger() };
    stops_when_asked_to_end => End::Late, || { on_term(stop_handler); linger() };
    forks_when_asked_to_end => End::Late, || { on_term(fork_handler); linger() };
    closes_everything => End::Late, || { close_all(); linger() };
    execs_without_environment => End::Late, || without_environment();
    main_thread_ends => End::Late, || { std::thread::spawn(linger); end_thread() };
    zombies => End::Late, || { (0..100).for_each(|_| child(|| ())); linger() };
    chain_of_sessions => End::Late, || { chain(10); linger() };
    floods_stdout => End::Late, || flood(&mut std::io::stdout());
    floods_stderr => End::Late, || flood(&mut std::io::stderr());
    floods_status => End::Late, || flood(&mut std::fs::File::create("/proc/self/fd/3").unwrap());
    leaves_a_child => DONE, || { child(linger); done() };
    leaves_a_child_in_a_session => DONE, || { child(|| { new_session(); ignore_all(); linger() }); done() };
    leaves_a_stopped_child => DONE, || { child(|| { new_session(); raise(Signal::STOP); linger() }); done() };
    leaves_a_daemon => DONE, || { daemon(|| { close_all(); linger() }); done() };
    leaves_a_daemon_with_pipes => DONE, || { daemon(|| { ignore_all(); linger() }); done() };
    leaves_a_flood => DONE, || { child(|| { new_session(); flood(&mut std::io::stderr()) }); done() };
    leaves_fifty => DONE, || { (0..50).for_each(|_| child(linger)); done() };
    leaves_groups => DONE, || { (0..5).for_each(|_| child(|| { new_group(); linger() })); done() };
    leaves_a_runner => DONE, || { child(|| run_away(3_000)); done() };
    leaves_a_runner_through_sessions => DONE, || { child(|| { ignore_all(); run_away_alone(100_000) }); done() };
    leaves_a_hydra => DONE, || { (0..4).for_each(|_| child(|| { new_session(); run_away(1_000) })); done() };
    leaves_a_reaper => DONE, || { child(|| { adopt(); chain(4); linger() }); done() };
    leaves_a_strange_name => DONE, || { child(|| { rename(c") Z 1 1 ("); new_session(); linger() }); done() };
    leaves_a_silent_child => DONE, || { clone(0, linger); done() };
    leaves_a_sibling => DONE, || { clone(libc::CLONE_PARENT | libc::SIGCHLD, linger); done() };
    execs_itself => DONE, || { block_all(); again("says_done") };
    says_done => DONE, || done();
    closes_stdin => DONE, || { close(0); done() };
    closes_stdout_and_runs_on => End::Says("x"), || { say("x"); close(1); sleep(Duration::from_millis(50)) };
    closes_all_and_runs_on => End::Says("x"), || { say("x"); close_all(); sleep(Duration::from_millis(50)) };
    reads_half => DONE, || { std::io::stdin().read_exact(&mut [0; 1000]).unwrap(); done() };
    speaks_by_byte => DONE, || b"done".iter().for_each(|byte| { say(std::str::from_utf8(&[*byte]).unwrap()); sleep(Duration::from_millis(5)) });
    has_no_terminal => End::Says("none"), || say(std::fs::File::open("/dev/tty").map_or("none", |_| "one"));
    leads_its_session => End::Says("yes"), || say(if rustix::process::getsid(None).unwrap() == getpid() { "yes" } else { "no" });
    opens_many_files => DONE, || { let _files: Vec<_> = (0..500).map_while(|_| std::fs::File::open("/dev/null").ok()).collect(); done() };
    pesters_its_parent => DONE, || { for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::ALARM, Signal::CHILD, Signal::PIPE] { pester(signal) } done() };
    kills_its_parent => End::Fails, || { child(|| { new_session(); linger() }); pester(Signal::KILL); linger() };
    stops_its_parent => End::Fails, || { child(|| { new_session(); linger() }); pester(Signal::STOP) };
    stops_all_above => End::Fails, || { child(linger); above(Signal::STOP) };
    kills_all_above => End::Fails, || { above(Signal::KILL); linger() };
    kills_its_group => End::Dies(Signal::KILL), || { child(linger); let _ = kill_current_process_group(Signal::KILL); };
    bombs => End::Over(Limit::Processes), || bomb(400);
    dies_by_hup => End::Dies(Signal::HUP), || raise(Signal::HUP);
    dies_by_int => End::Dies(Signal::INT), || raise(Signal::INT);
    dies_by_quit => End::Dies(Signal::QUIT), || raise(Signal::QUIT);
    dies_by_ill => End::Dies(Signal::ILL), || raise(Signal::ILL);
    dies_by_trap => End::Dies(Signal::TRAP), || raise(Signal::TRAP);
    dies_by_abort => End::Dies(Signal::ABORT), || raise(Signal::ABORT);
    dies_by_bus => End::Dies(Signal::BUS), || raise(Signal::BUS);
    dies_by_fpe => End::Dies(Signal::FPE), || raise(Signal::FPE);
    dies_by_kill => End::Dies(Signal::KILL), || raise(Signal::KILL);
    dies_by_segv => End::Dies(Signal::SEGV), || raise(Signal::SEGV);
    dies_by_pipe => End::Dies(Signal::PIPE), || raise(Signal::PIPE);
    dies_by_alarm => End::Dies(Signal::ALARM), || raise(Signal::ALARM);
    dies_by_term => End::Dies(Signal::TERM), || raise(Signal::TERM);
    dies_by_xcpu => End::Dies(Signal::XCPU), || raise(Signal::XCPU);
    dies_by_xfsz => End::Dies(Signal::XFSZ), || raise(Signal::XFSZ);
    dies_by_sys => End::Dies(Signal::SYS), || raise(Signal::SYS);
}

/// Is the beast of this name.
pub fn be(name: &str, _: &[String]) {
    match ALL.iter().find(|beast| beast.name == name) {
        Some(beast) => (beast.act)(),
        None if name == "tree" => tree(3),
        None => panic!("there is no {name}"),
    }
}

fn done() {
    say("done");
}

fn say(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
}

/// For longer than any test lasts.
fn linger() {
    sleep(Duration::from_secs(1_000));
}

/// A tree of children, some in sessions of their own, that don't listen.
fn tree(depth: u32) {
    ignore_all();
    if depth > 0 {
        for branch in 0..2 {
            child(move || {
                if branch == 1 {
                    new_session();
                }
                tree(depth - 1);
            });
        }
    }
    if depth == 2 {
        exit(0);
    }
    linger();
}

fn chain(depth: u32) {
    if depth > 0 {
        child(move || {
            new_session();
            chain(depth - 1);
            linger();
        });
    }
}

fn daemon(act: fn()) {
    child(move || {
        new_session();
        child(act);
    });
}

/// From process to process, each living for a moment.
fn run_away(steps: u32) {
    if steps > 0 {
        sleep(Duration::from_millis(1));
        child(move || run_away(steps - 1));
    }
}

/// The same, each in a session of its own, and as fast as it can be.
fn run_away_alone(steps: u32) {
    if steps > 0 {
        new_session();
        child(move || run_away_alone(steps - 1));
    } else {
        linger();
    }
}

fn bomb(most: u32) {
    for _ in 0..most {
        child(linger);
    }
    linger();
}

fn flood(to: &mut dyn std::io::Write) {
    while to.write_all(&[b'x'; 1 << 16]).is_ok() {}
    linger();
}

fn pester(signal: Signal) {
    let _ = kill_process(getppid().unwrap(), signal);
}

/// The keeper and the root, from the one that ends the other on.
fn above(signal: Signal) {
    let keeper = getppid().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", keeper.as_raw_nonzero())).unwrap();
    let root = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap();
    let root = Pid::from_raw(root.parse().unwrap()).unwrap();
    let _ = kill_process(root, signal);
    let _ = kill_process(keeper, signal);
}

fn again(name: &str) {
    let error = Command::new(std::env::current_exe().unwrap())
        .args(["beast", name])
        .exec();
    panic!("{error}");
}

fn without_environment() {
    let mark = std::env::vars_os()
        .find(|(name, _)| name == crate::tracks::MARK)
        .unwrap()
        .1;
    let error = Command::new(std::env::current_exe().unwrap())
        .args(["beast", "ignores_all"])
        .arg(mark)
        .env_clear()
        .exec();
    panic!("{error}");
}

fn rename(name: &std::ffi::CStr) {
    rustix::thread::set_name(name).unwrap();
}

fn adopt() {
    rustix::process::set_child_subreaper(Some(getpid())).unwrap();
}

fn new_session() {
    setsid().unwrap();
}

fn new_group() {
    rustix::process::setpgid(None, None).unwrap();
}

fn raise(signal: Signal) {
    // What the runtime has put in the way of it.
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
        // SAFETY: ignoring runs no code of ours; what can't be ignored is refused.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn block_all() {
    // SAFETY: the set is initialised before it is used.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

fn on_term(handler: extern "C" fn(i32)) {
    // SAFETY: the handlers here call nothing but what a handler may.
    unsafe { libc::signal(libc::SIGTERM, handler as *const () as libc::sighandler_t) };
}

extern "C" fn stop_handler(_: i32) {
    // SAFETY: async-signal-safe.
    unsafe { libc::raise(libc::SIGSTOP) };
}

extern "C" fn fork_handler(_: i32) {
    // SAFETY: async-signal-safe; this process has one thread.
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
    // SAFETY: it is not used again.
    unsafe { libc::close(descriptor) };
}

fn close_all() {
    (0..64).for_each(close);
}

fn end_thread() {
    // SAFETY: ends this thread only, which has nothing left to do.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

fn child(act: impl FnOnce()) {
    // SAFETY: this process has one thread.
    if unsafe { libc::fork() } == 0 {
        act();
        exit(0);
    }
}

/// A child with these flags of clone(2): one of the parent's, or one whose end nobody is told of.
fn clone(flags: i32, act: fn()) {
    // SAFETY: without CLONE_VM this is a fork; this process has one thread.
    if unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } == 0 {
        act();
        exit(0);
    }
}
