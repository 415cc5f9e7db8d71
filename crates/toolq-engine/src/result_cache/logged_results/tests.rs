//! What a run makes of the results of earlier ones, and what it leaves to later ones.

use std::time::Duration;

use toolq_core::types::{CachePolicy, LockMode};
use toolq_testing::success_outcome;

use super::*;
use crate::result_cache::SharedResultCache;
use crate::result_cache::tests::{ROOT, call_ref, read_call, with_lock};

/// A log in which the text of a result is also the input of its call, and its digest.
#[derive(Debug)]
struct ResultsByInput(Vec<LoggedResult>);

impl LoggedResults for ResultsByInput {
    fn list(&self) -> Vec<LoggedResult> {
        self.0.clone()
    }

    fn digest(&self, accepted: &AcceptedCall, _: Option<&CallLocks>) -> Option<String> {
        Some(accepted.input.text().to_owned())
    }

    fn load(&self, digest: &str) -> Option<ResultContent> {
        Some(ResultContent::Text(digest.into()))
    }
}

/// Returns a call that reads what has this name, and whose result is kept over runs.
fn logged_call(name: &str) -> AcceptedCall {
    let mut call = read_call(&format!(r#"{{"name":{name:?}}}"#));
    Arc::make_mut(&mut call.tool).cache = Some(CachePolicy {
        max_age: Duration::from_mins(1),
        over_runs: true,
    });
    with_lock(LockMode::Read, name, call)
}

#[test]
fn a_change_removes_the_results_of_earlier_runs_that_it_meets() {
    let calls = ["one", "other"].map(logged_call);
    let results = calls.iter().map(|call| LoggedResult {
        digest: call.input.text().to_owned(),
        tool_use_id: "toolu_0".to_owned(),
        taken: SystemTime::now(),
        locks: call.locks.clone(),
    });
    let log = ResultsByInput(results.collect());
    let cache = SharedResultCache::new(Some(Arc::new(log)));
    let found = |call| cache.find(call, ROOT.as_ref()).is_some();
    assert_eq!(calls.each_ref().map(found), [true, true]);
    let write = with_lock(LockMode::Write, "one", read_call("{}"));
    cache.note_change(&write, ROOT.as_ref());
    assert_eq!(calls.each_ref().map(found), [false, true]);
}

/// Only if its tool says so: then the log has the digest by which it is found.
#[test]
fn a_result_is_left_to_later_runs_with_what_was_read() {
    let cache = SharedResultCache::new(Some(Arc::new(ResultsByInput(Vec::new()))));
    let keep = |call: &AcceptedCall| {
        let ticket = cache.ticket(call, ROOT.as_ref()).unwrap();
        cache.keep(&ticket, &call_ref(), &success_outcome("read"))
    };
    let call = logged_call("one");
    let kept = keep(&call).unwrap();
    assert_eq!(
        (kept.digest, kept.locks),
        (call.input.text().to_owned(), call.locks)
    );
    assert_eq!(keep(&read_call("{}")), None);
}
