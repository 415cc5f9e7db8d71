//! Results of `read` calls, kept in memory for tools with a `cache`.
//!
//! A call that isn't `read` may change what a read returns. So it removes results when it starts, and when it ends; a read
//! that ran alongside isn't kept. With locks on both sides, this is only about what they meet. What other programs change
//! meanwhile isn't noticed.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use toolq_core::check::recheck_locks;
use toolq_core::schedule::CallAccess;
use toolq_core::types::{
    AcceptedCall, CacheHit, CallLocks, CallRef, CaptureStats, ClientContent, Effect, Outcome,
    ResultContent,
};

/// A cache that all turns, agents and clients of an engine share.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedResultCache(Arc<Mutex<ResultCache>>);

#[derive(Debug, Default)]
struct ResultCache {
    entries: CacheEntries,
    /// The reads that are running, as long as their calls hold their tickets.
    running: Vec<Weak<CacheTicket>>,
}

/// What a result depends on, as far as toolq knows. The environment is the same for the life of the cache.
type CacheKey = [u8; 32];

/// A read that is running. Its result may be kept, as long as the cache knows the ticket.
#[derive(Debug)]
pub(crate) struct CacheTicket {
    key: CacheKey,
    access: CallAccess,
}

/// A moment on two clocks: one doesn't advance while the machine sleeps, and the other may be set back.
#[derive(Debug, Clone, Copy)]
struct Moment {
    monotonic: Instant,
    system: SystemTime,
}

impl Moment {
    fn now() -> Self {
        Self {
            monotonic: Instant::now(),
            system: SystemTime::now(),
        }
    }

    /// Returns how long ago `earlier` was, by the clock that says longer.
    fn since(self, earlier: Self) -> Duration {
        let monotonic = self.monotonic.saturating_duration_since(earlier.monotonic);
        let system = self.system.duration_since(earlier.system);
        monotonic.max(system.unwrap_or_default())
    }
}

impl SharedResultCache {
    /// Returns the result of an earlier call of the same tool with the same input, if there is one that isn't too old.
    pub(crate) fn find(&self, accepted: &AcceptedCall, root: &Path) -> Option<Outcome> {
        // Most tools have no cache, and don't need to know the time.
        accepted.tool.cache?;
        self.find_at(Moment::now(), accepted, root)
    }

    fn find_at(&self, now: Moment, accepted: &AcceptedCall, root: &Path) -> Option<Outcome> {
        let max_age = accepted.tool.cache?.max_age;
        let access = current_access(accepted, root);
        let key = cache_key(accepted, &access);
        let mut cache = self.0.lock();
        let entry = cache.entries.get(&key)?;
        let age = now.since(entry.taken);
        if age > max_age {
            cache.entries.remove(&key);
            return None;
        }
        let mut outcome = entry.outcome.clone();
        outcome.captured_mut()?.cached = Some(Box::new(CacheHit {
            age,
            tool_use_id: entry.tool_use_id.clone(),
        }));
        Some(outcome)
    }

    /// Returns a ticket for the result of a call that starts now; `None` if it isn't to be kept.
    pub(crate) fn ticket(&self, accepted: &AcceptedCall, root: &Path) -> Option<Arc<CacheTicket>> {
        accepted.tool.cache?;
        let access = current_access(accepted, root);
        let mut cache = self.0.lock();
        let ticket = Arc::new(CacheTicket {
            key: cache_key(accepted, &access),
            access,
        });
        cache.running.retain(|read| read.strong_count() > 0);
        cache.running.push(Arc::downgrade(&ticket));
        Some(ticket)
    }

    /// Keeps the result of a call, unless it failed, was cut, or something that it may have read has changed since the
    /// ticket was given.
    pub(crate) fn keep(&self, ticket: &Arc<CacheTicket>, call: &CallRef, outcome: &Outcome) {
        self.keep_at(Moment::now(), ticket, call, outcome);
    }

    fn keep_at(&self, now: Moment, ticket: &Arc<CacheTicket>, call: &CallRef, outcome: &Outcome) {
        let Some(bytes) = keepable_bytes(outcome) else {
            return;
        };
        let mut cache = self.0.lock();
        let is_ticket = |read: &Weak<CacheTicket>| read.as_ptr() == Arc::as_ptr(ticket);
        if !cache.running.iter().any(is_ticket) {
            return;
        }
        let entry = CacheEntry {
            outcome: outcome.clone(),
            tool_use_id: call.tool_use_id.clone(),
            taken: now,
            bytes,
            access: ticket.access.clone(),
        };
        cache.entries.insert(ticket.key, entry);
    }

    /// Removes the results that a call may change, unless it is `read`. Called when it starts and when it ends, since
    /// its paths may lead elsewhere at the end.
    pub(crate) fn note_change(&self, accepted: &AcceptedCall, root: &Path) {
        if accepted.tool.effect == Effect::Read {
            return;
        }
        let checked = CallAccess::of(accepted);
        let now = current_access(accepted, root);
        let may_change = |read: &CallAccess| checked.may_change(read) || now.may_change(read);
        let mut cache = self.0.lock();
        cache
            .running
            .retain(|read| read.upgrade().is_some_and(|read| !may_change(&read.access)));
        cache.entries.retain(|read| !may_change(read));
    }
}

/// Returns what a call reads or changes now: its paths may lead elsewhere than when it was checked.
fn current_access(accepted: &AcceptedCall, root: &Path) -> CallAccess {
    let changed: Option<CallLocks> = recheck_locks(accepted, root);
    let checked = CallAccess::of(accepted);
    CallAccess {
        locks: changed.or(checked.locks),
        ..checked
    }
}

/// Returns the key of a call: its tool with all settings, which may change while `serve` runs, its input, and where the paths
/// in its locks lead.
fn cache_key(accepted: &AcceptedCall, access: &CallAccess) -> CacheKey {
    let mut hasher = Sha256::new();
    hasher.update(format!("{:?}{:?}", accepted.tool, access.locks));
    hasher.update([0]);
    hasher.update(accepted.input.text());
    hasher.finalize().into()
}

// The results that a cache has, up to a total size: the oldest make room for new ones.

/// Maximum size of all results together, in bytes.
const MAX_TOTAL_BYTES: usize = 32 << 20;

/// What an entry takes besides its content, roughly.
const ENTRY_BYTES: usize = 1 << 10;

/// The results by the keys of their calls.
#[derive(Debug, Default)]
struct CacheEntries {
    by_key: HashMap<CacheKey, CacheEntry>,
    total_bytes: usize,
}

/// A result.
#[derive(Debug)]
struct CacheEntry {
    outcome: Outcome,
    tool_use_id: String,
    taken: Moment,
    bytes: usize,
    access: CallAccess,
}

impl CacheEntries {
    fn get(&self, key: &CacheKey) -> Option<&CacheEntry> {
        self.by_key.get(key)
    }

    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.by_key.remove(key) {
            self.total_bytes -= entry.bytes;
        }
    }

    /// Adds a result in the place of an earlier one of the same call, and removes the oldest ones until there is room for it.
    fn insert(&mut self, key: CacheKey, entry: CacheEntry) {
        self.remove(&key);
        while self.total_bytes + entry.bytes > MAX_TOTAL_BYTES {
            let entries = self.by_key.iter();
            let oldest = entries.min_by_key(|(_, entry)| entry.taken.monotonic);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                return;
            };
            self.remove(&oldest);
        }
        self.total_bytes += entry.bytes;
        self.by_key.insert(key, entry);
    }

    /// Keeps only the results of calls with such an access.
    fn retain(&mut self, is_kept: impl Fn(&CallAccess) -> bool) {
        self.by_key.retain(|_, entry| is_kept(&entry.access));
        self.total_bytes = self.by_key.values().map(|entry| entry.bytes).sum();
    }
}

/// Returns the size of a complete success without files; `None` for any other outcome.
fn keepable_bytes(outcome: &Outcome) -> Option<usize> {
    let Outcome::Succeeded {
        content,
        captured:
            CaptureStats {
                cut_bytes: 0,
                saved_path: None,
                attachments,
                cached: None,
                ..
            },
        for_clients,
        ..
    } = outcome
    else {
        return None;
    };
    let content_bytes = match content {
        ResultContent::Text(text) => text.len(),
        ResultContent::Blocks(blocks) => blocks.iter().map(|block| block.get().len()).sum(),
    };
    let client_bytes = for_clients
        .as_ref()
        .map_or(0, |content| client_bytes(content));
    let bytes = ENTRY_BYTES + content_bytes + client_bytes;
    (attachments.is_empty() && bytes <= MAX_TOTAL_BYTES).then_some(bytes)
}

fn client_bytes(content: &ClientContent) -> usize {
    let structured = content.structured.as_ref();
    let blocks = content.blocks.iter().flatten();
    structured.map_or(0, |json| json.get().len())
        + blocks.map(|block| block.get().len()).sum::<usize>()
}
