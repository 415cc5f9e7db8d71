use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::log_view::durations::{Durations, Sample};
use toolq_log::records::metadata;
use toolq_log::{Damage, Kind, Record};

/// How calls went, by tool, over as many logs as are read. Keeps a number for each call that ran.
#[derive(Debug, Default)]
pub struct Stats {
    tools: BTreeMap<Box<str>, Tally>,
    /// Calls of this log that may still come to another end, by their `tool_call`: a resumed run goes on with them.
    open: HashMap<Uuid, Open>,
}

/// A call whose last word is not spoken.
#[derive(Debug)]
struct Open {
    tool: Box<str>,
    end: End,
    /// Of a success or a failure, in milliseconds.
    took: Option<u64>,
}

/// What a call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Success,
    Failure,
    InDoubt,
    Unfinished,
    Skipped,
    Rejected,
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
    /// Of successes and failures, from the first start to the end.
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
    #[serde(borrow)]
    status: Cow<'a, str>,
    duration_ms: u64,
    attempts: u32,
}

#[derive(Deserialize)]
struct ResolveFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    done: bool,
    is_error: Option<bool>,
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
                self.keep(record.parent, &tool_name, End::Unfinished, None);
            }
            Kind::Resolve => {
                let found: ResolveFields<'_> = record.metadata()?;
                if found.done {
                    let end = if found.is_error == Some(true) {
                        End::Failure
                    } else {
                        End::Success
                    };
                    self.count(record.parent, &found.tool_name, end, None);
                }
            }
            kind if kind.ends_call() => {
                let fields: EndFields<'_> = record.metadata()?;
                let (call, tool) = (record.parent, &fields.tool_name);
                let took = Some(fields.duration_ms);
                match End::of(kind, &fields) {
                    // A resumed run may start it again.
                    End::Failure if metadata::is_cut_short(&fields.status) => {
                        self.keep(call, tool, End::Failure, took);
                    }
                    end @ (End::Success | End::Failure) => self.count(call, tool, end, took),
                    end => self.keep(call, tool, end, None),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A log has no more records.
    pub fn end_of_log(&mut self) {
        for (call, open) in std::mem::take(&mut self.open) {
            self.count(Some(call), &open.tool, open.end, open.took);
        }
    }

    /// What a call came to, until another record says otherwise.
    fn keep(&mut self, call: Option<Uuid>, tool: &str, end: End, took: Option<u64>) {
        let tool = tool.into();
        let open = Open { tool, end, took };
        self.open.insert(call.unwrap_or_default(), open);
    }

    /// What a call came to in the end.
    fn count(&mut self, call: Option<Uuid>, tool: &str, end: End, took: Option<u64>) {
        self.open.remove(&call.unwrap_or_default());
        let tally = self.tally(tool);
        *tally.counts.of(end) += 1;
        if let Some(took) = took {
            tally.took.push(took);
        }
    }

    fn tally(&mut self, tool: &str) -> &mut Tally {
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

impl End {
    fn of(kind: &Kind, fields: &EndFields<'_>) -> Self {
        match kind {
            Kind::ToolSkipped => Self::Skipped,
            Kind::ToolInDoubt => Self::InDoubt,
            _ if fields.attempts == 0 => Self::Rejected,
            _ if fields.is_error => Self::Failure,
            _ => Self::Success,
        }
    }
}

impl Counts {
    fn of(&mut self, end: End) -> &mut u64 {
        match end {
            End::Success => &mut self.successes,
            End::Failure => &mut self.failures,
            End::InDoubt => &mut self.in_doubt,
            End::Unfinished => &mut self.unfinished,
            End::Skipped => &mut self.skipped,
            End::Rejected => &mut self.rejected,
        }
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
