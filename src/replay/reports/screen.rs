use std::io::{self, Write};

use crate::replay::case::{Case, Difference, End, Totals};
use crate::replay::reports::Report;
use crate::replay::reports::diff;
use crate::replay::reports::labels;
use toolq_core::text::{cut, escape, paint};

/// Differences that are shown.
const SHOWN: usize = 50;

/// The report for whoever watches: each difference as it is found, with a few lines of what differs.
pub struct Screen {
    out: Box<dyn Write>,
    color: bool,
    columns: usize,
    shown: usize,
    more: usize,
}

impl Screen {
    /// A report that goes to `out` at once; its lines have at most so many columns.
    pub fn new(out: Box<dyn Write>, color: bool, columns: usize) -> Self {
        Self {
            out,
            color,
            columns,
            shown: 0,
            more: 0,
        }
    }

    /// Nobody can be told where this fails.
    fn show(&mut self, case: &Case<'_>, difference: &Difference) {
        if self.shown == SHOWN {
            self.more += 1;
            return;
        }
        self.shown += 1;
        let call = case.call;
        let place = format!(
            "{}: turn {}, {} ({})",
            case.file, call.turn, call.tool_name, call.tool_use_id
        );
        let place = paint(&escape(&place), "1", self.color);
        let mut text = format!("{place}: {}\n", labels::headline(difference));
        for line in diff::lines(difference) {
            let style = match line.sign {
                '-' => "31",
                '+' => "32",
                _ => "2",
            };
            let line = format!("  {}", line.shown());
            text += &paint(&cut(&line, self.columns), style, self.color);
            text.push('\n');
        }
        let _ = self.out.write_all(text.as_bytes());
    }
}

impl Report for Screen {
    fn case(&mut self, case: &Case<'_>) -> io::Result<()> {
        if let End::Differs(differences) = &case.end {
            for difference in differences {
                self.show(case, difference);
            }
        }
        Ok(())
    }

    /// The command says it by itself.
    fn unreadable(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &Totals) -> io::Result<()> {
        if self.more > 0 {
            let _ = writeln!(self.out, "… and {} more; `--json FILE` has all", self.more);
        }
        Ok(())
    }
}
