//! `pause_after_failures`: how often each tool failed in a row, counted in call order over turns.
//!
//! Calls end in any order, but a row of failures must not depend on who was faster: what ends early waits here until
//! the calls of the same tool before it have ended too.

use std::collections::{HashMap, VecDeque};

use toolq_core::types::{Outcome, Tool};

/// The failures in a row of every tool that has a limit.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    rows: HashMap<String, Row>,
    /// The limit of tools that name none; 0 is never.
    default: u32,
}

/// The place of a call among the calls of its tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(usize);

/// What a call's end says about its tool.
#[derive(Debug, Clone, Copy)]
enum Sign {
    Success,
    Failure,
    /// The tool had no part in it: it was ended or never started.
    None,
}

#[derive(Debug, Default)]
struct Row {
    /// The place of the first call in `open`.
    first: usize,
    /// The calls from the first without an end on.
    open: VecDeque<Option<Sign>>,
    failures: u32,
    paused: bool,
}

impl Pauses {
    /// Those of an agent's tools, which are paused after three where they don't say it themselves.
    pub(crate) fn of_agent() -> Self {
        Self {
            default: 3,
            ..Self::default()
        }
    }

    fn limit(&self, tool: &Tool) -> u32 {
        tool.pause_after_failures.unwrap_or(self.default)
    }

    /// Takes the place of the next call of `tool`; none where the tool is never paused.
    pub(crate) fn place(&mut self, tool: &Tool) -> Option<Place> {
        if self.limit(tool) == 0 {
            return None;
        }
        let row = self.rows.entry(tool.name.clone()).or_default();
        row.open.push_back(None);
        Some(Place(row.first + row.open.len() - 1))
    }

    /// How many failures in a row have paused `tool`; none where it is not paused. Once paused it stays so.
    pub(crate) fn paused(&self, tool: &Tool) -> Option<u32> {
        let row = self.rows.get(&tool.name)?;
        row.paused.then_some(row.failures)
    }

    /// The call at `place` ended so.
    pub(crate) fn settle(&mut self, tool: &Tool, place: Option<Place>, outcome: &Outcome) {
        let limit = self.limit(tool);
        let (Some(place), Some(row)) = (place, self.rows.get_mut(&tool.name)) else {
            return;
        };
        if let Some(sign) = row.open.get_mut(place.0 - row.first) {
            *sign = Some(Sign::of(outcome));
        }
        row.count(limit);
    }
}

impl Row {
    /// Counts the calls whose predecessors have all ended.
    fn count(&mut self, limit: u32) {
        while let Some(Some(sign)) = self.open.front().copied() {
            self.open.pop_front();
            self.first += 1;
            match sign {
                _ if self.paused => {}
                Sign::Success => self.failures = 0,
                Sign::Failure => self.failures += 1,
                Sign::None => {}
            }
            self.paused = self.failures >= limit;
        }
    }
}

impl Sign {
    fn of(outcome: &Outcome) -> Self {
        if !outcome.is_error() {
            Self::Success
        } else if outcome.is_skipped() || outcome.is_given_up() {
            Self::None
        } else {
            Self::Failure
        }
    }
}
