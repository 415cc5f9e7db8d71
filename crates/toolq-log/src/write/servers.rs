//! Records of servers: a `server_start` below the session, and below that a `server_end`; the same for `list_start` and
//! `list_end`.

use std::io;
use std::time::Duration;

use crate::records::{ListRecord, RecordKind, ServerEndRecord, ServerStartRecord};
use crate::write::session_log::Recorder;
use toolq_core::types::{ServerEnd, ServerStart, UnlockedServer};

impl Recorder {
    pub(crate) fn record_list_start(&mut self, server: &UnlockedServer) -> io::Result<()> {
        let session = Some(self.session_id);
        let fields = ListRecord::start(server, &self.mask);
        let kind = RecordKind::ListStart;
        let start_id = self.journal.append(kind, session, (&(), &fields), false)?.0;
        self.open_lists.insert(server.server.name.clone(), start_id);
        Ok(())
    }

    pub(crate) fn record_list_end(
        &mut self,
        server: &UnlockedServer,
        duration: Duration,
    ) -> io::Result<()> {
        let start_id = self.open_lists.remove(&server.server.name);
        let fields = ListRecord::end(server, duration, &self.mask);
        let kind = RecordKind::ListEnd;
        self.journal.append(kind, start_id, (&(), &fields), false)?;
        Ok(())
    }

    pub(crate) fn record_server_start(&mut self, start: &ServerStart) -> io::Result<()> {
        let session = Some(self.session_id);
        let fields = ServerStartRecord::new(start, &self.mask);
        let kind = RecordKind::ServerStart;
        let start_id = self.journal.append(kind, session, (&(), &fields), false)?.0;
        let started = (start.server.clone(), start.earlier_starts);
        self.open_servers.insert(started, start_id);
        Ok(())
    }

    pub(crate) fn record_server_end(&mut self, end: &ServerEnd) -> io::Result<()> {
        let started = (end.server.clone(), end.earlier_starts);
        let Some(start_id) = self.open_servers.remove(&started) else {
            return Ok(());
        };
        let fields = ServerEndRecord::new(end, &self.mask);
        let kind = RecordKind::ServerEnd;
        self.journal
            .append(kind, Some(start_id), (&(), &fields), false)?;
        Ok(())
    }
}
