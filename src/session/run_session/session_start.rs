//! The steps in which a session begins.

use std::sync::Arc;

use crate::approval::build_approver;
use crate::call_setup::CallSetup;
use crate::context::CommandContext;
use crate::output::CommandError;
use crate::session::run_session::CallSource;
use crate::session::sinks::RunSinks;
use crate::settings::{LogTarget, SessionSettings};
use toolq_core::os::Clock;
use toolq_core::types::TraceContext;
use toolq_engine::{Approver, EngineSettings};
use toolq_log::memory::MemoryUse;
use toolq_log::{LockedLog, SessionHeader, SessionLog};

/// What the steps depend on.
pub(super) struct SessionStart<'s> {
    pub(super) context: &'s CommandContext,
    pub(super) settings: &'s SessionSettings,
    pub(super) source: CallSource,
    pub(super) setup: &'s CallSetup,
    pub(super) clock: Clock,
}

impl SessionStart<'_> {
    /// Opens the sinks, except for the session log.
    pub(super) fn open_sinks(&self) -> Result<RunSinks, CommandError> {
        if let Some(otlp) = &self.settings.otlp {
            otlp.warn_about_parent(&self.context.stderr);
        }
        RunSinks::new(self.settings, self.context, self.setup, self.clock.clone())
    }

    /// Builds what decides about approvals. It may ask on the screen of `sinks`.
    pub(super) fn build_approver(
        &self,
        sinks: &RunSinks,
    ) -> Result<Option<Approver>, CommandError> {
        build_approver(
            &self.settings.approval,
            self.settings.plan.as_ref(),
            &self.setup.mask,
            sinks.screen(),
            &self.context.environment,
        )
    }

    /// Opens the session log and writes that the session has begun. `None` with `--no-log`.
    pub(super) fn open_log(&self) -> Result<Option<SessionLog>, CommandError> {
        let (context, clock) = (self.context, &self.clock);
        let target = &self.settings.log.target;
        let log = match target {
            LogTarget::Disabled => return Ok(None),
            LogTarget::File(path) => LockedLog::open(path)?,
            LogTarget::DefaultDirectory => {
                let path = toolq_log::default_log_path(&context.environment, clock)?;
                LockedLog::open_default(&path)?
            }
        };
        let Some(place) = target.memory(&context.environment)? else {
            return Ok(None);
        };
        if let Some(warning) = log.durability_warning() {
            context.stderr.print_warning(&warning);
        }
        let header = SessionHeader {
            plan: self.settings.plan.as_ref().map(|plan| plan.id().to_owned()),
            ..self.setup.session_header(&context.tools_path)
        };
        let usage = MemoryUse {
            remembered: self.source.remembered(),
            again: self.settings.log.again.clone(),
        };
        let mask = Arc::clone(&self.setup.mask);
        let log = log.begin_session(&header, (place, usage), mask, clock.clone())?;
        for recovered in log.recovered() {
            context.stderr.print_note(&recovered.message(log.path()));
        }
        Ok(Some(log))
    }

    /// Returns the settings of an engine that uses the log.
    pub(super) fn engine_settings(&self, log: Option<&SessionLog>) -> EngineSettings {
        EngineSettings {
            host_tools: self.settings.host_tools.clone(),
            budget_limits: self.settings.budgets,
            ..self.setup.logged_engine_settings(log)
        }
    }

    /// Returns the trace that the calls of this session belong to, if it is traced.
    pub(super) fn trace(&self, session_id: &str) -> Option<TraceContext> {
        let otlp = self.settings.otlp.as_ref()?;
        Some(TraceContext::new(
            session_id,
            session_id,
            otlp.parent.clone(),
        ))
    }

    /// Returns whether a new log is removed if no call was made: clients often only list the tools.
    pub(super) fn removes_unused_log(&self) -> bool {
        let has_new_file = self.settings.log.target == LogTarget::DefaultDirectory;
        has_new_file && matches!(self.source, CallSource::Host | CallSource::Client)
    }
}
