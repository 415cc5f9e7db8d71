//! What a queue tells of calls in doubt.

use std::collections::HashMap;

use serde_json::Value;

use crate::faults::fault_run::QUEUE;
use crate::support::CliSandbox;

/// Returns the calls in doubt that `queue status` tells, with their turns.
pub fn told_doubts(sandbox: &CliSandbox) -> Vec<(String, String)> {
    let mut command = sandbox.command(&["queue", "status", QUEUE, "--format", "json"]);
    let output = command.output().unwrap().stdout;
    let status: Value = serde_json::from_slice(&output).unwrap_or_default();
    let calls = status["in_doubt"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let calls = calls
        .iter()
        .map(|call| (text(&call["id"]), text(&call["turn"])));
    calls.collect()
}

/// Returns the logs of the turns with calls in doubt, by the id of the call.
pub fn read_logs_of_doubts(sandbox: &CliSandbox) -> HashMap<String, String> {
    let mut logs: HashMap<String, String> = HashMap::new();
    let mut by_call = HashMap::new();
    for (id, turn) in told_doubts(sandbox) {
        let log = logs.entry(turn.clone()).or_insert_with(|| {
            let mut command = sandbox.command(&["queue", "log", QUEUE, &turn]);
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        });
        by_call.insert(id, log.clone());
    }
    by_call
}
