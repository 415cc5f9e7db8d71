//! Settings that are inherited: a tool's own key takes precedence, then the first of `rules` that matches its name and has
//! the key, then the `defaults` of its server, then those of the file. Tables are layered key by key.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::context::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::calls::{check_max_parallel, resolve_start_limits};
use crate::tools_file::tables::limits::{
    LimitsFile, RetryFile, TimeoutForm, check_max_output, check_resource_limits, check_retry,
    check_timeout, layer_limits, layer_retries, layer_timeouts, resolve_retry, resolve_timeout,
};
use crate::tools_file::tables::sandbox::{SandboxForm, check_shared_sandbox, layer_sandboxes};
use crate::tools_file::tables::values::{RateText, SizeText};
use crate::tools_file::tables::when::{ApproveForm, resolve_approval};
use crate::types::{
    DEFAULT_MAX_OUTPUT, DEFAULT_MAX_SAVED, Effect, Leftovers, OnDoubt, OnFailure, OutputKind, Tool,
};

/// Declares the settings of a tool that can be inherited: this is their only list. Each has its type, and how a value is layered
/// over another one.
macro_rules! settings {
    ($($(#[$note:meta])* $key:ident: $value:ty => $merge:expr,)*) => {
        /// What a tool, a rule or `defaults` says about settings that can be inherited.
        #[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct Settings {
            $($(#[$note])* pub $key: Field<$value>,)*
        }

        impl Settings {
            /// Whether they set nothing.
            fn is_empty(&self) -> bool {
                [$(self.$key.is_missing(),)*].into_iter().all(|is_missing| is_missing)
            }

            /// Returns these settings, and those of `lower` for what they leave out.
            fn over(&self, lower: &Self) -> Self {
                Self {
                    $($key: self.$key.over(&lower.$key, $merge),)*
                }
            }
        }
    };
}

settings! {
    /// Whether calls start only after they are approved: `true`, `false`, `writes` (if the tool isn't `read`), or a schema
    /// of the inputs that need it. Default: false.
    approve: ApproveForm => first,
    /// Maximum number of calls of the tool that run at once. Default: as many as `concurrency` lets run.
    #[schemars(range(min = 1))]
    max_parallel: u32 => first,
    /// How often its calls and their retries start: `10/s`, `600/m` or `100/h`. Default: no limit.
    rate: RateText => first,
    /// Time limit of one attempt, or a table of time limits. Default: 30s.
    timeout: TimeoutForm => layer_timeouts,
    /// Format of the output: `text` (the default), `json`, or `content` blocks.
    output: OutputKind => first,
    /// Maximum size of the output that reaches the model. Default: 64KiB.
    max_output: SizeText => first,
    /// Maximum size of a truncated output that is saved next to the session log. Default: 64MiB.
    max_saved: SizeText => first,
    /// When to retry a failed attempt or, for an agent, a failed API request. Default: once, when rate limited.
    retry: RetryFile => layer_retries,
    /// What a failure does to the other calls of its turn. Default: `continue`.
    on_failure: OnFailure => first,
    /// What a call in doubt does to the later calls of its turn: `stop` (they don't run until it is resolved) or
    /// `continue`. Default: `stop`.
    on_doubt: OnDoubt => first,
    /// Number of consecutive failures after which calls of the tool are answered "paused". Default: 0 (never); 3 for
    /// calls that an agent makes.
    pause_after_failures: u32 => first,
    /// Whether to convert inputs that are invalid only because of scalar types (`"3"` for 3). Default: true.
    coerce: bool => first,
    /// What the programs of the tool can reach. Default: what the user who runs toolq can.
    sandbox: SandboxForm => layer_sandboxes,
}

/// What a rule or `defaults` says about settings, or several of them on top of each other.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Layer {
    /// What to do with processes that are still running after a command exits.
    pub leftovers: Field<Leftovers>,
    /// Resource limits of a command.
    pub limits: Field<LimitsFile>,
    /// What a tool has beside its `command`.
    #[serde(rename = "$settings")]
    #[schemars(flatten)]
    pub tool: Settings,
}

impl Layer {
    /// Whether it sets nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.leftovers.is_missing() && self.limits.is_missing() && self.tool.is_empty()
    }

    /// Returns this layer, and `lower` for what it leaves out.
    pub(crate) fn over(&self, lower: &Self) -> Self {
        Self {
            tool: self.tool.over(&lower.tool),
            leftovers: self.leftovers.or(&lower.leftovers),
            limits: self.limits.over(&lower.limits, layer_limits),
        }
    }
}

/// Layers values that hide each other as a whole.
fn first<T: Clone>(upper: &Spanned<T>, _: &Spanned<T>) -> T {
    upper.value.clone()
}

impl Layer {
    /// Reports values under which no call could run. They are checked once, where they are written, no matter how many tools
    /// inherit them.
    pub(crate) fn check(&self, diagnostics: &mut Diagnostics) {
        check_timeout(&self.tool.timeout, diagnostics);
        check_retry(&self.tool.retry, diagnostics);
        check_max_output(&self.tool.max_output, diagnostics);
        check_max_parallel(&self.tool.max_parallel, diagnostics);
    }

    /// Like [`check`](Self::check), for settings that aren't about one tool.
    pub(crate) fn check_shared(&self, diagnostics: &mut Diagnostics) {
        self.check(diagnostics);
        check_resource_limits(&self.limits, diagnostics);
        check_shared_sandbox(&self.tool.sandbox, diagnostics);
    }

    /// Returns a tool with these settings, and without anything else. `is_agent` is about its backing.
    pub(crate) fn resolve(&self, effect: Effect, is_agent: bool) -> Tool {
        Tool {
            effect,
            approve: resolve_approval(self.tool.approve.value(), effect),
            start_limits: resolve_start_limits(&self.tool.max_parallel, &self.tool.rate),
            timeout: resolve_timeout(&self.tool.timeout),
            output: self.tool.output.copied().unwrap_or_default(),
            max_output: self
                .tool
                .max_output
                .value()
                .map_or(DEFAULT_MAX_OUTPUT, |size| size.0),
            max_saved: self
                .tool
                .max_saved
                .value()
                .map_or(DEFAULT_MAX_SAVED, |size| size.0),
            // Requests to a model's API have no effect.
            retry: resolve_retry(&self.tool.retry, (!is_agent).then_some(effect)),
            on_failure: self.tool.on_failure.copied().unwrap_or_default(),
            on_doubt: self.tool.on_doubt.copied().unwrap_or_default(),
            pause_after_failures: self.tool.pause_after_failures.copied(),
            coerce: self.tool.coerce.copied().unwrap_or(true),
            ..Tool::default()
        }
    }
}
