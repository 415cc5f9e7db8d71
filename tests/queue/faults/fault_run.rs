//! A queue with its servers, workers, submissions and collections, while faults happen to all of them.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::faults::cluster::Cluster;
use crate::faults::collections::Collections;
use crate::faults::expected::History;
use crate::faults::fault_schedule::{Fault, FaultCounts, FaultSchedule};
use crate::faults::link::{Link, LinkState};
use crate::faults::running_workers::RunningWorkers;
use crate::faults::submissions::Submissions;
use crate::faults::told_doubts::{read_logs_of_doubts, told_doubts};
use crate::support::CliSandbox;
use crate::support::waiting::wait_until;

pub const QUEUE: &str = "faults";
const WORKERS: usize = 4;
/// How many turns may be without a collected answer.
const OPEN_TURNS: usize = 30;
/// How long nothing new may be collected once no more faults happen. A busy machine takes its time.
const PATIENCE: Duration = Duration::from_mins(4);
const TICK: Duration = Duration::from_millis(20);

/// Each call writes down when it starts, who runs it, and when it ends.
const TOOLS: &str = r#"
version: 1
defaults: {timeout: 90s}
tools:
  write:
    input_schema: &input {type: object, properties: {item: {type: string}, time: {type: number}}, required: [item, time]}
    effect: write
    command: &work
      argv: [sh, -c, 'echo "start $ITEM $WORKER $(date +%s%N)" >> effects; sleep "$TIME"; echo "end $ITEM $WORKER" >> effects; echo "did $ITEM"']
      env: {ITEM: "{item}", TIME: "{time}"}
      pass_env: [WORKER]
  read: {input_schema: *input, effect: read, command: *work}
"#;

/// What is to be undone, and when.
struct Repair {
    due: Instant,
    kind: RepairKind,
}

#[derive(Clone, Copy)]
enum RepairKind {
    OpenLink(usize),
    GoOn(usize),
    StartServer(usize),
}

pub struct FaultRun {
    schedule: FaultSchedule,
    counts: FaultCounts,
    repairs: Vec<Repair>,
    submissions: Submissions,
    collections: Collections,
    // Workers end before their servers, and everything before its files are removed.
    workers: RunningWorkers,
    cluster: Cluster,
    sandbox: CliSandbox,
}

impl FaultRun {
    /// Returns `None` where there is no nats-server.
    pub fn begin(seed: u64) -> Option<Self> {
        let cluster = Cluster::start()?;
        let sandbox = CliSandbox::new()
            .tools(TOOLS)
            .env("NATS_URL", &cluster.urls());
        let links = (0..WORKERS).map(|_| Link::open(&cluster.ports()));
        let workers = RunningWorkers::new(links.collect());
        let mut run = Self {
            schedule: FaultSchedule::new(seed),
            counts: FaultCounts::default(),
            repairs: Vec::new(),
            submissions: Submissions::new(),
            collections: Collections::new(),
            workers,
            cluster,
            sandbox,
        };
        wait_until("the servers have a leader", || {
            thread::sleep(Duration::from_millis(200));
            run.submissions.keep_going(&run.sandbox, true);
            run.submissions.has_begun()
        });
        Some(run)
    }

    pub fn fault_counts(&self) -> FaultCounts {
        self.counts
    }

    /// Causes faults for this time.
    pub fn cause_faults(&mut self, time: Duration) {
        let end = Instant::now() + time;
        let mut next_fault = Instant::now();
        while Instant::now() < end {
            self.keep_going();
            if Instant::now() >= next_fault && self.cause_fault() {
                next_fault = Instant::now() + self.schedule.pause();
            }
            thread::sleep(TICK);
        }
    }

    /// Starts again what has ended, and undoes what is due.
    fn keep_going(&mut self) {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.repairs)
            .into_iter()
            .partition(|repair| repair.due <= now);
        self.repairs = later;
        let due: Vec<Repair> = due;
        for repair in due {
            self.repair(repair.kind);
        }
        self.workers.start_missing(&self.sandbox, QUEUE);
        let collected = self.collections.count_turns(&self.sandbox);
        let wants_more = self.submissions.turns.len() < collected + OPEN_TURNS;
        self.submissions.keep_going(&self.sandbox, wants_more);
        self.collections.keep_going(&self.sandbox);
    }

    fn repair(&mut self, kind: RepairKind) {
        match kind {
            RepairKind::OpenLink(number) => self.workers.link(number).set(LinkState::Open),
            RepairKind::GoOn(number) if self.workers.is_stopped(number) => {
                self.counts.stops += 1;
                self.workers.go_on(number);
            }
            RepairKind::GoOn(_) => {}
            RepairKind::StartServer(number) => self.cluster.start_server(number),
        }
    }

    /// Causes a fault if a call runs that it would hit.
    fn cause_fault(&mut self) -> bool {
        let effects = self.effects();
        let busy: Vec<usize> = (0..self.workers.len())
            .filter(|number| {
                !self.workers.is_stopped(*number)
                    && self.workers.has_running_call(*number, &effects)
            })
            .collect();
        if busy.is_empty() {
            return false;
        }
        let worker = busy[self.schedule.pick(busy.len())];
        let later = |time| Instant::now() + time;
        match self.schedule.next() {
            Fault::KillWorker => {
                self.workers.kill(worker);
                self.counts.kills += 1;
            }
            Fault::CutAndKillWorker => {
                self.workers.link(worker).set(LinkState::Held);
                // Long enough for the next call to be about to start.
                thread::sleep(Duration::from_millis(400));
                self.workers.kill(worker);
                self.workers.link(worker).set(LinkState::Cut);
                self.counts.kills += 1;
                let kind = RepairKind::OpenLink(worker);
                self.repairs.push(Repair {
                    due: later(Duration::from_millis(300)),
                    kind,
                });
            }
            Fault::StopWorker(time) => {
                self.workers.stop(worker);
                let kind = RepairKind::GoOn(worker);
                self.repairs.push(Repair {
                    due: later(time),
                    kind,
                });
            }
            Fault::HoldAndStopWorker(time) => {
                self.workers.link(worker).set(LinkState::HeldFromServers);
                // Long enough for the next call to be about to start.
                thread::sleep(Duration::from_millis(250));
                self.workers.stop(worker);
                self.workers.link(worker).set(LinkState::Open);
                let kind = RepairKind::GoOn(worker);
                self.repairs.push(Repair {
                    due: later(time),
                    kind,
                });
            }
            Fault::DisturbLink(state, time) => {
                self.workers.link(worker).set(state);
                self.counts.links += 1;
                let kind = RepairKind::OpenLink(worker);
                self.repairs.push(Repair {
                    due: later(time),
                    kind,
                });
            }
            Fault::RestartServer(time) => {
                let is_starting =
                    |repair: &Repair| matches!(repair.kind, RepairKind::StartServer(_));
                if self.repairs.iter().any(is_starting) {
                    return false;
                }
                let number = self.schedule.pick(self.cluster.len());
                self.cluster.kill_server(number);
                self.counts.server_restarts += 1;
                let kind = RepairKind::StartServer(number);
                self.repairs.push(Repair {
                    due: later(time),
                    kind,
                });
            }
            Fault::KillCollect => {
                self.counts.collect_kills += usize::from(self.collections.kill());
            }
            Fault::KillSubmit => {
                self.counts.submit_kills += usize::from(self.submissions.kill());
            }
        }
        true
    }

    /// Lets everything work again, waits until all is answered, and returns what was seen.
    pub fn finish(&mut self) -> History {
        let repairs = std::mem::take(&mut self.repairs);
        for repair in repairs {
            self.repair(repair.kind);
        }
        let (mut latest, mut collected_before) = (Instant::now(), 0);
        while latest.elapsed() < PATIENCE {
            let turns = self.submissions.turns.len();
            let collected = self.collections.count_turns(&self.sandbox);
            if collected > collected_before {
                (latest, collected_before) = (Instant::now(), collected);
            }
            if self.submissions.are_whole() && collected >= turns {
                break;
            }
            self.workers.start_missing(&self.sandbox, QUEUE);
            self.submissions.keep_going(&self.sandbox, false);
            self.collections.keep_going(&self.sandbox);
            thread::sleep(TICK);
        }
        self.submissions.kill();
        self.collections.kill();
        // What calls wrote down is read last, so that it has every call with an answer.
        let collected = self.collections.read(&self.sandbox);
        let logs_of_doubts = read_logs_of_doubts(&self.sandbox);
        History {
            turns: self.submissions.turns.clone(),
            effects: History::parse_effects(&self.effects()),
            lines_written: collected.iter().map(|run| run.lines.len()).sum(),
            logs_of_doubts,
            collected,
            doubts_told: told_doubts(&self.sandbox)
                .into_iter()
                .map(|(id, _)| id)
                .collect(),
        }
    }

    /// Returns what `queue status` says.
    pub fn status(&self) -> String {
        let mut command = self
            .sandbox
            .command(&["queue", "status", QUEUE, "--format", "json"]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    fn effects(&self) -> String {
        fs::read_to_string(self.path("effects")).unwrap_or_default()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.sandbox.path().join(name)
    }

    /// Copies the files to where they are kept, to be looked at: those of the calls and commands, the logs of calls in doubt, and what
    /// the servers have logged and stored.
    pub fn keep_files(&mut self, history: &History) -> PathBuf {
        let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("queue-faults-{}", std::process::id()));
        // Servers write until they end.
        self.cluster.kill_all();
        copy_dir(self.sandbox.path(), &kept);
        copy_dir(self.cluster.dir(), &kept.join("servers"));
        for (call, log) in &history.logs_of_doubts {
            fs::write(kept.join(format!("{call}.jsonl")), log).unwrap();
        }
        kept
    }
}

/// Copies a directory, with all that is in it, except for links.
fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        let copy = to.join(entry.file_name());
        if kind.is_dir() {
            copy_dir(&entry.path(), &copy);
        } else if kind.is_file() {
            fs::copy(entry.path(), copy).unwrap();
        }
    }
}

/// Kills a process, if there is one that runs.
pub fn kill(child: &mut Option<Child>) -> bool {
    let Some(mut child) = child.take() else {
        return false;
    };
    let was_running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    was_running
}
