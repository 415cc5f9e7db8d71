//! The sessions of clients of the legacy era.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::served_client::ServedClient;
use toolq_mcp::RpcError;
use toolq_mcp::http::PostError;

/// How many sessions there may be. Clients often leave without a word.
const MAX_SESSIONS: usize = 1024;
/// How long a session may be unused.
const MAX_IDLE_TIME: Duration = Duration::from_hours(1);

/// The sessions, by their ids.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Session>>);

struct Session {
    client: Arc<ServedClient>,
    last_used: Instant,
}

impl Sessions {
    /// Adds a session that begins `now`, and ends those that have been idle for too long. If there are too many sessions,
    /// the one that has been idle longest ends, too. Returns whether there was room.
    pub(super) fn insert(
        &self,
        id: String,
        client: Arc<ServedClient>,
        now: Instant,
        calls: &OpenCalls,
    ) -> bool {
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| !session.is_over(now, calls));
        if sessions.len() >= MAX_SESSIONS {
            let unused = sessions
                .iter()
                .filter(|(_, session)| !calls.has_calls_of(&session.client));
            let oldest = unused.min_by_key(|(_, session)| session.last_used);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
                return false;
            };
            sessions.remove(&oldest);
        }
        let session = Session {
            client,
            last_used: now,
        };
        sessions.insert(id, session);
        true
    }

    /// Returns the client of a session, which is used `now`.
    pub(super) fn find(
        &self,
        id: &str,
        now: Instant,
        calls: &OpenCalls,
    ) -> Option<Arc<ServedClient>> {
        let mut sessions = self.0.lock();
        let session = sessions.get_mut(id)?;
        if session.is_over(now, calls) {
            sessions.remove(id);
            return None;
        }
        session.last_used = now;
        Some(Arc::clone(&session.client))
    }

    /// Ends a session, and returns its client.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<ServedClient>> {
        Some(self.0.lock().remove(id)?.client)
    }
}

impl Session {
    /// Returns whether the session has been idle for too long by `now`.
    fn is_over(&self, now: Instant, calls: &OpenCalls) -> bool {
        let idle = now.saturating_duration_since(self.last_used);
        idle >= MAX_IDLE_TIME && !calls.has_calls_of(&self.client)
    }
}

/// The specification's answer to a session that has ended: the client begins a new one.
pub(super) fn unknown_session() -> PostError {
    let why = "there is no such session; it may have ended, so begin a new one with initialize";
    PostError::new(404, RpcError::INVALID_REQUEST, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::sync::mpsc;
    use toolq_mcp::Implementation;
    use toolq_mcp::server::{ServerSession, ToolCatalog};

    use crate::commands::serve::served_client::ClientIdentity;
    use toolq_core::check::CallChecker;
    use toolq_core::tools_file::parse_tools_file;

    fn client() -> Arc<ServedClient> {
        let server = Implementation {
            name: "test".to_owned(),
            version: "1".to_owned(),
        };
        let catalog = Arc::new(ToolCatalog::new(server, None, Vec::new()));
        let identity = ClientIdentity::Session("s".to_owned());
        Arc::new(ServedClient::new(identity, ServerSession::new(catalog)))
    }

    fn no_calls() -> OpenCalls {
        let tools = "version: 1\ntools: {a: {input_schema: {type: object}}}\n";
        let dir = std::path::Path::new("/");
        let tools = parse_tools_file(tools, dir, dir).tools.unwrap();
        let (turns, _) = mpsc::unbounded_channel();
        OpenCalls::new(
            CallChecker::new(Arc::new(tools)),
            Arc::default(),
            None,
            turns,
        )
    }

    #[test]
    fn an_unused_session_ends() {
        let (sessions, calls) = (Sessions::default(), no_calls());
        let begin = Instant::now();
        for id in ["a", "b"] {
            assert!(sessions.insert(id.to_owned(), client(), begin, &calls));
        }
        let middle = begin + MAX_IDLE_TIME / 2;
        assert!(sessions.find("a", middle, &calls).is_some());
        let late = begin + MAX_IDLE_TIME;
        assert!(sessions.find("a", late, &calls).is_some());
        assert!(sessions.find("b", late, &calls).is_none());
        let later = late + MAX_IDLE_TIME;
        assert!(sessions.insert("c".to_owned(), client(), later, &calls));
        assert!(sessions.remove("a").is_none());
    }

    /// Clients that leave without a word must not add up.
    #[test]
    fn one_session_too_many_ends_the_one_that_was_unused_for_longest() {
        let (sessions, calls) = (Sessions::default(), no_calls());
        let begin = Instant::now();
        let at = |number| begin + Duration::from_millis(number);
        for number in 0..MAX_SESSIONS as u64 {
            assert!(sessions.insert(number.to_string(), client(), at(number), &calls));
        }
        assert!(sessions.find("0", at(5000), &calls).is_some());
        assert!(sessions.insert("new".to_owned(), client(), at(5001), &calls));
        assert!(sessions.find("1", at(5002), &calls).is_none());
        for id in ["0", "2", "new"] {
            assert!(sessions.find(id, at(5002), &calls).is_some());
        }
    }
}
