//! What a call wrote, and how that was captured.

use std::path::PathBuf;
use std::time::Duration;

/// What a call that failed or was stopped wrote until then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallOutput {
    /// The output of a program, the body of a response, or the last text of an agent's model, shortened if long.
    pub text: String,
    /// The end of a program's standard error. Empty for a request or an agent.
    pub stderr: String,
    /// Byte counts of the text, and the file that holds it.
    pub captured: CaptureStats,
}

/// How an output was captured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureStats {
    /// Bytes received.
    pub total_bytes: u64,
    /// Bytes left out in the middle, or 0 if the text is complete.
    pub cut_bytes: u64,
    /// Byte offset in the text where they were left out.
    pub cut_offset: usize,
    /// The file that holds the whole output (up to `max_saved`), if the text was cut.
    pub saved_path: Option<Box<PathBuf>>,
    /// The files that hold what a server answered and isn't text.
    pub attachments: Box<[PathBuf]>,
    /// Whether invalid UTF-8 was replaced by U+FFFD.
    pub lossy: bool,
    /// Number of processes that the program left running and that were killed.
    pub killed_leftovers: u32,
    /// Whether a process that the program left was still printing when it was killed, so that the output ends early.
    pub was_printing: bool,
    /// The earlier call whose result this is, if the call itself didn't run.
    pub cached: Option<Box<CacheHit>>,
}

/// Where a result from the cache comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheHit {
    /// How long ago the result was taken.
    pub age: Duration,
    /// The id of the call that ran.
    pub tool_use_id: String,
}
