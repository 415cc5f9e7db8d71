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

    /// Ends the sessions that nobody uses any more.
    pub(super) fn drop_idle(&self, calls: &OpenCalls) {
        self.lock().retain(|_, session| {
            session.last_used.elapsed() < MAX_IDLE_TIME || calls.has_calls_of(&session.client)
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
