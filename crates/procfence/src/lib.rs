//! Run a program so that its whole process tree can be ended, however it tries to get away.
//!
//! ```text
//! your program ── control ──► supervisor ── forks ──► reaper ──► program ──► …
//!   └────────────────── one socket each ─────────────────┘
//! ```
//!
//! A *reaper* starts one program at a time and is the child subreaper (`PR_SET_CHILD_SUBREAPER`) of everything that
//! program starts. A process that leaves its group, its session and its parent is reparented to the reaper, so it is
//! never a guess which processes belong to which call. When your program ends, in whatever way, the kernel closes the
//! sockets, and the reapers end what they started. The *supervisor* makes reapers, and cleans up after a reaper that was
//! killed. Supervisor and reapers are your own executable, started again with a hidden argument: call [`supervise`]
//! first in `main`.
//!
//! Linux only. Elsewhere [`Supervisor::new`] returns `None`.

mod exit;
mod limits;
mod spawn;

#[cfg(target_os = "linux")]
mod deadline;
#[cfg(target_os = "linux")]
mod descendants;
#[cfg(target_os = "linux")]
mod fd_passing;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod pool;
#[cfg(target_os = "linux")]
mod proc_tree;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod reaper;
#[cfg(target_os = "linux")]
mod reaper_call;
#[cfg(target_os = "linux")]
mod reaper_client;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use exit::{ExceededLimit, ProgramExit};
pub use limits::ResourceLimits;
#[cfg(target_os = "linux")]
pub use pool::{Keepers, Supervisor};
#[cfg(target_os = "linux")]
pub use protocol::{Reply, Request};
#[cfg(target_os = "linux")]
pub use reaper_client::Keeper;
pub use spawn::{Descriptors, Order, spawn, watch};
#[cfg(target_os = "linux")]
pub use supervise::supervise;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{Supervisor, supervise};
