//! The steps in which a session begins.

use std::mem;
use std::sync::Arc;

use crate::approval::build_approver;
use crate::call_setup::CallSetup;
use crate::context::CommandContext;
use crate::output::CommandError;
use crate::session::earlier_results::EarlierResults;
use crate::session::log_request::{self, LogRequest, OpenedLog};
use crate::session::log_subject::LogSubject;
use crate::session::resume_decisions::ResumeDecisions;
use crate::session::sinks::RunSinks;
use crate::settings::{LogTarget, SessionSettings};
use toolq_core::os::Clock;
use toolq_core::types::TraceContext;
use toolq_engine::{Approver, EngineSettings, LoggedResults};
use toolq_log::SessionLog;

/// What the steps depend on.
pub(super) struct SessionStart<'s> {
    pub(super) context: &'s CommandContext,
    pub(super) settings: &'s SessionSettings,
    pub(super) subject: LogSubject<'s>,
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

    /// Opens the session log, and reads from it what to resume.
    pub(super) fn open_log(&self) -> Result<(OpenedLog, ResumeDecisions), CommandError> {
        let request = self.log_request();
        let opened = log_request::begin_log(&request, &self.clock)?;
        let resume = ResumeDecisions::new(&opened, &request);
        Ok((opened, resume))
    }

    fn log_request(&self) -> LogRequest<'_> {
        LogRequest {
            settings: &self.settings.log,
            context: self.context,
            setup: self.setup,
            subject: self.subject,
            plan: self.settings.plan.as_ref(),
        }
    }

    /// Returns the settings of an engine that uses the log, whose kept results it takes.
    pub(super) fn engine_settings(&self, opened: &mut OpenedLog) -> EngineSettings {
        let kept_results = mem::take(&mut opened.kept_results);
        let uses_earlier_results = self.log_request().uses_earlier_results();
        let logged_results = uses_earlier_results.then(|| {
            let (root, mask) = (self.setup.tools.root.clone(), Arc::clone(&self.setup.mask));
            let results = EarlierResults::new(kept_results, root, mask);
            Arc::new(results) as Arc<dyn LoggedResults>
        });
        let log = opened.log.as_ref();
        EngineSettings {
            host_tools: self.settings.host_tools.clone(),
            budget_limits: self.settings.budgets,
            logged_results,
            ..self.setup.logged_engine_settings(log)
        }
    }

    /// Returns the trace that the calls belong to, if the session is traced.
    pub(super) fn trace(&self, task_id: &str, log: Option<&SessionLog>) -> Option<TraceContext> {
        let otlp = self.settings.otlp.as_ref()?;
        let session_id = log.map(SessionLog::session_id);
        let session_id = session_id.as_deref().unwrap_or(task_id);
        Some(TraceContext::new(task_id, session_id, otlp.parent.clone()))
    }

    /// Returns whether a new log is removed if no call was made: clients often only list the tools.
    pub(super) fn removes_unused_log(&self) -> bool {
        let has_new_file = self.settings.log.target == LogTarget::DefaultDirectory;
        has_new_file && matches!(self.subject, LogSubject::Host | LogSubject::Client)
    }
}
