//! The results that a cache has, up to a total size: the oldest make room for new ones.

use std::collections::HashMap;

use crate::result_cache::{CacheKey, Moment};
use toolq_core::schedule::CallAccess;
use toolq_core::types::{CaptureStats, ClientContent, Outcome, ResultContent};

/// Maximum size of all results together, in bytes.
pub(super) const MAX_TOTAL_BYTES: usize = 32 << 20;

/// What an entry takes besides its content, roughly.
pub(super) const ENTRY_BYTES: usize = 1 << 10;

/// The results by the keys of their calls.
#[derive(Debug, Default)]
pub(super) struct CacheEntries {
    pub(super) by_key: HashMap<CacheKey, CacheEntry>,
    pub(super) total_bytes: usize,
}

/// A result.
#[derive(Debug)]
pub(super) struct CacheEntry {
    pub(super) outcome: Outcome,
    pub(super) tool_use_id: String,
    pub(super) taken: Moment,
    pub(super) bytes: usize,
    pub(super) access: CallAccess,
}

impl CacheEntries {
    pub(super) fn get(&self, key: &CacheKey) -> Option<&CacheEntry> {
        self.by_key.get(key)
    }

    pub(super) fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.by_key.remove(key) {
            self.total_bytes -= entry.bytes;
        }
    }

    /// Adds a result in the place of an earlier one of the same call, and removes the oldest ones until there is room for it.
    pub(super) fn insert(&mut self, key: CacheKey, entry: CacheEntry) {
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
    pub(super) fn retain(&mut self, is_kept: impl Fn(&CallAccess) -> bool) {
        self.by_key.retain(|_, entry| is_kept(&entry.access));
        self.total_bytes = self.by_key.values().map(|entry| entry.bytes).sum();
    }
}

/// Returns the size of a complete success without files; `None` for any other outcome.
pub(super) fn keepable_bytes(outcome: &Outcome) -> Option<usize> {
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
