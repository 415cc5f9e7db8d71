//! The bytes of a command or a response → what the model gets of them, as the tool declares its output.

use std::path::PathBuf;
use std::sync::Arc;

use crate::output::capture::{Document, Limits, TextCapture};
use crate::output::document::Reading;
use crate::run_budget::Meter;
use redact::Mask;
use toolq_core::types::{Captured, Content, Ending, Outcome, OutputKind, Tool};

/// Bytes that are shown of an output that is not what the tool declares.
const SHOWN_OF_BAD: u64 = 4 << 10;

/// An output that is coming.
#[derive(Debug)]
pub(crate) struct Output {
    stream: Stream,
    kind: OutputKind,
    limits: Limits,
    mask: Arc<Mask>,
    select: Option<String>,
    /// One line break at its end is taken off: programs end their last line, too.
    trim: bool,
    /// Counts every byte for the run.
    meter: Option<Meter>,
}

#[derive(Debug)]
enum Stream {
    Text(Box<TextCapture>),
    Document(Document),
}

impl Output {
    /// The standard output of a command of `tool`.
    pub(crate) fn of_command(tool: &Tool, outputs: Option<&PathBuf>, mask: &Arc<Mask>) -> Self {
        Self {
            trim: true,
            ..Self::of_response(tool, outputs, mask, None)
        }
    }

    /// The body of a response, of which `select` (a JSON pointer) is wanted.
    pub(crate) fn of_response(
        tool: &Tool,
        outputs: Option<&PathBuf>,
        mask: &Arc<Mask>,
        select: Option<String>,
    ) -> Self {
        let limits = Limits::new(tool, outputs);
        let stream = match (tool.output, &select) {
            (OutputKind::Text, None) => {
                Stream::Text(Box::new(TextCapture::new(limits.clone(), Arc::clone(mask))))
            }
            _ => Stream::Document(Document::default()),
        };
        Self {
            stream,
            kind: tool.output,
            limits,
            mask: Arc::clone(mask),
            select,
            trim: false,
            meter: None,
        }
    }

    /// The same, counted by `meter`.
    pub(crate) fn metered(self, meter: Meter) -> Self {
        Self {
            meter: Some(meter),
            ..self
        }
    }

    /// The most bytes that are of use: no more are kept, saved or parsed.
    pub(crate) fn most(&self) -> u64 {
        match self.stream {
            Stream::Text(_) => self.limits.saved.max(self.limits.shown),
            Stream::Document(_) => Document::LARGEST as u64,
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if let Some(meter) = &self.meter {
            meter.add(bytes.len());
        }
        match &mut self.stream {
            Stream::Text(text) => text.push(bytes),
            Stream::Document(document) => document.push(bytes),
        }
    }

    /// What there is, as text.
    pub(crate) fn into_text(self) -> (String, Captured) {
        match self.stream {
            Stream::Text(text) => text.finish(self.trim),
            Stream::Document(document) => as_text(&document, self.limits, self.mask, self.trim),
        }
    }

    /// What a call that ended well gives: its content, or why the output is not what the tool declares; then the end of
    /// its standard error tells the cause.
    pub(crate) fn succeed(self, ending: Ending, stderr: impl FnOnce() -> String) -> Outcome {
        let document = match self.stream {
            Stream::Text(text) => {
                let (text, captured) = text.finish(self.trim);
                let content = Content::Text(text);
                return Outcome::Succeeded {
                    content,
                    captured,
                    ending,
                };
            }
            Stream::Document(document) => document,
        };
        let bytes = document.total();
        let reading = Reading {
            kind: self.kind,
            select: self.select.as_deref(),
            limits: self.limits.clone(),
            mask: Arc::clone(&self.mask),
        };
        match reading.content(&document) {
            Ok((content, captured)) => Outcome::Succeeded {
                content,
                captured: Captured { bytes, ..captured },
                ending,
            },
            Err(problem) => {
                let shown = self.limits.shown.min(SHOWN_OF_BAD);
                let limits = Limits {
                    shown,
                    ..self.limits
                };
                let (output, captured) = as_text(&document, limits, self.mask, self.trim);
                Outcome::BadOutput {
                    problem,
                    output,
                    stderr: stderr(),
                    captured,
                    ending,
                }
            }
        }
    }
}

/// A document as the text that it is.
fn as_text(document: &Document, limits: Limits, mask: Arc<Mask>, trim: bool) -> (String, Captured) {
    let mut text = TextCapture::new(limits, mask);
    text.push(document.bytes());
    let (text, captured) = text.finish(trim);
    let bytes = document.total();
    (text, Captured { bytes, ..captured })
}
