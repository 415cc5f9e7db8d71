//! Records of every type in any order, by choices.

use crate::choices::Choices;

/// Maximum number of records.
const MAX_RECORDS: usize = 40;
const KINDS: [&str; 24] = [
    "session",
    "turn",
    "tool_call",
    "tool_call",
    "tool_start",
    "tool_start",
    "tool_result",
    "tool_result",
    "tool_skipped",
    "tool_in_doubt",
    "probe_start",
    "probe_end",
    "resolve",
    "session_end",
    "model_response",
    "recovered",
    "describe_start",
    "describe_end",
    "approval",
    "list_start",
    "list_end",
    "server_start",
    "server_end",
    "tools_change",
];
const STATUSES: [&str; 9] = [
    "ok",
    "failed",
    "interrupted",
    "over_budget",
    "invalid_input",
    "not_executed",
    "in_doubt",
    "cancelled",
    "timeout",
];

/// Writes a log without seals.
pub(crate) fn write_records(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut log = format!("{}\n", record(0, None, "session", &session("null")));
    let mut count = 1;
    while count < MAX_RECORDS && !choices.is_empty() {
        let kind = *choices.pick(&KINDS);
        // Most records belong to one of the last ones.
        let parent = match choices.byte() {
            0 => None,
            choice => Some(count - 1 - usize::from(choice - 1) % count.min(8)),
        };
        let parent = if kind == "session" { None } else { parent };
        let metadata = metadata(kind, choices);
        log += &record(count, parent, kind, &metadata);
        log.push('\n');
        count += 1;
    }
    log.into_bytes()
}

fn record(number: usize, parent: Option<usize>, kind: &str, metadata: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{}\"", id(parent)));
    let content = match kind {
        "tool_call" => r#"{"name":"n","input":{}}"#,
        "tool_result" | "tool_in_doubt" | "tool_skipped" | "resolve" => "\"text\"",
        "model_response" => r#"{"type":"message","role":"assistant","content":[]}"#,
        _ => "null",
    };
    format!(
        r#"{{"seq":0,"id":"{}","parentId":{parent},"timestamp":1,"type":"{kind}","content":{content},"metadata":{{{metadata}}}"#,
        id(number)
    )
}

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

fn session(resumes: &str) -> String {
    format!(
        r#""toolq":"0","format":{{"major":1,"minor":0}},"tools":{{"path":"t","sha256":"00"}},"cwd":"/","root":"/","jobs":1,"pid":1,"resumes":{resumes},"epoch":1"#
    )
}

fn metadata(kind: &str, choices: &mut Choices<'_>) -> String {
    let call = r#""tool_use_id":"i","tool_name":"n""#;
    match kind {
        "session" => match choices.byte() % 4 {
            0 => session("null"),
            choice => session(&format!("\"{}\"", id(usize::from(choice - 1)))),
        },
        "turn" if choices.flag() => format!(r#""turn":{},"agent":"n""#, choices.below(2)),
        "turn" => format!(r#""turn":{}"#, choices.below(2)),
        "tool_call" => {
            let (turn, position) = (choices.below(2), choices.below(3));
            let batch = *choices.pick(&["0", "null"]);
            format!(
                r#"{call},"turn":{turn},"position":{position},"batch":{batch},"concurrency_safe":true,"reason":"r","input_sha256":"00""#
            )
        }
        "tool_start" => {
            let attempt = 1 + choices.below(3);
            let effect = *choices.pick(&["read", "idempotent", "write"]);
            let agent = *choices.pick(&["", "", ",\"needs_approval\":true", ",\"agent\":\"n\""]);
            let after = *choices.pick(&["", ",\"after\":{\"status\":\"timeout\",\"wait_ms\":1}"]);
            format!(
                r#"{call},"attempt":{attempt},"idempotency_key":"k","effect":"{effect}"{agent}{after}"#
            )
        }
        "tool_result" | "tool_skipped" | "tool_in_doubt" => {
            let (status, attempts) = (*choices.pick(&STATUSES), choices.below(3));
            let cached = r#","cached":{"age_ms":1,"tool_use_id":"j"}"#;
            let cached = *choices.pick(&["", "", "", cached]);
            format!(
                r#"{call},"is_error":false,"status":"{status}","duration_ms":0,"attempts":{attempts}{cached}"#
            )
        }
        "probe_end" => {
            let finding = *choices.pick(&["done", "not_done", "unknown", "new"]);
            format!(r#"{call},"finding":"{finding}","status":"ok","duration_ms":0"#)
        }
        "resolve" => format!(r#"{call},"done":{},"is_error":false"#, choices.flag()),
        "session_end" => {
            r#""turns":0,"calls":0,"results":0,"errors":0,"skipped":0,"duration_ms":0,"exit_code":0"#
                .to_owned()
        }
        "approval" => {
            let decision = *choices.pick(&["yes", "no", "new"]);
            format!(r#"{call},"decision":"{decision}","by":"terminal""#)
        }
        "list_start" => r#""server":"s""#.to_owned(),
        "list_end" => r#""server":"s","duration_ms":0,"tools":1,"sha256":"00""#.to_owned(),
        "server_start" => {
            let earlier_starts = choices.below(2);
            format!(r#""server":"s","earlier_starts":{earlier_starts},"ready_ms":0"#)
        }
        "server_end" => {
            let cause = *choices.pick(&["run_ended", "idle", "exited", "given_up"]);
            format!(r#""server":"s","cause":"{cause}","duration_ms":0,"calls":1"#)
        }
        "tools_change" => {
            r#""tools":{"path":"t","sha256":"01"}"#.to_owned()
        }
        "model_response" => format!(r#"{call},"turn":{}"#, choices.below(2)),
        "recovered" => r#""dropped_bytes":1,"sha256":"00","file":"f""#.to_owned(),
        _ => call.to_owned(),
    }
}
