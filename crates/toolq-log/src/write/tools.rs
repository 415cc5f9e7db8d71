//! Records of tools files that were read again: a `tools_change` below the session.

use std::io;

use crate::records::{RecordKind, ToolsChangeRecord};
use crate::write::session_log::Recorder;
use toolq_core::types::ToolsChange;

impl Recorder {
    pub(crate) fn record_tools_change(&mut self, change: &ToolsChange) -> io::Result<()> {
        let session = Some(self.session_id);
        let fields = ToolsChangeRecord::new(change, &self.mask);
        self.journal
            .append(RecordKind::ToolsChange, session, (&(), &fields), false)?;
        Ok(())
    }
}
