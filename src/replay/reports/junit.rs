//! The `JUnit` XML report: a suite per recording, a case per call.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use crate::replay::case::{CaseDifference, CaseResult, IncompleteCause, ReplayCase, ReplayTotals};
use crate::replay::reports::{self, ReplayReport, TextSpool, diff};
use toolq_core::text::escape;

/// The report for CI servers.
#[derive(Default)]
pub struct JunitReport {
    /// The file and the line on which each tool starts.
    tool_locations: HashMap<String, String>,
    /// The completed suites.
    suites: TextSpool,
    suite: TestSuite,
    totals: SuiteCounts,
}

/// The suite of the current recording.
#[derive(Default)]
struct TestSuite {
    file: String,
    cases: TextSpool,
    counts: SuiteCounts,
}

#[derive(Default, Clone, Copy)]
struct SuiteCounts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    time: Duration,
}

impl JunitReport {
    /// `tool_locations` has the file and the line of each tool.
    pub fn new(tool_locations: HashMap<String, String>) -> Self {
        Self {
            tool_locations,
            ..Self::default()
        }
    }

    /// Starts the suite of `file`, unless it is the current one.
    fn begin_suite(&mut self, file: &str) -> io::Result<()> {
        if self.suite.file != file {
            self.end_suite()?;
            file.clone_into(&mut self.suite.file);
        }
        Ok(())
    }

    fn end_suite(&mut self) -> io::Result<()> {
        let mut suite = std::mem::take(&mut self.suite);
        if suite.counts.tests == 0 {
            return Ok(());
        }
        self.totals.add(suite.counts);
        let (name, counts) = (escape_attribute(&suite.file), suite.counts.to_attributes());
        let skipped = suite.counts.skipped;
        self.suites.push(&format!(
            "  <testsuite name=\"{name}\" {counts} skipped=\"{skipped}\">\n"
        ))?;
        suite.cases.drain_into(&mut self.suites)?;
        self.suites.push("  </testsuite>\n")
    }

    /// Returns an element that says where a tool is declared, or nothing for an unknown tool. It is output because the
    /// schemas of Jenkins and Surefire allow neither a file and a line nor properties on a case.
    fn location_element(&self, tool: &str) -> String {
        let location = self.tool_locations.get(tool);
        location.map_or(String::new(), |location| {
            let location = escape_text(location);
            format!("      <system-out>{location}</system-out>\n")
        })
    }
}

impl ReplayReport for JunitReport {
    fn add_case(&mut self, case: &ReplayCase<'_>) -> io::Result<()> {
        self.begin_suite(case.file)?;
        let call = case.call;
        let name = format!(
            "turn {}, call {}: {} ({})",
            call.turn, call.position, call.tool_name, call.tool_use_id
        );
        let body = match &case.result {
            CaseResult::Matched => String::new(),
            CaseResult::Served => skipped_element("not run: only its input was checked"),
            CaseResult::Incomplete(cause) => skipped_element(incomplete_label(*cause)),
            CaseResult::Stale {
                after,
                is_failure: false,
                ..
            } => skipped_element(&reports::stale_label(after)),
            CaseResult::Differs(differences) | CaseResult::Stale { differences, .. } => {
                failure_element(differences)
            }
        };
        let body = body + &self.location_element(&call.tool_name);
        let counts = &mut self.suite.counts;
        counts.tests += 1;
        counts.time += case.duration;
        counts.failures += usize::from(!case.result.failures().is_empty());
        counts.skipped += usize::from(matches!(
            case.result,
            CaseResult::Incomplete(_)
                | CaseResult::Served
                | CaseResult::Stale {
                    is_failure: false,
                    ..
                }
        ));
        let text = format!(
            "    <testcase name=\"{}\" classname=\"{}\" time=\"{:.3}\"",
            escape_attribute(&name),
            escape_attribute(case.file),
            case.duration.as_secs_f64(),
        );
        self.suite.cases.push(&match body.as_str() {
            "" => format!("{text}/>\n"),
            body => format!("{text}>\n{body}    </testcase>\n"),
        })
    }

    fn add_unreadable(&mut self, file: &str, message: &str) -> io::Result<()> {
        self.begin_suite(file)?;
        self.suite.counts.tests += 1;
        self.suite.counts.errors += 1;
        let (file, message) = (escape_attribute(file), escape_attribute(message));
        self.suite.cases.push(&format!(
            "    <testcase name=\"the recording\" classname=\"{file}\" time=\"0.000\">\n      <error type=\"unreadable\" \
             message=\"{message}\"/>\n    </testcase>\n"
        ))
    }

    fn finish(&mut self, _: &ReplayTotals, out: &mut dyn Write) -> io::Result<()> {
        self.end_suite()?;
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"toolq replay\" {}>",
            self.totals.to_attributes()
        )?;
        self.suites.drain_to(out)?;
        writeln!(out, "</testsuites>")
    }
}

impl SuiteCounts {
    fn add(&mut self, other: Self) {
        self.tests += other.tests;
        self.failures += other.failures;
        self.errors += other.errors;
        self.time += other.time;
    }

    /// Formats the attributes of `testsuite` and `testsuites`. `skipped` isn't among them, because Jenkins' schema has
    /// it only for `testsuite`.
    fn to_attributes(self) -> String {
        format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3}\"",
            self.tests,
            self.failures,
            self.errors,
            self.time.as_secs_f64()
        )
    }
}

fn incomplete_label(cause: IncompleteCause) -> &'static str {
    match cause {
        IncompleteCause::NoResult => "the recording has no result for this call",
        IncompleteCause::Abandoned => "the conversation went on without a result for this call",
        IncompleteCause::Halted => "the replay was stopped before this call was compared",
    }
}

fn skipped_element(message: &str) -> String {
    let message = escape_attribute(message);
    format!("      <skipped message=\"{message}\"/>\n")
}

/// Returns one element for all differences, because CI servers don't show a second one.
fn failure_element(differences: &[CaseDifference]) -> String {
    let Some(first) = differences.first() else {
        return String::new();
    };
    let more = match differences.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let message = reports::difference_label(first) + &more;
    let full_text = |difference: &CaseDifference| {
        let lines = diff::join_lines(&diff::diff_lines(difference));
        format!("{}\n{lines}", reports::difference_label(difference))
    };
    let all: Vec<String> = differences.iter().map(full_text).collect();
    format!(
        "      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
        first.kind.name(),
        escape_attribute(&message),
        escape_text(all.join("\n").trim_end())
    )
}

/// Escapes a text for an attribute.
fn escape_attribute(text: &str) -> String {
    let text = escape_text(text);
    text.replace('\n', "&#10;").replace('\t', "&#9;")
}

/// Escapes a text for XML 1.0. Characters that it doesn't allow even when escaped are spelled out (`\x1b`).
fn escape_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => {
                escaped.push_str(&escape(c.encode_utf8(&mut [0; 4])));
            }
            c => escaped.push(c),
        }
    }
    escaped
}
