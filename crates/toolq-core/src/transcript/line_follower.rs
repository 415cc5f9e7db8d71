//! Reads JSON lines that are answered one at a time: bytes in as they arrive, a recording per line out.
//!
//! Lines are independent of each other: a call isn't matched with a result in a later line.

use std::collections::{BTreeMap, VecDeque};
use std::io::Cursor;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::text::format_bytes;
use crate::transcript::input_source::{InputError, InputSource, LineCol};
use crate::transcript::recording::Recording;
use crate::types::Dialect;

/// What to do about a document that goes on in the next line.
const ONE_LINE_HINT: &str = "`--follow` reads one JSON document per line; `jq -c --unbuffered .` in front of it writes them so";

/// A line that is to be answered.
pub enum FollowedLine {
    /// A message or anything else that a conversation or log contains. It may have no calls.
    Recording(Box<Recording>),
    /// The API's report that a request failed. There is nothing to answer.
    ApiError(InputError),
    /// Anything else. Nothing on the line runs.
    Invalid(InputError),
}

/// Splits a byte stream into lines and reads each as a [`Recording`].
#[derive(Debug)]
pub struct LineFollower {
    name: String,
    given_dialect: Option<Dialect>,
    /// The dialect of the session log, once a line shows that the input is one.
    log_dialect: Option<Dialect>,
    /// Maximum size of a line, in bytes.
    max_line_bytes: u64,
    /// The line that is still arriving.
    partial_line: Vec<u8>,
    /// Complete lines, each with its number.
    complete_lines: VecDeque<(usize, Vec<u8>)>,
    /// The number of the line that is still arriving, from 1.
    line_number: usize,
    /// The rest of the line that is still arriving is dropped, because the line is too long.
    is_dropping: bool,
}

impl LineFollower {
    /// Creates a follower. `name` is the display name of the input, and a line may have at most `max_line_bytes` bytes.
    pub fn new(
        name: impl Into<String>,
        given_dialect: Option<Dialect>,
        max_line_bytes: u64,
    ) -> Self {
        Self {
            name: name.into(),
            given_dialect,
            log_dialect: None,
            max_line_bytes,
            partial_line: Vec::new(),
            complete_lines: VecDeque::new(),
            line_number: 1,
            is_dropping: false,
        }
    }

    /// Adds the next bytes of the input.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        self.extend_line(pieces.next().unwrap_or_default());
        for piece in pieces {
            self.end_line();
            self.extend_line(piece);
        }
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        if !self.is_dropping {
            self.partial_line.extend_from_slice(bytes);
        }
    }

    /// Ends the line that is still arriving. To be called at the end of the input, too.
    pub fn end_line(&mut self) {
        let line = std::mem::take(&mut self.partial_line);
        if !line.trim_ascii().is_empty() {
            self.complete_lines.push_back((self.line_number, line));
        }
        self.line_number += 1;
        self.is_dropping = false;
    }

    fn follow_line(&mut self, line_number: usize, line: Vec<u8>) -> FollowedLine {
        let form = LineForm::of(&line);
        match (self.read_line(line_number, line), form) {
            (Ok(recording), _) => FollowedLine::Recording(Box::new(recording)),
            (Err(error), LineForm::ApiError) => FollowedLine::ApiError(error),
            (Err(error), LineForm::Incomplete) => FollowedLine::Invalid(InputError {
                hint: Some(ONE_LINE_HINT.to_owned()),
                ..error
            }),
            (Err(error), LineForm::Other) => FollowedLine::Invalid(error),
        }
    }

    fn read_line(&mut self, line_number: usize, line: Vec<u8>) -> Result<Recording, InputError> {
        let source = InputSource::from_pipe(&self.name, Cursor::new(line))?;
        let dialects = (self.given_dialect, self.log_dialect);
        let read =
            Recording::read_line(source, dialects, self.max_line_bytes).map_err(|error| {
                InputError {
                    position: error.position.map(|position| LineCol {
                        line: line_number,
                        ..position
                    }),
                    ..error
                }
            })?;
        let read = read.on_line(line_number);
        if read.dialect() == Dialect::Toolq {
            return Err(self.own_log_error(line_number));
        }
        // A log's lines of other kinds can't be recognized on their own, so they're read in the same dialect.
        if matches!(read.dialect(), Dialect::ClaudeCode | Dialect::Codex) {
            self.log_dialect = Some(read.dialect());
        }
        Ok(read)
    }

    /// Rejects a record of toolq's own session log: its dialect has no form for the results of a line.
    fn own_log_error(&self, number: usize) -> InputError {
        let message = "a record of toolq's own session log can't be used with --follow";
        let hint = "without --follow, the open calls of the log run; `toolq log show` displays it";
        self.line_error(number, message.to_owned(), Some(hint))
    }

    fn line_too_large_error(&self) -> InputError {
        let limit = format_bytes(self.max_line_bytes);
        let message = format!("the line is longer than {limit}");
        self.line_error(self.line_number, message, None)
    }

    /// Returns the error for an input that ended without a line.
    pub fn empty_error(&self) -> InputError {
        let hint = "write one JSON document per line, such as a model's message";
        self.line_error(1, "the input is empty".to_owned(), Some(hint))
    }

    fn line_error(&self, line: usize, message: String, hint: Option<&str>) -> InputError {
        InputError {
            input_name: self.name.clone(),
            position: Some(LineCol { line, column: 1 }),
            message,
            hint: hint.map(str::to_owned),
            errno: None,
        }
    }
}

/// Yields each complete line, and `None` until more bytes arrive. Blank lines are skipped.
impl Iterator for LineFollower {
    type Item = FollowedLine;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((number, line)) = self.complete_lines.pop_front() {
            return Some(self.follow_line(number, line));
        }
        if self.partial_line.len() as u64 > self.max_line_bytes {
            self.partial_line.clear();
            self.is_dropping = true;
            return Some(FollowedLine::Invalid(self.line_too_large_error()));
        }
        None
    }
}

/// What the text of a line that can't be read shows.
enum LineForm {
    /// APIs report errors like this.
    ApiError,
    /// It ends in the middle of a JSON value, as the lines of a document with line breaks do.
    Incomplete,
    Other,
}

impl LineForm {
    fn of(line: &[u8]) -> Self {
        let Ok(object) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(line) else {
            let read = serde_json::from_slice::<IgnoredAny>(line);
            return if read.is_err_and(|error| error.is_eof()) {
                Self::Incomplete
            } else {
                Self::Other
            };
        };
        match object.get("error") {
            Some(error) if error.get() != "null" => Self::ApiError,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of calls in each line, or why it can't be read.
    fn read_lines(pieces: &[&[u8]], max: u64) -> Vec<Result<usize, String>> {
        let mut follow = LineFollower::new("lines", None, max);
        let mut found = Vec::new();
        let mut take = |follow: &mut LineFollower| {
            found.extend(follow.by_ref().map(|line| match line {
                FollowedLine::Recording(line) => Ok(line.open_calls(false)),
                FollowedLine::ApiError(error) => Err(format!("API: {error}")),
                FollowedLine::Invalid(error) => Err(error.to_string()),
            }));
        };
        for piece in pieces {
            follow.push(piece);
            take(&mut follow);
        }
        follow.end_line();
        take(&mut follow);
        found
    }

    const LINES: &str = concat!(
        r#"[{"type":"tool_use","id":"a","name":"n","input":{}}]"#,
        "\r\n\n  \n",
        r#"{"role":"user","content":"hé"}"#,
        "\n[]\n",
        r#"{"messages":[{"role":"user","content":"x"}]}"#,
        "\n",
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"b","function":{"name":"n","arguments":""}}]}"#,
    );

    #[test]
    fn a_line_is_read_once_it_is_complete() {
        let expected: Vec<Result<usize, String>> = [1, 0, 0, 0, 1].map(Ok).into();
        assert_eq!(read_lines(&[LINES.as_bytes()], 1000), expected);
        let bytes: Vec<&[u8]> = LINES.as_bytes().chunks(1).collect();
        assert_eq!(read_lines(&bytes, 1000), expected);
        let mut follow = LineFollower::new("lines", None, 1000);
        follow.push(b"[]");
        assert!(follow.next().is_none());
        follow.push(b"\n");
        assert!(follow.next().is_some());
    }

    #[test]
    fn an_unreadable_line_is_told_from_an_api_error_and_the_next_line_is_read() {
        for (bad, expected) in [
            ("{\"a\":", "lines:2:6: the input ends"),
            (" nonsense", "lines:2:3: the input is not valid JSON"),
            (
                r#"{"error":{"message":"no"}}"#,
                "API: lines:2:1: this is an API error",
            ),
            ("data: {}", "lines:2:1: the input is not valid JSON"),
            (
                r#"{"seq":1,"id":"x","parentId":null,"timestamp":1,"type":"session","content":null,"metadata":{}}"#,
                "lines:2:1: a record of toolq's own session log",
            ),
        ] {
            let found = read_lines(&[format!("[]\n{bad}\n[]\n").as_bytes()], 1000);
            assert_eq!((found.len(), &found[2]), (3, &Ok(0)), "{found:?}");
            let error = found[1].as_ref().unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_with_the_results_of_a_line_has_its_place_in_the_input() {
        let call = r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"{}"}}]}"#;
        let result = r#"{"role":"tool","tool_call_id":"b","content":"r"}"#;
        let mut follow = LineFollower::new("lines", None, 1000);
        follow.push(format!("[]\n[{call},{result}]\n").as_bytes());
        let found = follow.by_ref().filter_map(|line| match line {
            FollowedLine::Recording(line) => line.misplaced_result()?.position,
            FollowedLine::ApiError(_) | FollowedLine::Invalid(_) => None,
        });
        let column = call.len() + 3;
        assert_eq!(found.collect::<Vec<_>>(), [LineCol { line: 2, column }]);
    }

    /// Memory doesn't grow with a line that never ends, and the line after it is read.
    #[test]
    fn the_rest_of_a_line_that_is_too_long_is_dropped() {
        let long = [b' '; 20];
        let found = read_lines(&[b"[]\n[", &long, &long, b"]\n[]\n"], 16);
        let too_long = Err("lines:2:1: the line is longer than 16 bytes".to_owned());
        assert_eq!(found, [Ok(0), too_long, Ok(0)]);
    }

    /// Once a message shows that the input is a log, lines of other kinds are accepted.
    #[test]
    fn a_log_can_be_followed() {
        let lines = concat!(
            r#"{"type":"assistant","uuid":"u","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]}}"#,
            "\n",
            r#"{"type":"summary","summary":"s"}"#,
        );
        assert_eq!(read_lines(&[lines.as_bytes()], 1000), [Ok(1), Ok(0)]);
    }
}
