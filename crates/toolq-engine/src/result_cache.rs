//! Results of `read` calls, kept in memory for tools with a `cache`.
//!
//! A call that isn't `read` may change what a read returns. So it empties the cache when it starts, and when it ends; a read
//! that ran alongside isn't kept. What other programs change meanwhile isn't noticed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};

use toolq_core::types::{
    AcceptedCall, CacheHit, CallRef, CaptureStats, ClientContent, Effect, Outcome, ResultContent,
    Tool,
};

/// Maximum size of all results together, in bytes.
const MAX_TOTAL_BYTES: usize = 32 << 20;

/// A cache that all turns, agents and clients of an engine share.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedResultCache(Arc<Mutex<ResultCache>>);

#[derive(Debug, Default)]
struct ResultCache {
    entries: HashMap<CacheKey, CacheEntry>,
    total_bytes: usize,
    /// Increases with each change of the world.
    generation: u64,
}

/// What a result depends on, as far as toolq knows. The environment is the same for the life of the cache.
pub(crate) type CacheKey = [u8; 32];

#[derive(Debug)]
struct CacheEntry {
    outcome: Outcome,
    tool_use_id: String,
    taken: Moment,
    bytes: usize,
}

/// A read that is running, and whose result may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheTicket {
    key: CacheKey,
    generation: u64,
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
    pub(crate) fn find(&self, accepted: &AcceptedCall) -> Option<Outcome> {
        self.find_at(Moment::now(), accepted)
    }

    fn find_at(&self, now: Moment, accepted: &AcceptedCall) -> Option<Outcome> {
        let max_age = accepted.tool.cache?;
        let key = cache_key(accepted);
        let mut cache = self.lock();
        let entry = cache.entries.get(&key)?;
        let age = now.since(entry.taken);
        if age > max_age {
            cache.remove(&key);
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
    pub(crate) fn ticket(&self, accepted: &AcceptedCall) -> Option<CacheTicket> {
        accepted.tool.cache?;
        Some(CacheTicket {
            key: cache_key(accepted),
            generation: self.lock().generation,
        })
    }

    /// Keeps the result of a call, unless it failed, was cut, or something has changed since the ticket was given.
    pub(crate) fn keep(&self, ticket: CacheTicket, call: &CallRef, outcome: &Outcome) {
        self.keep_at(Moment::now(), ticket, call, outcome);
    }

    fn keep_at(&self, now: Moment, ticket: CacheTicket, call: &CallRef, outcome: &Outcome) {
        let Some(bytes) = keepable_bytes(outcome) else {
            return;
        };
        let mut cache = self.lock();
        if cache.generation != ticket.generation {
            return;
        }
        cache.remove(&ticket.key);
        while cache.total_bytes + bytes > MAX_TOTAL_BYTES {
            let entries = cache.entries.iter();
            let oldest = entries.min_by_key(|(_, entry)| entry.taken.monotonic);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                return;
            };
            cache.remove(&oldest);
        }
        cache.total_bytes += bytes;
        let entry = CacheEntry {
            outcome: outcome.clone(),
            tool_use_id: call.tool_use_id.clone(),
            taken: now,
            bytes,
        };
        cache.entries.insert(ticket.key, entry);
    }

    /// Empties the cache if a call of `tool` may change something. Called when it starts and when it ends. All results go,
    /// since nothing says what a call touches.
    pub(crate) fn note_change(&self, tool: &Tool) {
        if tool.effect != Effect::Read {
            let mut cache = self.lock();
            let generation = cache.generation + 1;
            *cache = ResultCache {
                generation,
                ..ResultCache::default()
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, ResultCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResultCache {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.total_bytes -= entry.bytes;
        }
    }
}

/// Returns the key of a call: its tool with all settings, which may change while `serve` runs, and its input.
fn cache_key(accepted: &AcceptedCall) -> CacheKey {
    let mut hasher = Sha256::new();
    hasher.update(format!("{:?}", accepted.tool));
    hasher.update([0]);
    hasher.update(accepted.input.text());
    hasher.finalize().into()
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
    let bytes = 1 << 10 | (content_bytes + client_bytes);
    (attachments.is_empty() && bytes <= MAX_TOTAL_BYTES).then_some(bytes)
}

fn client_bytes(content: &ClientContent) -> usize {
    let structured = content.structured.as_ref();
    let blocks = content.blocks.iter().flatten();
    structured.map_or(0, |json| json.get().len())
        + blocks.map(|block| block.get().len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use toolq_core::testing::{accepted_call, sample_call, sample_tool, success_outcome};
    use toolq_core::types::Verdict;

    use super::*;

    fn read_call(input: &str) -> AcceptedCall {
        let tool = Tool {
            cache: Some(Duration::from_mins(1)),
            effect: Effect::Read,
            ..sample_tool("read")
        };
        match accepted_call(0, tool, true, input).verdict {
            Verdict::Accepted(accepted) => *accepted,
            Verdict::Rejected(rejection) => panic!("{rejection:?}"),
        }
    }

    fn call_ref() -> CallRef {
        CallRef::new(&sample_call(0, "read", "{}"), None)
    }

    fn age_of(found: Option<Outcome>) -> Option<Duration> {
        let outcome = found?;
        Some(outcome.captured()?.cached.as_ref()?.age)
    }

    #[test]
    fn a_result_is_found_until_it_is_too_old() {
        let (cache, call) = (SharedResultCache::default(), read_call(r#"{"a":1}"#));
        let begin = Moment::now();
        let after = |seconds| Moment {
            monotonic: begin.monotonic + Duration::from_secs(seconds),
            ..begin
        };
        let ticket = cache.ticket(&call).unwrap();
        cache.keep_at(begin, ticket, &call_ref(), &success_outcome("one"));
        let age = age_of(cache.find_at(after(60), &call));
        assert_eq!(age, Some(Duration::from_mins(1)));
        let other = read_call(r#"{"a":2}"#);
        assert!(cache.find_at(after(1), &other).is_none());
        let mut changed = call.clone();
        Arc::make_mut(&mut changed.tool).max_output += 1;
        assert!(cache.find_at(after(1), &changed).is_none());
        assert!(cache.find_at(after(61), &call).is_none());
        assert!(cache.find_at(after(1), &call).is_none());
        // The machine slept for an hour, or the clock was set back.
        let ticket = cache.ticket(&call).unwrap();
        cache.keep_at(begin, ticket, &call_ref(), &success_outcome("one"));
        let hour = Duration::from_hours(1);
        let earlier = Moment {
            system: begin.system - hour,
            ..after(7)
        };
        let age = age_of(cache.find_at(earlier, &call));
        assert_eq!(age, Some(Duration::from_secs(7)));
        let slept = Moment {
            system: begin.system + hour,
            ..begin
        };
        assert!(cache.find_at(slept, &call).is_none());
    }

    /// A result that was read before a change, or while something changed, is never found after it.
    #[test]
    fn a_change_empties_the_cache_and_refuses_what_is_being_read() {
        let (cache, call) = (SharedResultCache::default(), read_call("{}"));
        let mut writer = call.tool.as_ref().clone();
        writer.effect = Effect::Idempotent;
        let ticket = |cache: &SharedResultCache| cache.ticket(&call).unwrap();
        let first = ticket(&cache);
        cache.keep(first, &call_ref(), &success_outcome("before"));
        cache.note_change(&call.tool);
        assert!(cache.find(&call).is_some(), "a read changes nothing");
        cache.note_change(&writer);
        let during = ticket(&cache);
        cache.note_change(&writer);
        cache.keep(during, &call_ref(), &success_outcome("during"));
        assert!(cache.find(&call).is_none());
    }

    #[test]
    fn only_complete_successes_are_kept_and_memory_is_bounded() {
        let cache = SharedResultCache::default();
        let keep = |input: &str, outcome: &Outcome| {
            let call = read_call(input);
            let ticket = cache.ticket(&call).unwrap();
            cache.keep(ticket, &call_ref(), outcome);
            cache.find(&call).is_some()
        };
        assert!(!keep("{}", &Outcome::NoBacking));
        let mut cut = success_outcome("cut");
        cut.captured_mut().unwrap().cut_bytes = 1;
        assert!(!keep("{}", &cut));
        let large = success_outcome(&"x".repeat(MAX_TOTAL_BYTES / 4));
        for number in 0..20 {
            assert!(keep(&format!(r#"{{"n":{number}}}"#), &large));
        }
        assert!(cache.lock().total_bytes <= MAX_TOTAL_BYTES);
        assert!(!keep(
            "[]",
            &success_outcome(&"x".repeat(MAX_TOTAL_BYTES + 1))
        ));
    }
}
