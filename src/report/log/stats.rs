use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Durations;
use super::durations::Sample;
use crate::record::{Damage, Kind, Record};

/// How calls went, by tool, over as many logs as are read. Keeps a number for each call that ran.
#[derive(Debug, Default)]
pub struct Stats {
    tools: BTreeMap<Box<str>, Tally>,
    /// The tools of calls that were started and have no end yet, by their `tool_call`.
    running: HashMap<Uuid, Box<str>>,
}

/// The calls of one tool.
#[derive(Debug, Default)]
struct Tally {
    counts: Counts,
    took: Sample,
}

/// What became of calls. Each is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Counts {
    successes: u64,
    failures: u64,
    in_doubt: u64,
    unfinished: u64,
    skipped: u64,
    rejected: u64,
}

/// A tool's calls in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolStats {
    /// The name that was asked for; `None` for all tools together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Calls that were started, however often: those of the next four.
    pub runs: u64,
    /// They ran and answered.
    pub successes: u64,
    /// They ran, and the model was told of an error.
    pub failures: u64,
    /// They may have had their effect.
    pub in_doubt: u64,
    /// The log has their start and not their end: their run was killed, or goes on.
    pub unfinished: u64,
    /// They were answered, but never started: a call before them failed, the run ended.
    pub skipped: u64,
    /// They could not run: an unknown tool, an invalid input.
    pub rejected: u64,
    /// Of those that ended, from the first start to the end.
    #[serde(flatten)]
    pub durations: Durations,
}

#[derive(Deserialize)]
struct StartFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct EndFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    is_error: bool,
    duration_ms: u64,
    attempts: u32,
}

impl Stats {
    /// Takes the next record of a log.
    ///
    /// # Errors
    /// Its metadata is not that of its type.
    pub fn take(&mut self, record: &Record) -> Result<(), Damage> {
        match &record.kind {
            Kind::ToolStart => {
                let StartFields { tool_name } = record.metadata()?;
                if let Some(call) = record.parent {
                    self.running.insert(call, tool_name.into());
                }
            }
            kind if kind.ends_call() => self.end(record)?,
            _ => {}
        }
        Ok(())
    }

    /// A log has no more records.
    pub fn end_of_log(&mut self) {
        for (_, tool) in std::mem::take(&mut self.running) {
            self.tally(&tool).counts.unfinished += 1;
        }
    }

    fn end(&mut self, record: &Record) -> Result<(), Damage> {
        let end: EndFields<'_> = record.metadata()?;
        if let Some(call) = record.parent {
            self.running.remove(&call);
        }
        let Tally { counts, took } = self.tally(&end.tool_name);
        let counted = match record.kind {
            Kind::ToolSkipped => &mut counts.skipped,
            Kind::ToolInDoubt => &mut counts.in_doubt,
            _ if end.attempts == 0 => &mut counts.rejected,
            _ if end.is_error => &mut counts.failures,
            _ => &mut counts.successes,
        };
        *counted += 1;
        if end.attempts > 0 {
            took.push(end.duration_ms);
        }
        Ok(())
    }

    fn tally(&mut self, tool: &str) -> &mut Tally {
        // Most tools are there already, and need no name of their own.
        if !self.tools.contains_key(tool) {
            self.tools.insert(tool.into(), Tally::default());
        }
        self.tools.entry(tool.into()).or_default()
    }

    /// Each tool by name.
    pub fn tools(&self) -> impl Iterator<Item = ToolStats> {
        let tools = self.tools.iter();
        tools.map(|(name, tally)| tally.stats(Some(name)))
    }

    /// All tools together.
    pub fn total(&self) -> ToolStats {
        let mut total = Tally::default();
        for tally in self.tools.values() {
            total.add(tally);
        }
        total.stats(None)
    }

    /// `{"tools":[…],"total":{…}}` on one line.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Json {
            tools: Vec<ToolStats>,
            total: ToolStats,
        }
        let json = Json {
            tools: self.tools().collect(),
            total: self.total(),
        };
        // Texts and numbers: there is nothing in it that JSON has no form for.
        serde_json::to_string(&json).unwrap_or_default()
    }
}

impl Tally {
    fn add(&mut self, other: &Self) {
        let (sum, counts) = (&mut self.counts, &other.counts);
        sum.successes += counts.successes;
        sum.failures += counts.failures;
        sum.in_doubt += counts.in_doubt;
        sum.unfinished += counts.unfinished;
        sum.skipped += counts.skipped;
        sum.rejected += counts.rejected;
        self.took.extend(&other.took);
    }

    fn stats(&self, name: Option<&str>) -> ToolStats {
        let Counts {
            successes,
            failures,
            in_doubt,
            unfinished,
            skipped,
            rejected,
        } = self.counts;
        ToolStats {
            tool_name: name.map(str::to_owned),
            runs: successes + failures + in_doubt + unfinished,
            successes,
            failures,
            in_doubt,
            unfinished,
            skipped,
            rejected,
            durations: self.took.durations(),
        }
    }
}
