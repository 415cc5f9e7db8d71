//! What happens after a program has killed its supervisor: other programs start at once, and nothing is left of any.
//!
//! The tests run one after another, in a process of their own that is its own supervisor, because they look at all of its
//! children.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test without the standard harness"
)]

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: programs are only supervised on Linux");
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    procfence::supervise(&arguments).unwrap_or_else(|| {
        linux::run_all();
        std::process::ExitCode::SUCCESS
    })
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, File};
    use std::os::fd::AsFd as _;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::sync::Arc;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use procfence::timing::{MAX_SWEEPS, SWEEP_INTERVAL};
    use procfence::{
        ReaperClient, ReaperPool, ReaperPools, ReaperReply, ReaperRequest, ResourceLimits,
        SpawnRequest,
    };
    use rustix::process::{Pid, Signal, kill_process};

    /// How long a process may take to appear or to disappear.
    const PATIENCE: Duration = Duration::from_secs(30);

    pub(super) fn run_all() {
        let mut daemon = start_daemon();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            a_start_does_not_wait_for_the_reapers_of_a_killed_supervisor().await;
            a_reaper_of_a_killed_supervisor_is_not_mistaken_for_another().await;
            orphans_are_killed_although_there_is_a_new_supervisor().await;
            closing_ends_a_stopped_reaper_whose_supervisor_was_killed().await;
        });
        // On a busy machine, closing a pool doesn't wait for all that was killed.
        wait_until(|| living_children().len() <= 1);
        assert_eq!(living_children(), [pid(daemon.id())]);
        println!("ok: a_daemon_that_the_host_had_before_survives");
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// The next call gets a reaper of another supervisor at once.
    async fn a_start_does_not_wait_for_the_reapers_of_a_killed_supervisor() {
        let pools = new_pools();
        let program = Program::start(pools.pool(false), "exec sleep 1000").await;
        program.kill_supervisor();
        let started_at = Instant::now();
        let reaper = pools.pool(false).take_reaper(&request("true")).unwrap();
        assert!(started_at.elapsed() < SWEEP_INTERVAL * MAX_SWEEPS);
        assert!(is_alive(program.pid), "it doesn't depend on the supervisor");
        drop((program.reaper, reaper));
        pools.close();
        println!("ok: a_start_does_not_wait_for_the_reapers_of_a_killed_supervisor");
    }

    /// A running call goes on when a program kills the supervisor that forked its reaper.
    async fn a_reaper_of_a_killed_supervisor_is_not_mistaken_for_another() {
        let pools = new_pools();
        let pool = pools.pool(false);
        let old = Program::start(pool, "exec sleep 1000").await;
        old.kill_supervisor();
        let new = Program::start(pool, "exec sleep 1000").await;
        pool.kill_reaper(&old.reaper);
        // The supervisor handles its requests in order.
        let next = Program::start(pool, "exec sleep 1000").await;
        assert!(is_alive(new.reaper_pid) && is_alive(next.reaper_pid));
        drop((old.reaper, new.reaper, next.reaper));
        pools.close();
        println!("ok: a_reaper_of_a_killed_supervisor_is_not_mistaken_for_another");
    }

    /// Nothing is left of a call, even if its reaper is killed, too.
    async fn orphans_are_killed_although_there_is_a_new_supervisor() {
        let pools = new_pools();
        let pool = pools.pool(false);
        let old = Program::start(pool, "exec sleep 1000").await;
        old.kill_supervisor();
        let new = Program::start(pool, "exec sleep 1000").await;
        kill_process(old.reaper_pid, Signal::KILL).unwrap();
        assert!(old.reaper.receive_reply().await.is_err());
        pool.on_reaper_killed().await;
        wait_until(|| !is_alive(old.pid));
        assert!(is_alive(new.pid));
        drop((old.reaper, new.reaper));
        pools.close();
        println!("ok: orphans_are_killed_although_there_is_a_new_supervisor");
    }

    /// Nothing is left of a call, even if its reaper is stopped.
    async fn closing_ends_a_stopped_reaper_whose_supervisor_was_killed() {
        let pools = new_pools();
        let pool = pools.pool(false);
        let old = Program::start(pool, "exec sleep 1000").await;
        old.kill_supervisor();
        kill_process(old.reaper_pid, Signal::STOP).unwrap();
        let new = Program::start(pool, "exec sleep 1000").await;
        drop((old.reaper, new.reaper));
        pools.close();
        for process in [old.pid, old.reaper_pid, new.pid] {
            wait_until(|| !is_alive(process));
        }
        println!("ok: closing_ends_a_stopped_reaper_whose_supervisor_was_killed");
    }

    fn new_pools() -> ReaperPools {
        ReaperPools::new(Path::new("/proc/self/exe"), "killed-supervisor-test").unwrap()
    }

    /// Starts a child that leads its own session, as daemons do.
    fn start_daemon() -> Child {
        Command::new("setsid")
            .args(["sleep", "1000"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// A program that runs under a reaper.
    struct Program {
        reaper: Arc<ReaperClient>,
        reaper_pid: Pid,
        pid: Pid,
    }

    impl Program {
        async fn start(pool: &ReaperPool, script: &str) -> Self {
            let request = request(script);
            let reaper = pool.take_reaper(&request).unwrap();
            let null = File::options().read(true).write(true).open("/dev/null");
            let null = null.unwrap();
            let request = ReaperRequest::Start(Box::new(request)).encode();
            reaper.send(&request, &[null.as_fd(); 4]).await.unwrap();
            let ReaperReply::Started(number) = reaper.receive_reply().await.unwrap() else {
                panic!("it didn't start");
            };
            let pid = Pid::from_raw(number).unwrap();
            Self {
                reaper,
                reaper_pid: parent(pid),
                pid,
            }
        }

        /// Kills the supervisor of the program's reaper, and waits until it is dead.
        fn kill_supervisor(&self) {
            let supervisor = parent(self.reaper_pid);
            kill_process(supervisor, Signal::KILL).unwrap();
            wait_until(|| !is_alive(supervisor));
        }
    }

    fn request(script: &str) -> SpawnRequest {
        SpawnRequest {
            path: c"/bin/sh".to_owned(),
            argv: [c"sh", c"-c"]
                .map(ToOwned::to_owned)
                .into_iter()
                .chain([std::ffi::CString::new(script).unwrap()])
                .collect(),
            env: vec![c"PATH=/usr/bin:/bin".to_owned()],
            cwd: c"/".to_owned(),
            limits: ResourceLimits::default(),
            sandbox: None,
            host_exit_grace: Duration::ZERO,
            reports_pid: true,
        }
    }

    /// Returns the state and the parent of a process, or `None` if it is gone.
    fn read_stat(process: Pid) -> Option<(String, i32)> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
    }

    fn parent(process: Pid) -> Pid {
        Pid::from_raw(read_stat(process).unwrap().1).unwrap()
    }

    fn is_alive(process: Pid) -> bool {
        read_stat(process).is_some_and(|(state, _)| state != "Z" && state != "X")
    }

    fn living_children() -> Vec<Pid> {
        let lists = fs::read_dir("/proc/self/task").unwrap().flatten();
        let lists =
            lists.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        let lists: Vec<String> = lists.collect();
        let pids = lists.iter().flat_map(|list| list.split_ascii_whitespace());
        let pids = pids.map(|number| pid(number.parse().unwrap()));
        pids.filter(|child| is_alive(*child)).collect()
    }

    fn pid(number: u32) -> Pid {
        Pid::from_raw(number.cast_signed()).unwrap()
    }

    fn wait_until(condition: impl Fn() -> bool) {
        let started_at = Instant::now();
        while !condition() {
            assert!(started_at.elapsed() < PATIENCE);
            sleep(Duration::from_millis(5));
        }
    }
}
