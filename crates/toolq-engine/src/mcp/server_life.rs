//! What a server did from its start to its end, for the log, and what waits to be told about servers.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::command::ChildExit;
use crate::mcp::announcement::ServerAnnouncement;
use redact::Mask;
use toolq_core::types::{
    EmitError, Event, EventSink, ServerConfig, ServerEnd, ServerEndCause, ServerIntroduction,
    ServerStart,
};
use toolq_mcp::ProtocolEra;
use toolq_mcp::client::{ServerIdentity, StrayCounts};

/// The life of one server.
#[derive(Debug)]
pub(crate) struct ServerLife {
    server: String,
    earlier_starts: u32,
    begin: Instant,
    /// The process id of its program, if that is known.
    pid: Option<i32>,
    /// Whether its start is on record.
    pub(crate) is_recorded: bool,
    calls: u64,
    notices: ServerNotices,
}

/// What a server wrote to stderr.
#[derive(Debug, Default)]
pub(crate) struct SavedStderr {
    pub(crate) bytes: u64,
    /// The file with the beginning of it.
    pub(crate) path: Option<PathBuf>,
}

impl ServerLife {
    pub(crate) fn begin(
        server: &ServerConfig,
        earlier_starts: u32,
        notices: ServerNotices,
    ) -> Self {
        Self {
            server: server.name.clone(),
            earlier_starts,
            begin: Instant::now(),
            pid: None,
            is_recorded: false,
            calls: 0,
            notices,
        }
    }

    /// Sets the process id of the server's program.
    pub(crate) fn set_pid(&mut self, pid: Option<i32>) {
        self.pid = pid;
    }

    /// Records that the server is ready, and what it announced if its tools were requested.
    pub(crate) fn record_ready(
        &mut self,
        identity: Option<&ServerIdentity>,
        announcement: Option<&ServerAnnouncement>,
        mask: &Mask,
    ) {
        let introduction = identity.map(|identity| introduce(identity, announcement, mask));
        self.record_start(introduction);
    }

    /// Counts a call that the server gets.
    pub(crate) fn count_call(&mut self) {
        self.calls += 1;
    }

    /// Records the end. `why` is a sentence without secrets. A program that couldn't be started has no life.
    pub(crate) fn record_end(
        mut self,
        cause: ServerEndCause,
        why: Option<String>,
        exit: &ChildExit,
        strays: StrayCounts,
        stderr: SavedStderr,
    ) {
        let ending = match exit {
            ChildExit::NotStarted(_) | ChildExit::NotConfined(_) => return,
            ChildExit::Exited { ending, .. } => Some(*ending),
            ChildExit::Unknown => None,
        };
        if !self.is_recorded {
            self.record_start(None);
        }
        self.notices.add(ServerNotice::Ended(Box::new(ServerEnd {
            server: self.server,
            earlier_starts: self.earlier_starts,
            cause,
            detail: why,
            ending,
            duration: self.begin.elapsed(),
            calls: self.calls,
            unexpected_answers: strays.late_answers + strays.unknown_answers,
            noise_lines: strays.noise_lines,
            stderr_bytes: stderr.bytes,
            stderr_path: stderr.path,
        })));
    }

    fn record_start(&mut self, introduction: Option<ServerIntroduction>) {
        self.is_recorded = true;
        self.notices.add(ServerNotice::Started(ServerStart {
            server: self.server.clone(),
            earlier_starts: self.earlier_starts,
            pid: self.pid,
            introduction,
            duration: self.begin.elapsed(),
        }));
    }
}

fn introduce(
    identity: &ServerIdentity,
    announcement: Option<&ServerAnnouncement>,
    mask: &Mask,
) -> ServerIntroduction {
    let masked = |text: &String| mask.apply(text).into_owned();
    let implementation = identity.implementation.as_ref();
    ServerIntroduction {
        protocol: identity.version.as_str().to_owned(),
        is_modern: identity.version.era() == ProtocolEra::Modern,
        name: implementation.map(|server| masked(&server.name)),
        version: implementation.map(|server| masked(&server.version)),
        tools_digest: announcement.map(ServerAnnouncement::digest),
    }
}

// What happened to servers. Only turns emit events, so it waits here for the next one.

/// What happened to a server.
#[derive(Debug)]
pub(crate) enum ServerNotice {
    /// It is ready, or ended before it was.
    Started(ServerStart),
    /// It has ended.
    Ended(Box<ServerEnd>),
}

/// What happened to servers and isn't emitted yet, in order. Copies share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerNotices(Arc<Mutex<Vec<ServerNotice>>>);

impl ServerNotices {
    pub(crate) fn add(&self, notice: ServerNotice) {
        let mut notices = self.0.lock();
        notices.push(notice);
    }

    pub(crate) fn take(&self) -> Vec<ServerNotice> {
        let mut notices = self.0.lock();
        std::mem::take(&mut notices)
    }
}

/// Emits notices.
///
/// # Errors
/// A sink refuses them.
pub(crate) fn emit_notices(
    notices: &[ServerNotice],
    sink: &mut dyn EventSink,
) -> Result<(), EmitError> {
    if notices.is_empty() {
        return Ok(());
    }
    let events = notices.iter().map(|notice| match notice {
        ServerNotice::Started(start) => Event::ServerStarted(start),
        ServerNotice::Ended(end) => Event::ServerEnded(end),
    });
    sink.emit(&events.collect::<Vec<_>>())
}
