//! `collect`, which is started again when it was killed, and what it has written.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::faults::expected::CollectedRun;
use crate::faults::fault_run::{QUEUE, kill};
use crate::support::CliSandbox;

/// How often it is counted what was collected.
const COUNT_INTERVAL: Duration = Duration::from_millis(300);

pub struct Collections {
    collecting: Option<Child>,
    runs: usize,
    collected_turns: usize,
    counted_at: Instant,
}

impl Collections {
    pub fn new() -> Self {
        Self {
            collecting: None,
            runs: 0,
            collected_turns: 0,
            counted_at: Instant::now(),
        }
    }

    /// Starts `collect` if it doesn't run.
    pub fn keep_going(&mut self, sandbox: &CliSandbox) {
        if let Some(collecting) = &mut self.collecting
            && collecting.try_wait().unwrap().is_none()
        {
            return;
        }
        let output = File::create(sandbox.path().join(file_name(self.runs))).unwrap();
        self.runs += 1;
        let mut command = sandbox.command(&["queue", "collect", QUEUE]);
        command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(Stdio::null());
        self.collecting = Some(command.spawn().unwrap());
    }

    /// Returns how many turns are known to be collected. Earlier runs write no more, so the last two are enough.
    pub fn count_turns(&mut self, sandbox: &CliSandbox) -> usize {
        if self.counted_at.elapsed() < COUNT_INTERVAL {
            return self.collected_turns;
        }
        for run in self.runs.saturating_sub(2)..self.runs {
            let collected = read_run(sandbox, run);
            let line = collected.lines.last().map_or("", |line| line);
            let first_call = line.split("\"tool_use_id\":\"t").nth(1);
            let turn = first_call.and_then(|call| call.split('c').next());
            let turn = turn.and_then(|turn| turn.parse::<usize>().ok());
            let count = turn.map_or(0, |turn| turn + 1);
            self.collected_turns = self.collected_turns.max(count);
        }
        self.counted_at = Instant::now();
        self.collected_turns
    }

    /// Returns what each run has written so far.
    pub fn read(&self, sandbox: &CliSandbox) -> Vec<CollectedRun> {
        (0..self.runs).map(|run| read_run(sandbox, run)).collect()
    }

    /// Kills `collect`. Returns whether it ran.
    pub fn kill(&mut self) -> bool {
        kill(&mut self.collecting)
    }
}

impl Drop for Collections {
    fn drop(&mut self) {
        self.kill();
    }
}

fn file_name(run: usize) -> String {
    format!("collected{run}")
}

/// Reads whole lines.
fn read_run(sandbox: &CliSandbox, run: usize) -> CollectedRun {
    let text = fs::read_to_string(sandbox.path().join(file_name(run))).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    CollectedRun {
        lines: whole.lines().map(str::to_owned).collect(),
    }
}
