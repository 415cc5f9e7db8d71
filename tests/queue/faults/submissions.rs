//! Inputs that are submitted one after another, each until `submit` comes to its end.

use std::fmt::Write as _;
use std::fs;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::faults::cluster::REPLICAS;
use crate::faults::expected::{ExpectedCall, ExpectedTurn};
use crate::faults::fault_run::{QUEUE, kill};
use crate::support::CliSandbox;

/// How many turns one `submit` brings.
const TURNS_PER_INPUT: usize = 4;
/// A turn has reads side by side, and then writes one after another.
const EFFECTS: [bool; 5] = [false, false, true, true, true];

/// What was submitted.
pub struct Submissions {
    pub turns: Vec<ExpectedTurn>,
    /// The inputs that `submit` has ended with.
    submitted_inputs: usize,
    submitting: Option<Child>,
}

impl Submissions {
    pub fn new() -> Self {
        Self {
            turns: Vec::new(),
            submitted_inputs: 0,
            submitting: None,
        }
    }

    /// Returns whether something was submitted.
    pub fn has_begun(&self) -> bool {
        self.submitted_inputs > 0
    }

    /// Returns whether `submit` has ended with all inputs.
    pub fn are_whole(&self) -> bool {
        self.submitted_inputs * TURNS_PER_INPUT == self.turns.len()
    }

    /// Submits the last input again if `submit` didn't come to its end, or the next one if there may be one.
    pub fn keep_going(&mut self, sandbox: &CliSandbox, wants_more: bool) {
        if let Some(submitting) = &mut self.submitting {
            let Some(status) = submitting.try_wait().unwrap() else {
                return;
            };
            self.submitted_inputs += usize::from(status.success());
            self.submitting = None;
        }
        if self.are_whole() {
            if !wants_more {
                return;
            }
            self.write_input(sandbox);
        }
        let file = self.file_name();
        let mut command =
            sandbox.command(&["queue", "submit", QUEUE, "--replicas", REPLICAS, &file]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.submitting = Some(command.spawn().unwrap());
    }

    fn file_name(&self) -> String {
        format!("in{}.jsonl", self.submitted_inputs)
    }

    fn write_input(&mut self, sandbox: &CliSandbox) {
        let mut lines = String::new();
        for _ in 0..TURNS_PER_INPUT {
            let turn = self.turns.len();
            let (mut calls, mut blocks) = (Vec::new(), Vec::new());
            for (position, is_write) in EFFECTS.into_iter().enumerate() {
                let name = format!("t{turn}c{position}");
                let time = [0.05, 0.1, 0.2][(turn + position) % 3];
                let input = json!({"item": name, "time": time});
                let tool = if is_write { "write" } else { "read" };
                blocks.push(json!({"type": "tool_use", "id": name, "name": tool, "input": input}));
                calls.push(ExpectedCall { name, is_write });
            }
            let message = json!({"id": format!("msg_{turn}"), "type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use"});
            writeln!(lines, "{message}").unwrap();
            self.turns.push(ExpectedTurn { calls });
        }
        fs::write(sandbox.path().join(self.file_name()), lines).unwrap();
    }

    /// Kills `submit`. Returns whether it ran.
    pub fn kill(&mut self) -> bool {
        kill(&mut self.submitting)
    }
}

impl Drop for Submissions {
    fn drop(&mut self) {
        self.kill();
    }
}
