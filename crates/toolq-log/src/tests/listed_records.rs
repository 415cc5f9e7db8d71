//! Records from a list, for tests of what a history makes of them. No file is written.

use std::borrow::Cow;

use crate::tests::sequence::complete_metadata;

use super::*;

/// A record: its id, its type, the id of its parent (0 for none), and the metadata that matters to the test.
pub(super) type ListedRecord = (u128, &'static str, u128, Value);

pub(super) fn record_id(id: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(id)
}

/// Passes the records to `visit`, each with the offset of its end. Only results have content: `"done"`.
pub(super) fn visit_listed(records: &[ListedRecord], mut visit: impl FnMut(&Record, u64)) {
    for (seq, (id, kind, parent, metadata)) in (0_u64..).zip(records) {
        let metadata = complete_metadata(kind, metadata);
        let raw_metadata = serde_json::value::to_raw_value(&metadata).unwrap();
        let content = if *kind == "tool_result" {
            "\"done\""
        } else {
            "null"
        };
        let content = RawValue::from_string(content.to_owned()).unwrap();
        let record = Record {
            line: seq + 1,
            offset: seq * 10,
            end_offset: seq * 10 + 10,
            seq,
            id: record_id(*id),
            parent: (*parent != 0).then(|| record_id(*parent)),
            timestamp: seq,
            kind: RecordKind::from_name(kind),
            content: RecordContent::Inline(Cow::Borrowed(&content)),
            raw_metadata: Cow::Borrowed(&raw_metadata),
        };
        visit(&record, record.end_offset);
    }
}

/// Returns what a log of these records says about its last task. Content can't be read again, since there is no file.
pub(super) fn list_history(records: &[ListedRecord]) -> TaskHistory {
    let mut history = TaskHistory::default();
    visit_listed(records, |record, end| {
        history.apply_record(record, end).unwrap();
    });
    history
}

/// The start of the call `call`.
pub(super) fn start_of(id: u128, call: u128, metadata: &Value) -> ListedRecord {
    let mut complete = json!({"tool_use_id": "a", "tool_name": "t", "attempt": 1, "idempotency_key": "k", "effect": "write"});
    let members = metadata.as_object().unwrap().clone();
    complete.as_object_mut().unwrap().extend(members);
    (id, "tool_start", call, complete)
}
