//! The JSON report.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::replay::case::{CaseDifference, ReplayCase, ReplayTotals};
use crate::replay::reports::{ReplayReport, TextSpool};

/// The report for programs: totals, then a row per difference.
#[derive(Default)]
pub struct JsonReport {
    rows: TextSpool,
}

#[derive(Serialize)]
struct DifferenceRow<'a> {
    file: &'a str,
    turn: usize,
    tool_use_id: &'a str,
    tool_name: &'a str,
    kind: &'static str,
    path: &'a str,
    expected: Option<&'a RawValue>,
    actual: Option<&'a RawValue>,
}

impl<'a> DifferenceRow<'a> {
    fn new(case: &'a ReplayCase<'a>, difference: &'a CaseDifference) -> Self {
        let to_raw = |json: &'a Option<String>| {
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
            expected: to_raw(&difference.expected),
            actual: to_raw(&difference.actual),
        }
    }
}

impl ReplayReport for JsonReport {
    fn add_case(&mut self, case: &ReplayCase<'_>) -> io::Result<()> {
        for difference in case.result.failures() {
            let comma = if self.rows.is_empty() { "\n" } else { ",\n" };
            let row = serde_json::to_string(&DifferenceRow::new(case, difference))?;
            self.rows.push(comma)?;
            self.rows.push(&row)?;
        }
        Ok(())
    }

    fn finish(&mut self, totals: &ReplayTotals, out: &mut dyn Write) -> io::Result<()> {
        let ReplayTotals {
            files,
            turns,
            calls,
            executed,
            served,
            matched,
            stale,
            unrecorded,
            abandoned,
            ..
        } = totals;
        write!(
            out,
            r#"{{"files":{files},"turns":{turns},"calls":{calls},"executed":{executed},"served":{served},"matched":{matched},"stale":{stale},"unrecorded":{unrecorded},"abandoned":{abandoned},"differ":["#
        )?;
        self.rows.drain_to(out)?;
        writeln!(out, "]}}")
    }
}
