//! Which calls of a planned turn wait for which others, with the reasons.

use std::collections::HashMap;

use crate::plan::turn_plan::PlannedCall;
use crate::schedule::{CallAccess, Gate, OrderCause};
use crate::types::AcceptedCall;

/// Maximum number of calls that a text names.
const MAX_NAMED_CALLS: usize = 5;

/// Which calls of a turn wait for which others. Calls that wait only because another one does are left out.
#[derive(Debug)]
pub struct CallWaits<'a> {
    before: HashMap<usize, Vec<usize>>,
    accepted: HashMap<usize, &'a AcceptedCall>,
}

impl<'a> CallWaits<'a> {
    /// Returns the waits of these calls, or `None` if no call has locks.
    pub(crate) fn new<'c>(calls: impl Iterator<Item = &'c PlannedCall<'a>> + Clone) -> Option<Self>
    where
        'a: 'c,
    {
        let has_locks = |planned: &PlannedCall<'_>| planned.accepted.locks.is_some();
        if !calls.clone().any(has_locks) {
            return None;
        }
        let mut gate = Gate::default();
        let mut waits = Self {
            before: HashMap::new(),
            accepted: HashMap::new(),
        };
        for planned in calls {
            let position = planned.call.position;
            gate.push(position, CallAccess::of(planned.accepted));
            waits.before.insert(position, gate.calls_before(position));
            waits.accepted.insert(position, planned.accepted);
        }
        Some(waits)
    }

    /// Returns the positions of the calls that the call at `position` waits for.
    pub fn before(&self, position: usize) -> &[usize] {
        self.before.get(&position).map_or(&[], Vec::as_slice)
    }

    /// Returns a text such as `waits for call 3: writes src/a.rs`, with all waits of the call. Empty if it waits for no
    /// call.
    pub(crate) fn describe(&self, position: usize) -> String {
        let all = self.before(position);
        let parts = all.iter().take(MAX_NAMED_CALLS).map(|before| {
            let cause = self.describe_cause(position, *before);
            format!("call {before}{cause}")
        });
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() {
            return String::new();
        }
        let others = match all.len() - parts.len() {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        format!("waits for {}{others}", parts.join(", "))
    }

    fn describe_cause(&self, position: usize, before: usize) -> String {
        let access = |position| self.accepted.get(&position).copied().map(CallAccess::of);
        let (Some(call), Some(earlier)) = (access(position), access(before)) else {
            return String::new();
        };
        match call.waits_for(&earlier) {
            Some(OrderCause::Lock(lock)) => format!(": {}", lock.describe()),
            Some(OrderCause::NotSafe) | None => String::new(),
        }
    }
}
