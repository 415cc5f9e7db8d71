//! The memory: whether a call has run before. A call that writes runs once, whatever form its input comes in and whatever
//! happened meanwhile.
//!
//! `identity` says which calls are the same, and `decision` which of several earlier calls that look alike a call is and what
//! becomes of it. Both are pure. `claims` keeps one entry for each attempt, and a `log_index` knows what a log says about
//! them. `store` finds both, `recollection` makes the answer of it, and `doubts` and `approvals` are what people see and say.

mod approvals;
mod claims;
mod decision;
mod doubts;
mod identity;
mod known_call;
mod log_index;
mod place;
mod recollection;
mod store;
#[cfg(test)]
mod tests;

pub use approvals::{WaitingCall, decide_call, waiting_calls};
pub use claims::{Claim, ClaimsDir, Decided, EntryName, Made, Question, Settlement};
pub use doubts::{
    CallInDoubt, SettleError, SettledCall, calls_in_doubt, record_settlement, settle_call,
    settled_calls,
};
pub use identity::{Identity, MemoryKey, Remembered};
pub(crate) use log_index::LogIndex;
pub use place::{MemoryUse, RememberedIn, RunAgain};
pub use store::MemoryStore;
