//! `JUnit` XML as CI servers read it: a suite is a recording, a case is a call.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use crate::replay::case::{Case, Difference, End, Open, Totals};
use crate::replay::reports::Report;
use crate::replay::reports::diff;
use crate::replay::reports::labels;
use crate::replay::reports::spool::Spool;
use toolq_core::text::escape;

/// The report for CI servers.
pub struct JunitReport {
    /// tools.yaml, as it was named.
    tools: String,
    /// On which of its lines each tool begins, counted from 1.
    lines: HashMap<String, usize>,
    /// The suites that are complete.
    suites: Spool,
    suite: Suite,
    all: Counts,
    out: Box<dyn Write>,
}

/// The suite of the recording that is being replayed.
#[derive(Default)]
struct Suite {
    file: String,
    cases: Spool,
    counts: Counts,
}

#[derive(Default, Clone, Copy)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    time: Duration,
}

impl JunitReport {
    /// A report that goes to `out` when all is told. `lines` has the line of each tool in the file `tools`.
    pub fn new(tools: String, lines: HashMap<String, usize>, out: Box<dyn Write>) -> Self {
        Self {
            tools,
            lines,
            suites: Spool::default(),
            suite: Suite::default(),
            all: Counts::default(),
            out,
        }
    }

    /// Ends the suite unless it is that of `file`.
    fn begin(&mut self, file: &str) -> io::Result<()> {
        if self.suite.file != file {
            self.end()?;
            file.clone_into(&mut self.suite.file);
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let mut suite = std::mem::take(&mut self.suite);
        if suite.counts.tests == 0 {
            return Ok(());
        }
        self.all.add(suite.counts);
        let (name, counts) = (attribute(&suite.file), suite.counts.attributes());
        let skipped = suite.counts.skipped;
        self.suites.push(&format!(
            "  <testsuite name=\"{name}\" {counts} skipped=\"{skipped}\">\n"
        ))?;
        suite.cases.pour_into(&mut self.suites)?;
        self.suites.push("  </testsuite>\n")
    }

    /// Where the tool of a call is declared.
    fn place(&self, tool: &str) -> String {
        let line = self.lines.get(tool);
        let line = line.map_or(String::new(), |line| format!(" line=\"{line}\""));
        format!("file=\"{}\"{line}", attribute(&self.tools))
    }
}

impl Report for JunitReport {
    fn case(&mut self, case: &Case<'_>) -> io::Result<()> {
        self.begin(case.file)?;
        let call = case.call;
        let name = format!(
            "turn {}, call {}: {} ({})",
            call.turn, call.position, call.tool_name, call.tool_use_id
        );
        let inside = match &case.end {
            End::Matched | End::Served => String::new(),
            End::Open(open) => skipped(*open),
            End::Differs(differences) => failure(differences),
        };
        let counts = &mut self.suite.counts;
        counts.tests += 1;
        counts.time += case.duration;
        counts.failures += usize::from(matches!(case.end, End::Differs(_)));
        counts.skipped += usize::from(matches!(case.end, End::Open(_)));
        let text = format!(
            "    <testcase name=\"{}\" classname=\"{}\" {} time=\"{:.3}\"",
            attribute(&name),
            attribute(case.file),
            self.place(&call.tool_name),
            case.duration.as_secs_f64(),
        );
        self.suite.cases.push(&match inside.as_str() {
            "" => format!("{text}/>\n"),
            inside => format!("{text}>\n{inside}    </testcase>\n"),
        })
    }

    fn unreadable(&mut self, file: &str, message: &str) -> io::Result<()> {
        self.begin(file)?;
        self.suite.counts.tests += 1;
        self.suite.counts.errors += 1;
        let (file, message) = (attribute(file), attribute(message));
        self.suite.cases.push(&format!(
            "    <testcase name=\"the recording\" classname=\"{file}\" time=\"0.000\">\n      <error type=\"unreadable\" \
             message=\"{message}\"/>\n    </testcase>\n"
        ))
    }

    fn finish(&mut self, _: &Totals) -> io::Result<()> {
        self.end()?;
        writeln!(
            self.out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"toolq replay\" {}>",
            self.all.attributes()
        )?;
        self.suites.pour(&mut self.out)?;
        writeln!(self.out, "</testsuites>")?;
        self.out.flush()
    }
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.tests += other.tests;
        self.failures += other.failures;
        self.errors += other.errors;
        self.time += other.time;
    }

    /// What stands in a suite and in all of them; those that are skipped Jenkins' schema has in a suite only.
    fn attributes(self) -> String {
        format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3}\"",
            self.tests,
            self.failures,
            self.errors,
            self.time.as_secs_f64()
        )
    }
}

fn skipped(open: Open) -> String {
    let message = match open {
        Open::NoResult => "the recording has no result of it",
        Open::Ended => "the replay was ended before",
    };
    format!("      <skipped message=\"{message}\"/>\n")
}

/// One element, since readers show no second: its text has all.
fn failure(differences: &[Difference]) -> String {
    let Some(first) = differences.first() else {
        return String::new();
    };
    let more = match differences.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let message = labels::headline(first) + &more;
    let whole = |difference: &Difference| {
        let lines = diff::text(&diff::lines(difference));
        format!("{}\n{lines}", labels::headline(difference))
    };
    let all: Vec<String> = differences.iter().map(whole).collect();
    format!(
        "      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
        first.kind.name(),
        attribute(&message),
        escaped(all.join("\n").trim_end())
    )
}

/// A text between two quotes.
fn attribute(text: &str) -> String {
    let text = escaped(text);
    text.replace('\n', "&#10;").replace('\t', "&#9;")
}

/// A text as XML 1.0 may have it: what it can't have, even escaped, is spelled (`\x1b`).
fn escaped(text: &str) -> String {
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
