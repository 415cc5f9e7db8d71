//! Tools that are asked what they take, as records: a start below the session, and below it an end with what was said.

use std::io;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};

use crate::records::{DescribeFields, Kind};
use crate::write::session_log::SessionLog;
use toolq_core::types::{MaskedJson, Outcome, Said, Tool};

impl SessionLog {
    pub(crate) fn describing(&mut self, tool: &Tool) -> io::Result<()> {
        let session = Some(self.session);
        let fields = DescribeFields::of(&tool.name, &self.mask);
        let record = self
            .journal
            .add(&Kind::DescribeStart, session, &(), &fields)?;
        self.asked.insert(tool.name.clone(), record);
        Ok(())
    }

    pub(crate) fn described(
        &mut self,
        tool: &Tool,
        outcome: &Outcome,
        spent: (Duration, u32),
    ) -> io::Result<()> {
        let start = self.asked.remove(&tool.name);
        let said = tool.said();
        let holds = said.and_then(holding).transpose()?;
        let content = holds.as_deref().map(|said| MaskedJson(said, &self.mask));
        let fields = DescribeFields::of(&tool.name, &self.mask).ended(said, outcome, spent);
        self.journal
            .add(&Kind::DescribeEnd, start, &content, &fields)?;
        Ok(())
    }
}

/// What holds of a tool from then on.
fn holding(said: &Said) -> Option<io::Result<Box<RawValue>>> {
    let Said::Well(description) = said else {
        return None;
    };
    Some(to_raw_value(description).map_err(io::Error::from))
}
