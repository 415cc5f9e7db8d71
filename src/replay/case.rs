use std::time::Duration;

use toolq_core::types::CallRef;

/// What became of one recorded call.
#[derive(Debug)]
pub struct Case<'c> {
    /// The recording, as it was named.
    pub file: &'c str,
    /// The call; its turn is counted within the recording.
    pub call: &'c CallRef,
    /// What was found.
    pub end: End,
    /// From its first start to its end; zero where it was not run.
    pub duration: Duration,
    /// Whether it was run.
    pub executed: bool,
}

/// What was found of a call.
#[derive(Debug)]
pub enum End {
    /// Today's tools accept it and its result is the recorded one.
    Matched,
    /// Today's tools accept it and its result was taken from the recording.
    Served,
    /// Nothing could be compared.
    Open(Open),
    /// It does not hold: one or more, in the order of the input or result.
    Differs(Vec<Difference>),
}

/// Why nothing was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// The recording has no result of it.
    NoResult,
    /// The replay was ended before.
    Ended,
}

/// One way in which a call does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs.
    pub kind: Kind,
    /// JSON pointer into the input (`schema`) or into the result; empty is the whole.
    pub path: String,
    /// JSON, secrets masked: what was recorded; of an input what the rule says.
    pub expected: Option<String>,
    /// JSON, secrets masked: what is there today; of an input the value.
    pub actual: Option<String>,
}

/// What can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Today's tools refuse the input.
    Schema,
    /// Today there is no such tool.
    UnknownTool,
    /// The result is another.
    Result,
    /// The recording has no result, and the call is not run.
    Missing,
}

impl Kind {
    /// The word of reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::UnknownTool => "unknown_tool",
            Self::Result => "result",
            Self::Missing => "missing",
        }
    }
}

/// What all recordings came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Recordings that were read.
    pub files: usize,
    /// Their turns, those without calls included.
    pub turns: usize,
    /// Their calls.
    pub calls: usize,
    /// Calls that were run.
    pub executed: usize,
    /// Calls whose result was taken from the recording.
    pub served: usize,
    /// Calls that hold, served ones included.
    pub matched: usize,
    /// Calls that don't.
    pub differing: usize,
    /// Results that were written into their recordings.
    pub updated: usize,
}

impl Totals {
    /// Counts a call.
    pub(super) fn count(&mut self, case: &Case<'_>) {
        self.calls += 1;
        self.executed += usize::from(case.executed);
        match case.end {
            End::Matched => self.matched += 1,
            End::Served => {
                self.served += 1;
                self.matched += 1;
            }
            End::Open(_) => {}
            End::Differs(_) => self.differing += 1,
        }
    }
}
