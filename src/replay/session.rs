//! Recording after recording, turn after turn: each call is checked, run or served, and compared; what was found is told
//! to a report in the order of the calls.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::replay::case::{Case, Totals};
use crate::replay::compare::Renaming;
use crate::replay::policy;
use crate::replay::policy::Execute;
use crate::replay::reports::Report;
use crate::replay::result_collector::{Ears, Nobody};
use crate::replay::settings::Settings;
use crate::replay::update::Edit;
use redact::Mask;
use toolq_core::check::{Checker, unasked};
use toolq_core::transcript::{InputError, Recording};
use toolq_core::types::{Call, CallRef, Checked, Sink, Tools, Verdict};
use toolq_engine::Engine;

/// Why a recording could not be replayed to its end.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// It can't be read any more.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A report can't be written.
    #[error("the report can't be written: {0}")]
    Report(#[from] std::io::Error),
}

/// A replay of one recording after another.
pub struct Replay {
    pub(super) settings: Settings,
    pub(super) tools: Arc<Tools>,
    checker: Checker,
    engine: Engine,
    pub(super) mask: Arc<Mask>,
    totals: Totals,
    /// Turns of the recordings before this one.
    turns: usize,
    stopped: bool,
    /// A call did not run, or not to its end, because the run was ended.
    ended: bool,
}

/// What is at hand while one recording is replayed.
pub(crate) struct File<'f> {
    name: &'f str,
    pub(super) recording: &'f Recording,
    /// The last turn that asks for something: its calls need no results.
    pub(super) last: usize,
    pub(super) ids: Renaming,
    pub(super) edits: Vec<Edit>,
}

impl Replay {
    /// A replay that has done nothing yet.
    pub fn new(settings: Settings, tools: Arc<Tools>, engine: Engine, mask: Arc<Mask>) -> Self {
        Self {
            settings,
            checker: Checker::new(Arc::clone(&tools)),
            tools,
            engine,
            mask,
            totals: Totals::default(),
            turns: 0,
            stopped: false,
            ended: false,
        }
    }

    /// What was counted so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Notes that so many results stand in their recording now.
    pub fn updated(&mut self, results: usize) {
        self.totals.updated += results;
    }

    /// Whether somebody has to look: a call was not run or not to its end because the run was ended, as by a budget, or
    /// nobody knows whether it had its effect.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Whether it was ended, by a signal or a budget: not all was compared.
    pub fn is_ended(&self) -> bool {
        self.ended || self.is_halted()
    }

    fn is_halted(&self) -> bool {
        self.engine.control().halted().is_some()
    }

    /// Whether nothing more is to be replayed: it was ended, or found what it looked for.
    pub fn is_over(&self) -> bool {
        let found = self.settings.fail_fast && self.totals.differing > 0;
        found || self.is_halted()
    }

    /// Replays a recording, and gives what would make its results today's.
    ///
    /// # Errors
    /// It can't be read any more, or the report not be written.
    pub async fn recording(
        &mut self,
        name: &str,
        recording: &Recording,
        sink: &mut dyn Sink,
        report: &mut dyn Report,
    ) -> Result<Vec<Edit>, ReplayError> {
        self.totals.files += 1;
        let asks = |turn: &usize| recording.calls(*turn) > 0;
        let mut file = File {
            name,
            recording,
            last: (0..recording.len()).rev().find(asks).unwrap_or_default(),
            ids: Renaming::default(),
            edits: Vec::new(),
        };
        for turn in 0..recording.len() {
            self.turn(turn, &mut file, sink, report).await?;
            self.totals.turns += 1;
            if self.is_over() {
                break;
            }
        }
        self.turns += recording.len();
        Ok(file.edits)
    }

    async fn turn(
        &mut self,
        number: usize,
        file: &mut File<'_>,
        sink: &mut dyn Sink,
        report: &mut dyn Report,
    ) -> Result<(), ReplayError> {
        let turn = file.recording.turn(number, true)?;
        if turn.calls.is_empty() {
            return Ok(());
        }
        // Where nothing may run they are not asked either, and their schemas take any object.
        if self.settings.execute != Execute::None {
            let unasked = unasked(&self.tools, &turn.calls);
            self.engine.asking().ask(&unasked, sink).await;
        }
        let checked = self.checker.turn(turn.numbered(self.turns + number));
        let mut ears = Ears::new(sink);
        let run = self.to_run(number, file.recording, &checked);
        if !run.is_empty() {
            let number = self.turns + number;
            self.engine.turn(number, run, &mut ears, &mut Nobody).await;
        }
        for checked in &checked {
            let today = ears.heard.remove(&checked.call.position);
            self.ended |= today.as_ref().is_some_and(|today| today.ended);
            self.stopped |= self.ended || today.as_ref().is_some_and(|today| today.in_doubt);
            let call = self.named(&checked.call, number);
            let case = Case {
                file: file.name,
                executed: today.as_ref().is_some_and(|today| !today.ended),
                duration: today
                    .as_ref()
                    .map_or(Duration::ZERO, |today| today.duration),
                end: self.end(checked, today, number, file)?,
                call: &call,
            };
            self.totals.count(&case);
            report.case(&case)?;
        }
        Ok(())
    }

    /// A call as reports name it: its turn is that of its recording, and its words hold no secret.
    fn named(&self, call: &Call, turn: usize) -> CallRef {
        CallRef {
            turn,
            position: call.position,
            tool_use_id: self.mask.text(&call.id).into_owned(),
            tool_name: self.mask.text(&call.name).into_owned(),
            batch: None,
            within: None,
        }
    }

    /// The calls of a turn that are run.
    fn to_run(&self, turn: usize, recording: &Recording, checked: &[Checked]) -> Vec<Checked> {
        let is_run = |checked: &&Checked| match &checked.verdict {
            Verdict::Accepted(accepted) => {
                let skipped = recording.is_skipped(turn, checked.call.position);
                policy::is_run(accepted, skipped, self.settings.execute)
            }
            Verdict::Rejected(_) => false,
        };
        checked.iter().filter(is_run).cloned().collect()
    }
}
