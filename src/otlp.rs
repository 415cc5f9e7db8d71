//! `--otlp`: where the calls of a run are sent as OpenTelemetry spans, and metrics of them. Without the feature `otlp`, the flag
//! only leads to an error.

use crate::args::OtlpFlags;
use crate::output::StderrWriter;
use toolq_core::os::Environment;
use toolq_core::types::Traceparent;

#[cfg(not(feature = "otlp"))]
pub(crate) use absent::OtlpSink;
#[cfg(feature = "otlp")]
pub(crate) use toolq_otlp::OtlpSink;

/// What `--otlp` and the environment say.
#[derive(Debug, Clone)]
pub(crate) struct OtlpSettings {
    /// The URL of the receiver, without the path of a signal. `None` is what the environment says.
    pub(crate) endpoint: Option<String>,
    /// The span within which toolq was started.
    pub(crate) parent: Option<Traceparent>,
    /// `TRACEPARENT` is set to something else.
    has_ill_formed_parent: bool,
    /// Inputs and results go into the spans.
    pub(crate) captures_content: bool,
}

impl OtlpSettings {
    /// Returns `None` without `--otlp`. `OTEL_SDK_DISABLED=true` overrides it.
    pub(crate) fn new(flags: &OtlpFlags, environment: &Environment) -> Option<Self> {
        let is_true = |name: &str| {
            let value = environment.get(name);
            value.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
        };
        let flag = flags.otlp.as_ref();
        let endpoint = flag.filter(|_| !is_true("OTEL_SDK_DISABLED"))?.clone();
        let traceparent = environment.get_os("TRACEPARENT");
        let traceparent = traceparent.filter(|value| !value.is_empty());
        let state = environment.get("TRACESTATE");
        let parent = traceparent
            .and_then(|value| value.to_str())
            .and_then(|value| Traceparent::parse(value, state.as_deref()));
        Some(Self {
            endpoint,
            has_ill_formed_parent: traceparent.is_some() && parent.is_none(),
            parent,
            captures_content: is_true("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
        })
    }
}

impl OtlpSettings {
    /// Warns that `TRACEPARENT` is ignored, so that the user knows why the spans aren't in the expected trace.
    pub(crate) fn warn_about_parent(&self, stderr: &StderrWriter) {
        if self.has_ill_formed_parent {
            stderr.print_warning(
                "TRACEPARENT is ignored: it isn't `00-`, 32 hexadecimal digits, `-`, 16 of them, `-` and two",
            );
        }
    }
}

#[cfg(not(feature = "otlp"))]
mod absent {
    //! What a toolq without the feature `otlp` has instead.

    use std::sync::Arc;

    use redact::Mask;
    use toolq_core::exit::{CommandError, Exit};
    use toolq_core::os::{Clock, Environment};
    use toolq_core::types::{EmitError, Event, EventSink, TraceContext};

    /// A sink that never exists, since this build has no support for OTLP.
    pub(crate) enum OtlpSink {}

    impl OtlpSink {
        /// # Errors
        /// Always.
        pub(crate) fn open(
            _: Option<&str>,
            _: bool,
            _: &Environment,
            _: &Arc<Mask>,
            _: &Clock,
        ) -> Result<Self, CommandError> {
            Err(
                CommandError::usage("this toolq was built without `otlp`; nothing ran").with_hint(
                    "packages of toolq have it; from source: `cargo install --locked --path . --features otlp`",
                ),
            )
        }

        pub(crate) fn begin(&mut self, _: TraceContext) {
            match *self {}
        }

        pub(crate) fn close(self, _: Exit) -> Option<String> {
            match self {}
        }
    }

    impl EventSink for OtlpSink {
        fn emit(&mut self, _: &[Event<'_>]) -> Result<(), EmitError> {
            match *self {}
        }
    }
}
