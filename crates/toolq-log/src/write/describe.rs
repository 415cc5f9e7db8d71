//! Records of tools that describe themselves: a `describe_start` below the session, and below that a `describe_end`
//! with the result.

use std::io;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};

use crate::records::{DescribeRecord, RecordKind};
use crate::write::session_log::Recorder;
use toolq_core::types::{DescribeResult, MaskedJson, Outcome, Tool};

impl Recorder {
    pub(crate) fn record_describe_start(&mut self, tool: &Tool) -> io::Result<()> {
        let session = Some(self.session_id);
        let fields = DescribeRecord::new(&tool.name, &self.mask);
        let (start_id, _) =
            self.journal
                .append(RecordKind::DescribeStart, session, (&(), &fields), false)?;
        self.open_describes.insert(tool.name.clone(), start_id);
        Ok(())
    }

    pub(crate) fn record_describe_end(
        &mut self,
        tool: &Tool,
        outcome: &Outcome,
        duration: Duration,
        attempts: u32,
    ) -> io::Result<()> {
        let start_id = self.open_describes.remove(&tool.name);
        let describe_result = tool.describe_result();
        let description = describe_result.and_then(description_json).transpose()?;
        let content = description
            .as_deref()
            .map(|json| MaskedJson(json, &self.mask));
        let fields = DescribeRecord::new(&tool.name, &self.mask).with_result(
            describe_result,
            outcome,
            duration,
            attempts,
            &self.mask,
        );
        self.journal.append(
            RecordKind::DescribeEnd,
            start_id,
            (&content, &fields),
            false,
        )?;
        Ok(())
    }
}

/// Returns the description that applies to a tool from now on.
fn description_json(describe_result: &DescribeResult) -> Option<io::Result<Box<RawValue>>> {
    let DescribeResult::Ok(description) = describe_result else {
        return None;
    };
    Some(to_raw_value(description).map_err(io::Error::from))
}
