//! Records of servers: a `server_start` below the session, and below that a `server_end`.

use std::io;

use crate::records::{RecordKind, ServerEndRecord, ServerStartRecord};
use crate::write::session_log::SessionLog;
use toolq_core::types::{ServerEnd, ServerStart};

impl SessionLog {
    pub(crate) fn record_server_start(&mut self, start: &ServerStart) -> io::Result<()> {
        let session = Some(self.session_id);
        let fields = ServerStartRecord::new(start, &self.mask);
        let kind = RecordKind::ServerStart;
        let start_id = self.journal.append(&kind, session, &(), &fields)?;
        self.open_servers.insert(start.server.clone(), start_id);
        Ok(())
    }

    pub(crate) fn record_server_end(&mut self, end: &ServerEnd) -> io::Result<()> {
        let Some(start_id) = self.open_servers.remove(&end.server) else {
            return Ok(());
        };
        let fields = ServerEndRecord::new(end, &self.mask);
        let kind = RecordKind::ServerEnd;
        self.journal.append(&kind, Some(start_id), &(), &fields)?;
        Ok(())
    }
}
