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

mod exit;
mod limits;
mod sandbox;
mod spawn;

#[cfg(target_os = "linux")]
mod descendants;
#[cfg(target_os = "linux")]
mod fd_passing;
#[cfg(target_os = "linux")]
mod fork_spawn;
#[cfg(target_os = "linux")]
mod forked_child;
#[cfg(target_os = "linux")]
mod inherited_descriptors;
#[cfg(target_os = "linux")]
mod open_files;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod pool_supervisors;
mod posix_spawn;
#[cfg(target_os = "linux")]
mod proc_tree;
#[cfg(target_os = "linux")]
mod program_exit;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod reaper;
#[cfg(target_os = "linux")]
mod reaper_call;
#[cfg(target_os = "linux")]
mod reaper_client;
#[cfg(target_os = "linux")]
mod reaper_pool;
#[cfg(target_os = "linux")]
mod reaper_supervisor;
#[cfg(target_os = "linux")]
mod reaper_termination;
#[cfg(target_os = "linux")]
mod reexec;
#[cfg(target_os = "linux")]
mod signal_fd;
mod signal_setup;
#[cfg(target_os = "linux")]
mod supervisor_client;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod system_call_filter;
pub mod timing;
#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use exit::{ExceededLimit, ProgramExit};
pub use limits::ResourceLimits;
#[cfg(target_os = "linux")]
pub use open_files::raise_open_file_limit;
#[cfg(target_os = "linux")]
pub use proc_tree::shows_own_pid_namespace;
#[cfg(target_os = "linux")]
pub use protocol::{ReaperReply, ReaperRequest};
#[cfg(target_os = "linux")]
pub use reaper_client::ReaperClient;
#[cfg(target_os = "linux")]
pub use reaper_pool::{ReaperPool, ReaperPools};
#[cfg(target_os = "linux")]
pub use reexec::{make_non_dumpable, supervise};
pub use sandbox::{NetworkAccess, PathAccess, ProgramSandbox, SandboxPath, missing_protections};
pub use signal_setup::{ignore_file_size_signal, unblock_signals};
pub use spawn::{ChildDescriptors, SpawnRequest, spawn, watch_for_exit};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{
    ReaperPools, make_non_dumpable, raise_open_file_limit, shows_own_pid_namespace, supervise,
};
