//! The sessions of clients of the legacy era.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::served_client::ServedClient;

/// How many sessions there may be. Clients often leave without a word.
const MAX_SESSIONS: usize = 1024;
/// How long a session may be unused.
const MAX_IDLE_TIME: Duration = Duration::from_hours(1);
/// The random bytes of an id.
const ID_BYTES: usize = 16;

/// The sessions, by their ids.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Session>>);

struct Session {
    client: Arc<ServedClient>,
    last_used: Instant,
}

impl Sessions {
    /// Returns an id that nobody can guess, or `None` if the system has no random numbers.
    pub(super) fn new_id() -> Option<String> {
        let mut bytes = [0; ID_BYTES];
        getrandom::fill(&mut bytes).ok()?;
        Some(format!("{:032x}", u128::from_ne_bytes(bytes)))
    }

    /// Adds a session. If there are too many, the one that was unused for longest ends. Returns whether there was room.
    pub(super) fn insert(&self, id: String, client: Arc<ServedClient>, calls: &OpenCalls) -> bool {
        let mut sessions = self.lock();
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
        let last_used = Instant::now();
        sessions.insert(id, Session { client, last_used });
        true
    }

    /// Returns the client of a session, which is used now.
    pub(super) fn find(&self, id: &str) -> Option<Arc<ServedClient>> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(id)?;
        session.last_used = Instant::now();
        Some(Arc::clone(&session.client))
    }

    /// Ends a session, and returns its client.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<ServedClient>> {
        Some(self.lock().remove(id)?.client)
    }

    /// Ends the sessions that nobody has used for long by `now`.
    pub(super) fn drop_idle(&self, now: Instant, calls: &OpenCalls) {
        self.lock().retain(|_, session| {
            let idle = now.saturating_duration_since(session.last_used);
            idle < MAX_IDLE_TIME || calls.has_calls_of(&session.client)
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        OpenCalls::new(CallChecker::new(Arc::new(tools)), None, turns)
    }

    #[test]
    fn an_unused_session_ends() {
        let (sessions, calls) = (Sessions::default(), no_calls());
        let id = Sessions::new_id().unwrap();
        assert!(sessions.insert(id.clone(), client(), &calls));
        let begin = Instant::now();
        sessions.drop_idle(begin + MAX_IDLE_TIME / 2, &calls);
        assert!(sessions.find(&id).is_some());
        sessions.drop_idle(begin + MAX_IDLE_TIME * 2, &calls);
        assert!(sessions.find(&id).is_none());
    }

    #[test]
    fn one_session_too_many_ends_the_one_that_was_unused_for_longest() {
        let (sessions, calls) = (Sessions::default(), no_calls());
        for number in 0..MAX_SESSIONS {
            assert!(sessions.insert(number.to_string(), client(), &calls));
        }
        assert!(sessions.find("0").is_some());
        assert!(sessions.insert("new".to_owned(), client(), &calls));
        assert!(sessions.find("1").is_none());
        for id in ["0", "2", "new"] {
            assert!(sessions.find(id).is_some());
        }
    }
}
