//! Runs calls of tools that the process serves which embeds the engine.

mod runner;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use toolq_core::json::Input;
use toolq_core::types::{CallRef, Effect};

pub(crate) use runner::HostRunner;
pub use runner::text_of as text_of_host_content;

/// What serves the tools with `backing: host`.
pub trait HostTools: fmt::Debug + Send + Sync {
    /// Runs one call. Dropping the future means that the result is no longer needed: the call has timed out, or was
    /// canceled.
    fn run<'a>(&'a self, call: &'a HostCall) -> HostFuture<'a>;
}

/// The reply to come.
pub type HostFuture<'a> = Pin<Box<dyn Future<Output = HostReply> + Send + 'a>>;

/// A call of a host tool.
#[derive(Debug, Clone)]
pub struct HostCall {
    /// Which call it is.
    pub call: CallRef,
    /// What the tool does to the world.
    pub effect: Effect,
    /// The input, after defaults and coercion. It isn't masked.
    pub input: Input,
    /// Counted from 1.
    pub attempt: u32,
    /// The same for all attempts of the call, in every run.
    pub idempotency_key: Arc<str>,
    /// How long the attempt may take.
    pub timeout: Duration,
}

/// How the host replied to a call.
#[derive(Debug)]
pub enum HostReply {
    /// It ran.
    Done {
        /// A text or a list of content blocks; with `output: json`, any JSON. `None` is an empty text.
        content: Option<Box<RawValue>>,
        /// Whether the model receives it as an error.
        is_error: bool,
    },
    /// There will be no result.
    Lost {
        /// Whether the host may have seen the call.
        was_sent: bool,
        /// Why, without a period.
        why: String,
    },
}
