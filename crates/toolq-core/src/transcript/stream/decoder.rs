//! A stream of server-sent events: bytes in, as they arrive; what is known of messages and calls out, as soon as it is
//! known. A state machine without input or output of its own: however the bytes are cut, the same is told.
//!
//! An event belongs to the message that is arriving. Between messages the dialect is recognised anew, so that streams may
//! stand one behind another.

#[cfg(test)]
mod tests;

use crate::json::Object;
use crate::text::format_bytes;
use crate::transcript::detect;
use crate::transcript::document_error::Complaint;
use crate::transcript::error::{InputError, Place};
use crate::transcript::formats::dispatch;
use crate::transcript::stream::event::Told;
use crate::transcript::stream::messages::Messages;
use crate::transcript::stream::sse::{Data, Events, Fault};
use crate::types::{Call, Dialect};

/// Whose stream it is, where that is said and not recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// The Messages API.
    Anthropic,
    /// Chat completions and responses.
    OpenAi,
}

impl Vendor {
    fn speaks(self, dialect: Dialect) -> bool {
        (self == Self::Anthropic) == (dialect == Dialect::Anthropic)
    }
}

/// A stream that is being read.
#[derive(Debug)]
pub struct Stream {
    name: String,
    from: Option<Vendor>,
    events: Events,
    messages: Messages,
    /// The dialect of the message that is arriving, or of the last one.
    dialect: Option<Dialect>,
    /// Bytes of the message that is arriving.
    size: u64,
    /// Bytes that a message may have.
    max: u64,
    broke: Option<InputError>,
    over: bool,
}

impl Stream {
    /// A stream of which nothing came yet; `name` is shown to people. No message may have more than `max` bytes.
    pub fn new(name: impl Into<String>, from: Option<Vendor>, max: u64) -> Self {
        Self {
            name: name.into(),
            from,
            events: Events::new(max),
            messages: Messages::default(),
            dialect: None,
            size: 0,
            max,
            broke: None,
            over: false,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while self.broke.is_none() {
            match self.events.next(&mut bytes) {
                Ok(Some(data)) => self.event(&data, false),
                Ok(None) => return,
                Err(fault) => self.fail(fault),
            }
        }
    }

    /// No more bytes come.
    pub fn end(&mut self) {
        match self.events.rest() {
            _ if self.broke.is_some() => return,
            Ok(Some(data)) => self.event(&data, true),
            Ok(None) => {}
            Err(fault) => self.fail(fault),
        }
        let message = if self.messages.is_open() {
            "the stream breaks off in the middle of a message"
        } else if self.messages.opened() == 0 {
            "the stream holds no answer of a model"
        } else {
            return;
        };
        self.stop(self.events.line(), 1, message, None);
    }

    /// The bytes that are to come can't be had.
    pub fn lost(&mut self, error: &std::io::Error) {
        self.stop(
            self.events.line(),
            1,
            &format!("the stream can't be read on: {error}"),
            None,
        );
    }

    /// Reads on no further: the calls that had begun and were not told to be whole.
    pub fn abandon(&mut self) -> Vec<Call> {
        self.over = true;
        self.messages.abandon()
    }

    /// How many messages began so far.
    pub fn messages(&self) -> usize {
        self.messages.opened()
    }

    /// Takes an event. The `last` one may have been cut.
    fn event(&mut self, data: &Data, last: bool) {
        if let Err((message, hint, column)) = self.read(data, last) {
            self.stop(data.line, data.column + column, &message, hint);
        }
        self.size = if self.messages.is_open() {
            self.size + data.text.len() as u64
        } else {
            0
        };
        if self.size > self.max {
            let message = format!("a message of more than {}", format_bytes(self.max));
            self.stop(data.line, 1, &message, None);
        }
    }

    /// Reads an event, or says what is wrong with it, with a hint and the place in its first line.
    fn read(&mut self, data: &Data, last: bool) -> Result<(), (String, Option<String>, usize)> {
        let text = data.text.trim();
        if text.is_empty() {
            return Ok(());
        }
        if text == "[DONE]" {
            if self.dialect == Some(Dialect::OpenAiChat) {
                self.messages.close();
            }
            self.messages.forget();
            return Ok(());
        }
        let object = match Object::read(text) {
            Ok(Some(object)) => object,
            Ok(None) => return Err(("an event that is no object".to_owned(), None, 0)),
            // What was cut behind the last message is missed by nobody.
            Err(_) if last && !self.messages.is_open() && "[DONE]".starts_with(text) => {
                return Ok(());
            }
            Err(error) if last && error.is_eof() => {
                return Err((
                    "the stream breaks off in the middle of an event".to_owned(),
                    None,
                    0,
                ));
            }
            Err(error) => {
                let column = if error.line() == 1 {
                    error.column().saturating_sub(1)
                } else {
                    0
                };
                let said = error.to_string();
                let what = said.split(" at line ").next().unwrap_or_default();
                return Err((format!("an event that is no JSON: {what}"), None, column));
            }
        };
        self.object(&object)
            .map_err(|complaint| (complaint.message, complaint.hint, 0))
    }

    fn object<'a>(&mut self, object: &Object<'a>) -> Result<(), Complaint<'a>> {
        if object.has("error") || object.text_once("type")?.as_deref() == Some("error") {
            return Err(detect::error_event(object));
        }
        if !self.messages.is_open() {
            let found = dispatch::of_event(object);
            let found = found.filter(|dialect| self.from.is_none_or(|from| from.speaks(*dialect)));
            self.dialect = found.or(self.dialect);
        }
        match self.dialect {
            Some(dialect) => dispatch::event(dialect, object, &mut self.messages),
            None if object
                .text("type")
                .is_some_and(|kind| matches!(&*kind, "ping" | "keepalive")) =>
            {
                Ok(())
            }
            None => Err(detect::unknown_event(object)),
        }
    }

    fn fail(&mut self, fault: Fault) {
        let (line, message) = match fault {
            Fault::NotUtf8 { line } => (line, "a byte that is no UTF-8".to_owned()),
            Fault::TooLarge { line } => (
                line,
                format!("an event of more than {}", format_bytes(self.max)),
            ),
        };
        self.stop(line, 1, &message, None);
    }

    /// Nothing is read any more.
    fn stop(&mut self, line: usize, column: usize, message: &str, hint: Option<String>) {
        self.broke.get_or_insert_with(|| InputError {
            source: self.name.clone(),
            place: Some(Place { line, column }),
            message: message.to_owned(),
            hint,
        });
    }
}

/// What is known, in its order; none until more bytes came.
impl Iterator for Stream {
    type Item = Told;

    fn next(&mut self) -> Option<Told> {
        let told = self.messages.next();
        if told.is_some() || self.over {
            return told;
        }
        let error = self.broke.clone()?;
        self.over = true;
        let unfinished = self.messages.abandon();
        Some(Told::Broke { unfinished, error })
    }
}
