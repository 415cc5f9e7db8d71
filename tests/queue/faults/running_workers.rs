//! The workers of a run: each has a link of its own, and is started again when it was killed.

use std::fs::OpenOptions;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::faults::cluster::REPLICAS;
use crate::faults::link::Link;
use crate::support::CliSandbox;

/// After this time without a sign of life, another worker gets the turn.
pub const ACK_WAIT: &str = "1s";
/// How often a turn is delivered before no worker runs it anymore.
const MAX_DELIVERIES: &str = "100";

pub struct RunningWorkers {
    workers: Vec<RunningWorker>,
}

pub struct RunningWorker {
    pub link: Link,
    child: Option<Child>,
    is_stopped: bool,
    /// How often it was started. Its calls know it, so that calls of a killed worker count no more.
    starts: usize,
}

impl RunningWorkers {
    pub fn new(links: Vec<Link>) -> Self {
        let workers = links.into_iter().map(|link| RunningWorker {
            link,
            child: None,
            is_stopped: false,
            starts: 0,
        });
        Self {
            workers: workers.collect(),
        }
    }

    pub fn len(&self) -> usize {
        self.workers.len()
    }

    pub fn link(&self, number: usize) -> &Link {
        &self.workers[number].link
    }

    /// Starts the workers that have ended.
    pub fn start_missing(&mut self, sandbox: &CliSandbox, queue: &str) {
        for (number, worker) in self.workers.iter_mut().enumerate() {
            let has_ended = |child: &mut Child| child.try_wait().unwrap().is_some();
            if worker.child.as_mut().is_some_and(|child| !has_ended(child)) {
                continue;
            }
            worker.starts += 1;
            let name = worker_name(number, worker.starts);
            let log = sandbox.path().join(format!("worker{number}.log"));
            let log = OpenOptions::new()
                .create(true)
                .append(true)
                .open(log)
                .unwrap();
            let flags = ["--ack-wait", ACK_WAIT, "--max-deliveries", MAX_DELIVERIES];
            let mut command = sandbox.command(&["queue", "work", queue, "--replicas", REPLICAS]);
            command
                .args(flags)
                .env("NATS_URL", worker.link.urls())
                .env("WORKER", name)
                .stdin(std::process::Stdio::null())
                .stderr(log);
            worker.child = Some(command.spawn().unwrap());
            worker.is_stopped = false;
        }
    }

    /// Returns whether a call of this worker runs, by what calls have written down.
    pub fn has_running_call(&self, number: usize, effects: &str) -> bool {
        let name = worker_name(number, self.workers[number].starts);
        let count = |what: &str| {
            let is_own =
                |line: &&str| line.starts_with(what) && line.split(' ').nth(2) == Some(&name);
            effects.lines().filter(is_own).count()
        };
        count("start ") > count("end ")
    }

    pub fn is_stopped(&self, number: usize) -> bool {
        self.workers[number].is_stopped
    }

    pub fn stop(&mut self, number: usize) {
        self.workers[number].is_stopped = true;
        self.signal(number, Signal::STOP);
    }

    pub fn go_on(&mut self, number: usize) {
        self.workers[number].is_stopped = false;
        self.signal(number, Signal::CONT);
    }

    /// Kills a worker, also one that is stopped.
    pub fn kill(&mut self, number: usize) {
        let worker = &mut self.workers[number];
        if let Some(mut child) = worker.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        worker.is_stopped = false;
    }

    fn signal(&self, number: usize, signal: Signal) {
        let Some(child) = &self.workers[number].child else {
            return;
        };
        // It isn't waited for elsewhere, so its id is still its own.
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let _ = kill_process(pid, signal);
    }
}

impl Drop for RunningWorkers {
    fn drop(&mut self) {
        for number in 0..self.workers.len() {
            self.kill(number);
        }
    }
}

fn worker_name(number: usize, start: usize) -> String {
    format!("{number}.{start}")
}
