//! Run programs so that the whole process tree can be killed, no matter how it tries to escape.
//!
//! ```text
//! host ── control ──► supervisor ── forks ──► reaper ──► program ──► …
//!   └────────────── one socket each ─────────────┘
//! ```
//!
//! The *host* is your program. A *reaper* runs one program at a time (a *call*) and is the child subreaper
//! (`PR_SET_CHILD_SUBREAPER`) of everything that program starts. A process that leaves its group, its session and its
//! parent is reparented to the reaper, so it's always known which processes belong to which call. When the host exits,
//! for whatever reason, the kernel closes the sockets, and the reapers kill what they started. The *supervisor* forks
//! reapers, and cleans up after a reaper that was killed. Supervisor and reapers run the host's own executable, started
//! again with a hidden argument: call [`supervise`] first thing in `main`.
//!
//! Linux only. Elsewhere [`ReaperPools::new`] returns `None`.

#[cfg(target_os = "linux")]
mod descendants;
#[cfg(target_os = "linux")]
mod forked_child;
mod program;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod reaper;
#[cfg(target_os = "linux")]
mod reaper_pool;
mod sandbox;
#[cfg(target_os = "linux")]
mod signal_fd;
mod spawn;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod system_call_filter;
pub mod timing;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
pub use descendants::shows_own_pid_namespace;
#[cfg(target_os = "linux")]
pub use forked_child::raise_open_file_limit;
pub use program::{ChildDescriptors, ExceededLimit, ProgramExit, ResourceLimits, SpawnRequest};
#[cfg(target_os = "linux")]
pub use protocol::{ReaperReply, ReaperRequest};
#[cfg(target_os = "linux")]
pub use reaper_pool::{ReaperClient, ReaperPool, ReaperPools};
pub use sandbox::{NetworkAccess, PathAccess, ProgramSandbox, SandboxPath, missing_protections};
pub use spawn::{ignore_file_size_signal, spawn, unblock_signals, watch_for_exit};
#[cfg(target_os = "linux")]
pub use supervisor::{make_non_dumpable, supervise};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{
    ReaperPools, make_non_dumpable, raise_open_file_limit, shows_own_pid_namespace, supervise,
};
