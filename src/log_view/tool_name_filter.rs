use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;

use toolq_core::text::nearest;
use toolq_log::{Damage, Kind, Record};

/// Names of other tools that are kept, at most.
const KEPT: usize = 1_000;

/// Which of the tools that somebody asks for have calls in the records, and which others have.
#[derive(Debug)]
pub struct Names {
    missing: BTreeSet<String>,
    others: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    tool_name: Option<Cow<'a, str>>,
}

impl Names {
    /// Looks for these.
    pub fn new(wanted: &[String]) -> Self {
        Self {
            missing: wanted.iter().cloned().collect(),
            others: BTreeSet::new(),
        }
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// Its metadata is not that of its type.
    pub fn take(&mut self, record: &Record) -> Result<(), Damage> {
        let is_of_call = matches!(record.kind, Kind::ToolCall | Kind::ToolStart);
        if self.missing.is_empty() || !(is_of_call || record.kind.ends_call()) {
            return Ok(());
        }
        let Named { tool_name } = record.metadata()?;
        if let Some(name) = tool_name {
            self.missing.remove(&*name);
            if self.others.len() < KEPT && !self.others.contains(&*name) {
                self.others.insert(name.into_owned());
            }
        }
        Ok(())
    }

    /// Those without a call, each with the name that was probably meant.
    pub fn missing(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let others = || self.others.iter().map(String::as_str);
        let missing = self.missing.iter();
        missing.map(move |name| (&**name, nearest(name, others())))
    }
}
