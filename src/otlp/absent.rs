//! What a toolq without the feature `otlp` has instead.

use std::sync::Arc;

use crate::output::{CommandError, Exit};
use redact::Mask;
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
