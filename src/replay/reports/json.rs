use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::replay::case::{Case, Difference, End, Totals};
use crate::replay::reports::Report;
use crate::replay::reports::spool::Spool;

/// The report for programs: totals, then a row for each difference.
pub struct JsonReport {
    rows: Spool,
    out: Box<dyn Write>,
}

impl JsonReport {
    /// A report that goes to `out` when all is told.
    pub fn new(out: Box<dyn Write>) -> Self {
        let rows = Spool::default();
        Self { rows, out }
    }
}

#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    turn: usize,
    tool_use_id: &'a str,
    tool_name: &'a str,
    kind: &'static str,
    path: &'a str,
    expected: Option<&'a RawValue>,
    actual: Option<&'a RawValue>,
}

impl<'a> Row<'a> {
    fn of(case: &'a Case<'a>, difference: &'a Difference) -> Self {
        let raw = |json: &'a Option<String>| {
            let json = json.as_deref()?;
            serde_json::from_str::<&RawValue>(json).ok()
        };
        Self {
            file: case.file,
            turn: case.call.turn,
            tool_use_id: &case.call.tool_use_id,
            tool_name: &case.call.tool_name,
            kind: difference.kind.name(),
            path: &difference.path,
            expected: raw(&difference.expected),
            actual: raw(&difference.actual),
        }
    }
}

impl Report for JsonReport {
    fn case(&mut self, case: &Case<'_>) -> io::Result<()> {
        let End::Differs(differences) = &case.end else {
            return Ok(());
        };
        for difference in differences {
            let comma = if self.rows.is_empty() { "\n" } else { ",\n" };
            let row = serde_json::to_string(&Row::of(case, difference))?;
            self.rows.push(comma)?;
            self.rows.push(&row)?;
        }
        Ok(())
    }

    /// What can't be read is an error of the command, not a difference.
    fn unreadable(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, totals: &Totals) -> io::Result<()> {
        let Totals {
            files,
            turns,
            calls,
            executed,
            served,
            matched,
            ..
        } = totals;
        write!(
            self.out,
            r#"{{"files":{files},"turns":{turns},"calls":{calls},"executed":{executed},"served":{served},"matched":{matched},"differ":["#
        )?;
        self.rows.pour(&mut self.out)?;
        writeln!(self.out, "]}}")?;
        self.out.flush()
    }
}
