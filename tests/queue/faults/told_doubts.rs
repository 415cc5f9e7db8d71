//! What a queue tells of calls in doubt.

use std::collections::HashMap;

use serde_json::Value;

use crate::faults::fault_run::QUEUE;
use crate::support::CliSandbox;
use crate::support::waiting::wait_until;

/// Returns the calls in doubt that `queue status` tells, with their turns.
pub fn told_doubts(sandbox: &CliSandbox) -> Vec<(String, String)> {
    let status = output_of(sandbox, &["queue", "status", QUEUE, "--format", "json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
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
        let log = logs
            .entry(turn.clone())
            .or_insert_with(|| output_of(sandbox, &["queue", "log", QUEUE, &turn]));
        by_call.insert(id, log.clone());
    }
    by_call
}

/// Runs a command until it succeeds: servers may still be choosing a leader.
fn output_of(sandbox: &CliSandbox, arguments: &[&str]) -> String {
    let mut text = String::new();
    wait_until("a command of the queue succeeds", || {
        let output = sandbox.command(arguments).output().unwrap();
        text = String::from_utf8(output.stdout).unwrap();
        output.status.success()
    });
    text
}
