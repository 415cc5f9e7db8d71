//! JSON lines that are answered one by one: bytes in, as they arrive; a recording for each line out. A line is by itself:
//! a result in a later one is not waited for.

use std::collections::VecDeque;
use std::io::Cursor;

use crate::text::format_bytes;
use crate::transcript::error::{InputError, Place};
use crate::transcript::recording::Recording;
use crate::transcript::source::Source;
use crate::types::Dialect;

/// Lines that are being read.
#[derive(Debug)]
pub struct Follow {
    name: String,
    from: Option<Dialect>,
    /// Bytes that a line may have.
    max: u64,
    /// The line that is still arriving.
    rest: Vec<u8>,
    /// The lines that are whole, each with its number.
    lines: VecDeque<(usize, Vec<u8>)>,
    /// The number of the line that is still arriving, from 1.
    number: usize,
    /// A line was found that can't be read.
    broke: bool,
}

impl Follow {
    /// Lines of which nothing came yet; `name` is shown to people. No line may have more than `max` bytes.
    pub fn new(name: impl Into<String>, from: Option<Dialect>, max: u64) -> Self {
        Self {
            name: name.into(),
            from,
            max,
            rest: Vec::new(),
            lines: VecDeque::new(),
            number: 1,
            broke: false,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        self.rest
            .extend_from_slice(pieces.next().unwrap_or_default());
        for piece in pieces {
            self.end();
            self.rest.extend_from_slice(piece);
        }
    }

    /// The line that is arriving is whole: it ended, or the input did.
    pub fn end(&mut self) {
        let line = std::mem::take(&mut self.rest);
        if !line.trim_ascii().is_empty() {
            self.lines.push_back((self.number, line));
        }
        self.number += 1;
    }

    fn read(&mut self, number: usize, line: Vec<u8>) -> Result<Recording, InputError> {
        let source = Source::pipe(&self.name, Cursor::new(line))?;
        let read =
            Recording::read_line(source, self.from, self.max).map_err(|error| InputError {
                place: error.place.map(|place| Place {
                    line: number,
                    ..place
                }),
                ..error
            })?;
        if read.dialect() == Dialect::Toolq {
            return Err(self.own_log(number));
        }
        // The other lines of a log are recognised by it.
        if matches!(read.dialect(), Dialect::ClaudeCode | Dialect::Codex) {
            self.from = Some(read.dialect());
        }
        Ok(read)
    }

    /// What its records ask for has no form in which a line could be answered.
    fn own_log(&self, number: usize) -> InputError {
        InputError {
            source: self.name.clone(),
            place: Some(Place {
                line: number,
                column: 1,
            }),
            message: "a record of toolq's own session log is no line that --follow answers"
                .to_owned(),
            hint: Some(
                "without --follow its open calls are answered; `toolq log show` shows it"
                    .to_owned(),
            ),
        }
    }

    fn too_large(&self) -> InputError {
        InputError {
            source: self.name.clone(),
            place: Some(Place {
                line: self.number,
                column: 1,
            }),
            message: format!("a line of more than {}", format_bytes(self.max)),
            hint: None,
        }
    }
}

/// What each line that is whole asks, which may be nothing; none until more came. Lines without any text are passed over,
/// and so is all behind a line that can't be read: one that is no form of what a model answers, or of what stands beside
/// that in a conversation or log.
impl Iterator for Follow {
    type Item = Result<Recording, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broke {
            return None;
        }
        let read = match self.lines.pop_front() {
            Some((number, line)) => self.read(number, line),
            None if self.rest.len() as u64 > self.max => Err(self.too_large()),
            None => return None,
        };
        self.broke = read.is_err();
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many calls each line asks, or why it can't be read.
    fn read(pieces: &[&[u8]], max: u64) -> Vec<Result<usize, String>> {
        let mut follow = Follow::new("lines", None, max);
        let mut found = Vec::new();
        let mut take = |follow: &mut Follow| {
            let lines = follow.by_ref();
            found.extend(lines.map(|line| {
                line.map(|line| line.open_calls(false))
                    .map_err(|error| error.to_string())
            }));
        };
        for piece in pieces {
            follow.push(piece);
            take(&mut follow);
        }
        follow.end();
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
    fn a_line_is_read_when_it_is_whole() {
        let expected: Vec<Result<usize, String>> = [1, 0, 0, 0, 1].map(Ok).into();
        assert_eq!(read(&[LINES.as_bytes()], 1000), expected);
        let bytes: Vec<&[u8]> = LINES.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes, 1000), expected);
        let mut follow = Follow::new("lines", None, 1000);
        follow.push(b"[]");
        assert!(follow.next().is_none());
        follow.push(b"\n");
        assert!(follow.next().is_some());
    }

    #[test]
    fn behind_a_line_that_cant_be_read_nothing_is() {
        for (bad, says) in [
            ("{\"a\":", "lines:2:6: the input ends"),
            (" nonsense", "lines:2:3: the input is no JSON"),
            (
                r#"{"error":{"message":"no"}}"#,
                "lines:2:1: this is an API's error",
            ),
            ("data: {}", "lines:2:1: the input is no JSON"),
            (
                r#"{"seq":1,"id":"x","parentId":null,"timestamp":1,"type":"session","content":null,"metadata":{}}"#,
                "lines:2:1: a record of toolq's own session log",
            ),
        ] {
            let found = read(&[format!("[]\n{bad}\n[]\n").as_bytes()], 1000);
            assert_eq!(found.len(), 2, "{found:?}");
            let error = found[1].as_ref().unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
        let found = read(&[b"[]\n[", &[b' '; 20]], 16);
        assert_eq!(
            found,
            [
                Ok(0),
                Err("lines:2:1: a line of more than 16 bytes".to_owned())
            ]
        );
    }

    /// The lines of a log that are no messages are known by those that are.
    #[test]
    fn a_log_can_be_followed() {
        let lines = concat!(
            r#"{"type":"assistant","uuid":"u","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]}}"#,
            "\n",
            r#"{"type":"summary","summary":"s"}"#,
        );
        assert_eq!(read(&[lines.as_bytes()], 1000), [Ok(1), Ok(0)]);
    }
}
