//! Judges a history by what docs/scale.md promises. It knows nothing of how queues work.
//!
//! - No call that changes something starts twice.
//! - No result is lost: everything that was submitted is answered, and what was done has its result or is said to be in doubt.
//! - Answers come in the order of submission. A `collect` after a killed one repeats at most 256 lines.
//! - Every doubt is said, in the answer and in `queue status`.
//! - Nothing starts that isn't on record, and nothing after another worker has taken over the turn.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde_json::Value;

use crate::faults::expected::{CollectedRun, ExpectedCall, History};
use crate::support::parse_json_lines;

/// How many lines a `collect` may repeat.
const MAX_REPEATED_LINES: usize = 256;
/// How much later than the start of a program its own clock may be read on a busy machine, in milliseconds.
const CLOCK_SLACK_MS: u64 = 250;

/// What an answer says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Done,
    InDoubt,
    NotRun,
}

/// What was counted.
#[derive(Debug, Default)]
pub struct HistoryCounts {
    pub turns: usize,
    pub writes_done: usize,
    pub in_doubt: usize,
    pub not_run: usize,
    pub reads_repeated: usize,
}

impl fmt::Display for HistoryCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} turns, 0 effects twice, 0 results lost, 0 answers out of order; {} writes done, {} calls in doubt, {} not run behind them, {} reads repeated",
            self.turns, self.writes_done, self.in_doubt, self.not_run, self.reads_repeated
        )
    }
}

/// Returns what was counted, or all promises that were broken.
pub fn check_history(history: &History) -> Result<HistoryCounts, Vec<String>> {
    let mut checker = Checker {
        history,
        starts: HashMap::new(),
        violations: Vec::new(),
        counts: HistoryCounts::default(),
        in_doubt: BTreeSet::new(),
    };
    for effect in &history.effects {
        let starts = checker.starts.entry(&effect.call).or_default();
        starts.push(effect.time);
    }
    checker.check_starts();
    let answers = checker.check_order();
    for (turn, answer) in answers.into_iter().enumerate() {
        checker.check_answer(turn, &answer);
    }
    checker.check_doubts_told();
    if checker.violations.is_empty() {
        Ok(checker.counts)
    } else {
        Err(checker.violations)
    }
}

struct Checker<'a> {
    history: &'a History,
    /// When each call started, by its name.
    starts: HashMap<&'a str, Vec<u128>>,
    violations: Vec<String>,
    counts: HistoryCounts,
    in_doubt: BTreeSet<String>,
}

impl Checker<'_> {
    fn check_starts(&mut self) {
        let calls = self.history.turns.iter().flat_map(|turn| &turn.calls);
        for call in calls {
            let starts = self.starts.get(&*call.name).map_or(0, Vec::len);
            if call.is_write && starts > 1 {
                let name = &call.name;
                self.violations
                    .push(format!("the write {name} started {starts} times"));
            } else if starts > 1 {
                self.counts.reads_repeated += starts - 1;
            }
        }
    }

    /// Returns the answers of the first turns, as far as they were collected.
    fn check_order(&mut self) -> Vec<String> {
        let positions: HashMap<&str, usize> = self
            .history
            .turns
            .iter()
            .enumerate()
            .map(|(position, turn)| (&*turn.calls[0].name, position))
            .collect();
        let mut answers: Vec<String> = Vec::new();
        for run in &self.history.collected {
            self.check_run(run, &positions, &mut answers);
        }
        if answers.len() != self.history.turns.len() {
            self.violations.push(format!(
                "{} turns were submitted, and {} answers collected",
                self.history.turns.len(),
                answers.len()
            ));
        }
        self.counts.turns = answers.len();
        answers
    }

    fn check_run(
        &mut self,
        run: &CollectedRun,
        positions: &HashMap<&str, usize>,
        answers: &mut Vec<String>,
    ) {
        let mut next = None;
        for line in &run.lines {
            let position = first_id(line).and_then(|id| positions.get(&*id).copied());
            let Some(position) = position else {
                self.violations
                    .push(format!("an answer that nobody asked for: {line}"));
                return;
            };
            let repeated = answers.len().saturating_sub(position);
            let is_right = match next {
                Some(next) => position == next,
                None => position <= answers.len() && repeated <= MAX_REPEATED_LINES,
            };
            if !is_right {
                let expected = next.unwrap_or(answers.len());
                self.violations.push(format!(
                    "out of order: the answer of turn {position} where that of turn {expected} belongs"
                ));
                return;
            }
            next = Some(position + 1);
            match answers.get(position) {
                Some(earlier) if earlier != line => {
                    self.violations
                        .push(format!("turn {position} has two answers"));
                }
                Some(_) => {}
                None => answers.push(line.clone()),
            }
        }
    }

    fn check_answer(&mut self, turn: usize, answer: &str) {
        let calls = &self.history.turns[turn].calls;
        let results = results_of(answer);
        let ids: Vec<&str> = results
            .iter()
            .filter_map(|result| result["tool_use_id"].as_str())
            .collect();
        let names: Vec<&str> = calls.iter().map(|call| &*call.name).collect();
        if ids != names {
            self.violations.push(format!(
                "turn {turn} has results of {ids:?} instead of {names:?}"
            ));
            return;
        }
        for (call, result) in calls.iter().zip(&results) {
            let text = result["content"].as_str().unwrap_or_default();
            self.check_result(call, text);
        }
    }

    fn check_result(&mut self, call: &ExpectedCall, text: &str) {
        let starts = self.starts.get(&*call.name).cloned().unwrap_or_default();
        let said = what_is_said(call, text);
        let name = &call.name;
        match said {
            Said::Done if starts.is_empty() => {
                self.violations
                    .push(format!("{name} has a result and was never started"));
            }
            Said::Done => self.counts.writes_done += usize::from(call.is_write),
            Said::InDoubt => {
                self.counts.in_doubt += 1;
                self.in_doubt.insert(name.clone());
                self.check_log_of_doubt(call, &starts);
            }
            Said::NotRun if call.is_write && !starts.is_empty() => {
                self.violations
                    .push(format!("{name} started, and its answer is: {text}"));
            }
            Said::NotRun => self.counts.not_run += 1,
        }
    }

    /// Looks at the log of a turn with this call in doubt: its start is there, and another worker began only afterwards.
    fn check_log_of_doubt(&mut self, call: &ExpectedCall, starts: &[u128]) {
        let Some(log) = self.history.logs_of_doubts.get(&call.name) else {
            return;
        };
        let name = &call.name;
        let records = parse_json_lines(log);
        let is_intact = records
            .iter()
            .enumerate()
            .all(|(seq, record)| record["seq"] == seq);
        if !is_intact {
            self.violations
                .push(format!("the log of {name} isn't intact"));
            return;
        }
        // A worker that takes a turn over requests its calls once more.
        let requests: Vec<&str> = records
            .iter()
            .filter(|record| {
                record["type"] == "tool_call" && record["metadata"]["tool_use_id"] == call.name
            })
            .filter_map(|record| record["id"].as_str())
            .collect();
        let is_start = |record: &Value| {
            let parent = record["parentId"].as_str().unwrap_or_default();
            record["type"] == "tool_start" && requests.contains(&parent)
        };
        let Some(last_start) = records.iter().rposition(is_start) else {
            if !starts.is_empty() {
                self.violations
                    .push(format!("the start of {name} isn't on record"));
            }
            return;
        };
        let takeover = records[last_start..]
            .iter()
            .find(|record| record["type"] == "session");
        let takeover = takeover.and_then(|record| record["timestamp"].as_u64());
        for time in starts {
            let started_ms = u64::try_from(time / 1_000_000).unwrap();
            let takeover = takeover.unwrap_or(u64::MAX);
            if started_ms > takeover.saturating_add(CLOCK_SLACK_MS) {
                let late = started_ms - takeover;
                self.violations.push(format!(
                    "{name} started {late} ms after another worker had taken over its turn"
                ));
            }
        }
    }

    fn check_doubts_told(&mut self) {
        let told: BTreeSet<String> = self.history.doubts_told.iter().cloned().collect();
        if told != self.in_doubt {
            let difference: Vec<&String> = told.symmetric_difference(&self.in_doubt).collect();
            self.violations.push(format!(
                "answers and `queue status` disagree about {difference:?}"
            ));
        }
    }
}

fn results_of(answer: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    answer["content"].as_array().cloned().unwrap_or_default()
}

fn first_id(line: &str) -> Option<String> {
    let results = results_of(line);
    Some(results.first()?["tool_use_id"].as_str()?.to_owned())
}

fn what_is_said(call: &ExpectedCall, text: &str) -> Said {
    if text == format!("did {}", call.name) {
        Said::Done
    } else if text.contains("may have") {
        Said::InDoubt
    } else {
        Said::NotRun
    }
}
