//! The turns of a run, and what was seen of them: the history that the checker judges.

use std::collections::HashMap;

/// A turn that was submitted: the names of its calls in order.
#[derive(Debug, Clone)]
pub struct ExpectedTurn {
    pub calls: Vec<ExpectedCall>,
}

#[derive(Debug, Clone)]
pub struct ExpectedCall {
    /// Unique in the run. It is also the id of the call.
    pub name: String,
    pub is_write: bool,
}

/// What one process of `collect` wrote.
#[derive(Debug, Clone, Default)]
pub struct CollectedRun {
    /// Its whole lines.
    pub lines: Vec<String>,
}

/// A start of a call, as the call itself wrote it down.
#[derive(Debug, Clone)]
pub struct Effect {
    pub call: String,
    /// In nanoseconds since 1970.
    pub time: u128,
}

/// All that was seen from outside, until everything should have been answered and collected.
#[derive(Debug, Default)]
pub struct History {
    /// In the order in which they were submitted.
    pub turns: Vec<ExpectedTurn>,
    /// In the order in which the processes ran.
    pub collected: Vec<CollectedRun>,
    pub effects: Vec<Effect>,
    /// The logs of turns in whose answers calls are in doubt, by the id of the call.
    pub logs_of_doubts: HashMap<String, String>,
    /// The ids that `queue status` calls in doubt, once everything is answered.
    pub doubts_told: Vec<String>,
    pub lines_written: usize,
}

impl History {
    /// Parses what calls wrote down: `start NAME NANOSECONDS` and `end NAME NANOSECONDS`.
    pub fn parse_effects(text: &str) -> Vec<Effect> {
        let starts = text.lines().filter_map(|line| {
            let mut words = line.split(' ');
            (words.next()? == "start").then_some(())?;
            Some(Effect {
                call: words.next()?.to_owned(),
                time: words.nth(1)?.parse().ok()?,
            })
        });
        starts.collect()
    }
}
