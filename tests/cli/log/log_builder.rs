//! Writes logs as specified in docs/session-log.md, including logs that no run would write.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "tests and benchmarks use parts of it, and may panic"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolq_core::os::ProcessIdentity;

/// A log that is being written.
pub struct LogBuilder {
    text: String,
    seq: u64,
    /// Milliseconds since 1970 of the next record.
    pub timestamp: u64,
}

/// Returns the ID of the record with this sequence number.
pub fn record_id(seq: u64) -> String {
    format!("00000000-0000-7000-8000-{seq:012x}")
}

fn session_metadata(format: &Value) -> Value {
    json!({
        "toolq": "0.1.0", "format": format, "tools": {"path": "tools.yaml", "sha256": "ab".repeat(32)},
        "cwd": "/work", "root": "/work", "jobs": 10, "pid": 1,
    })
}

impl LogBuilder {
    pub fn new() -> Self {
        Self {
            text: String::new(),
            seq: 0,
            timestamp: 1_763_755_200_000,
        }
    }

    /// Adds a record below the one with the sequence number `parent`. Returns its own sequence number.
    pub fn add_record(
        &mut self,
        kind: &str,
        parent: Option<u64>,
        content: &Value,
        metadata: &Value,
    ) -> u64 {
        let (seq, timestamp) = (self.seq, self.timestamp);
        let id = record_id(seq);
        let parent = parent.map_or_else(
            || "null".to_owned(),
            |seq| format!("\"{}\"", record_id(seq)),
        );
        let without_crc = format!(
            r#"{{"seq":{seq},"id":"{id}","parentId":{parent},"timestamp":{timestamp},"type":"{kind}","content":{content},"metadata":{metadata}"#
        );
        let crc = crc32fast::hash(without_crc.as_bytes());
        writeln!(self.text, "{without_crc},\"crc\":\"{crc:08x}\"}}").unwrap();
        self.seq += 1;
        seq
    }

    pub fn session(&mut self) -> u64 {
        self.session_with_format(&json!({"major": 1, "minor": 0}))
    }

    pub fn session_with_format(&mut self, format: &Value) -> u64 {
        let metadata = session_metadata(format);
        self.add_record("session", None, &Value::Null, &metadata)
    }

    /// Adds a session whose writer is this process.
    pub fn session_of_process(&mut self, process: &ProcessIdentity) -> u64 {
        let mut metadata = session_metadata(&json!({"major": 1, "minor": 0}));
        metadata["pid"] = json!(process.pid);
        metadata["pid_started"] = json!(process.start_ticks);
        metadata["boot_id"] = json!(process.boot_id);
        self.add_record("session", None, &Value::Null, &metadata)
    }

    pub fn turn(&mut self, session: u64, turn: usize) -> u64 {
        self.add_record(
            "turn",
            Some(session),
            &Value::Null,
            &json!({ "turn": turn }),
        )
    }

    pub fn call(&mut self, turn: u64, tool: &str, input: &Value) -> u64 {
        let metadata = json!({
            "tool_use_id": format!("toolu_{}", self.seq), "turn": 0, "position": 0, "batch": 0,
            "concurrency_safe": true, "reason": "effect", "input_sha256": "cd".repeat(32),
        });
        let content = json!({"name": tool, "input": input});
        self.add_record("tool_call", Some(turn), &content, &metadata)
    }

    pub fn start(&mut self, call: u64, tool: &str, attempt: u32) -> u64 {
        let metadata = json!({
            "tool_use_id": format!("toolu_{call}"), "tool_name": tool, "attempt": attempt,
            "idempotency_key": "key", "effect": "write",
        });
        self.add_record("tool_start", Some(call), &Value::Null, &metadata)
    }

    /// Adds the end of a call: a `tool_result`, `tool_skipped` or `tool_in_doubt` record.
    pub fn end(
        &mut self,
        kind: &str,
        call: u64,
        tool: &str,
        (status, ms, attempts): (&str, u64, u32),
    ) -> u64 {
        let metadata = json!({
            "tool_use_id": format!("toolu_{call}"), "tool_name": tool, "is_error": status != "ok",
            "status": status, "duration_ms": ms, "attempts": attempts,
        });
        self.add_record(
            kind,
            Some(call),
            &json!(format!("this is {status}")),
            &metadata,
        )
    }

    /// Adds a call that was started and has its result.
    pub fn finished_call(&mut self, turn: u64, tool: &str, status: &str, ms: u64) {
        let call = self.call(turn, tool, &json!({"path": "a"}));
        self.start(call, tool, 1);
        self.end("tool_result", call, tool, (status, ms, 1));
    }

    pub fn session_end(&mut self, session: u64) -> u64 {
        let metadata = json!({
            "turns": 1, "calls": 1, "results": 1, "errors": 0, "skipped": 0, "duration_ms": 5,
            "exit_code": 0, "in_doubt": 0,
        });
        self.add_record("session_end", Some(session), &Value::Null, &metadata)
    }

    /// Adds the successful result of a call that took `ms` milliseconds.
    pub fn result(&mut self, call: u64, tool: &str, ms: u64, content: &Value) -> u64 {
        let metadata = json!({
            "tool_use_id": format!("toolu_{call}"), "tool_name": tool, "is_error": false,
            "status": "ok", "duration_ms": ms, "attempts": 1, "exit": 0, "bytes": 20,
        });
        self.add_record("tool_result", Some(call), content, &metadata)
    }

    /// Returns the text that was added since the last time.
    pub fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Writes the log to a file.
    pub fn write_to(&self, path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &self.text).unwrap();
    }
}
