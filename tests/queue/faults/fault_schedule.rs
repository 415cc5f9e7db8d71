//! Which faults happen when: chance, from a seed.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use crate::faults::link::LinkState;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A worker is killed.
    KillWorker,
    /// The link of a worker is cut, and it is killed before anything else of it arrives.
    CutAndKillWorker,
    /// A worker is stopped for this time, which is longer than its lease.
    StopWorker(Duration),
    /// What servers send to a worker is held, the worker is stopped for this time, and finds it all when it is continued.
    HoldAndStopWorker(Duration),
    /// The link of a worker does this for this time.
    DisturbLink(LinkState, Duration),
    /// A server is killed, and started again after this time.
    RestartServer(Duration),
    KillCollect,
    KillSubmit,
}

/// How many faults happened while calls ran.
#[derive(Debug, Default, Clone, Copy)]
pub struct FaultCounts {
    pub kills: usize,
    pub stops: usize,
    pub links: usize,
    pub server_restarts: usize,
    pub collect_kills: usize,
    pub submit_kills: usize,
}

impl fmt::Display for FaultCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "while calls ran, {} workers were killed, {} stopped for longer than their lease, {} links cut or held, {} servers killed and started again; {} `collect` and {} `submit` were killed",
            self.kills,
            self.stops,
            self.links,
            self.server_restarts,
            self.collect_kills,
            self.submit_kills
        )
    }
}

pub struct FaultSchedule {
    random: Rng,
}

impl FaultSchedule {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
        }
    }

    /// Returns a number below `end`.
    pub fn pick(&mut self, end: usize) -> usize {
        self.random.usize(..end)
    }

    /// Returns how long it is to the next fault.
    pub fn pause(&mut self) -> Duration {
        Duration::from_millis(self.random.u64(100..600))
    }

    pub fn next(&mut self) -> Fault {
        match self.random.u32(..100) {
            0..44 => Fault::KillWorker,
            44..50 => Fault::CutAndKillWorker,
            50..61 => Fault::StopWorker(self.millis(1300, 3000)),
            // Longer than the lease, and shorter than a worker waits for a confirmation.
            61..72 => Fault::HoldAndStopWorker(self.millis(1400, 1700)),
            72..78 => Fault::DisturbLink(LinkState::Held, self.millis(100, 3000)),
            78..83 => Fault::DisturbLink(LinkState::HeldFromServers, self.millis(1200, 1950)),
            83..88 => Fault::DisturbLink(LinkState::Cut, self.millis(100, 3000)),
            88..92 => Fault::RestartServer(self.millis(200, 4000)),
            92..95 => Fault::KillCollect,
            _ => Fault::KillSubmit,
        }
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.random.u64(from..to))
    }
}
