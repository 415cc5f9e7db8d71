//! Collects the output of a command or the body of a response, and turns it into content for the model, as the tool's
//! `output` declares.

use std::sync::Arc;

use crate::output::capture::{CaptureLimits, DocumentCapture, TextCapture};
use crate::output::parser::OutputParser;
use crate::run_budget::OutputCounter;
use crate::settings::EngineSettings;
use redact::Mask;
use toolq_core::types::{
    CallEnding, CallOutput, CaptureStats, Outcome, OutputKind, ResultContent, Tool,
};

/// How many bytes of an output are shown if it isn't what the tool declares.
const MAX_BAD_OUTPUT_BYTES: u64 = 4 << 10;

/// An output that is still arriving.
#[derive(Debug)]
pub(crate) struct OutputCollector {
    capture: OutputCapture,
    parser: OutputParser,
    /// Whether one trailing newline is removed: programs end their last line with one.
    trim_newline: bool,
    /// Counts every byte for the run's output budget.
    counter: OutputCounter,
}

#[derive(Debug)]
enum OutputCapture {
    Text(Box<TextCapture>),
    Document(DocumentCapture),
}

impl OutputCollector {
    /// Creates a collector for the stdout of a command of `tool`. `counter` counts every byte.
    pub(crate) fn for_command(
        tool: &Tool,
        settings: &EngineSettings,
        counter: OutputCounter,
    ) -> Self {
        let limits = CaptureLimits {
            shows_lines: !tool.raw_output,
            ..CaptureLimits::new(tool, settings.output_dir.as_ref())
        };
        Self {
            trim_newline: true,
            ..Self::new(tool, limits, None, &settings.mask, counter)
        }
    }

    /// Creates a collector for the body of a response, or the part of it that `select` (a JSON pointer) names. `counter` counts
    /// every byte.
    pub(crate) fn for_response(
        tool: &Tool,
        select: Option<String>,
        settings: &EngineSettings,
        counter: OutputCounter,
    ) -> Self {
        let limits = CaptureLimits::new(tool, settings.output_dir.as_ref());
        Self::new(tool, limits, select, &settings.mask, counter)
    }

    fn new(
        tool: &Tool,
        limits: CaptureLimits,
        select: Option<String>,
        mask: &Arc<Mask>,
        counter: OutputCounter,
    ) -> Self {
        let capture = match (tool.output, &select) {
            (OutputKind::Text, None) => {
                OutputCapture::Text(Box::new(TextCapture::new(limits.clone(), Arc::clone(mask))))
            }
            _ => OutputCapture::Document(DocumentCapture::default()),
        };
        Self {
            capture,
            parser: OutputParser {
                kind: tool.output,
                limits,
                mask: Arc::clone(mask),
                select,
                empty: tool.empty_output.clone(),
                schema: tool.output_schema.clone(),
            },
            trim_newline: false,
            counter,
        }
    }

    /// Returns the form that the output must have.
    pub(crate) fn kind(&self) -> OutputKind {
        self.parser.kind
    }

    /// Returns a collector of content blocks, whatever the tool declares. Nothing must have been added yet.
    pub(crate) fn into_content(self) -> Self {
        Self {
            capture: OutputCapture::Document(DocumentCapture::default()),
            parser: OutputParser {
                kind: OutputKind::Content,
                ..self.parser
            },
            ..self
        }
    }

    /// Returns how many bytes the model can be shown.
    pub(crate) fn max_shown(&self) -> u64 {
        self.parser.limits.max_shown
    }

    /// Returns how many bytes can be used at most: no more are shown, saved or parsed.
    pub(crate) fn max_useful_bytes(&self) -> u64 {
        match self.capture {
            OutputCapture::Text(_) => {
                let limits = &self.parser.limits;
                limits.max_saved.max(limits.max_shown)
            }
            OutputCapture::Document(_) => DocumentCapture::MAX_BYTES as u64,
        }
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.counter.add(bytes.len());
        match &mut self.capture {
            OutputCapture::Text(text) => text.push(bytes),
            OutputCapture::Document(document) => document.push(bytes),
        }
    }

    /// Returns the output so far as text. `stderr` is the end of the program's stderr.
    pub(crate) fn into_output(self, stderr: String) -> CallOutput {
        let (text, captured) = match self.capture {
            OutputCapture::Text(text) => text.finish(self.trim_newline),
            OutputCapture::Document(document) => {
                let OutputParser { limits, mask, .. } = self.parser;
                document_as_text(&document, limits, mask, self.trim_newline)
            }
        };
        CallOutput {
            text,
            stderr,
            captured,
        }
    }

    /// Returns the outcome of a call that succeeded: its content, or why its output isn't what the tool declares. In
    /// the latter case, `stderr` provides the end of its stderr, which may explain the cause.
    pub(crate) fn into_outcome(
        self,
        ending: CallEnding,
        stderr: impl FnOnce() -> String,
    ) -> Outcome {
        let document = match self.capture {
            OutputCapture::Text(text) => {
                let (text, captured) = text.finish(self.trim_newline);
                let content = ResultContent::Text(text);
                return Outcome::Succeeded {
                    content,
                    captured,
                    ending,
                    for_clients: None,
                };
            }
            OutputCapture::Document(document) => document,
        };
        let bytes = document.total_bytes;
        match self.parser.parse_content(&document) {
            Ok((content, captured)) => Outcome::Succeeded {
                content,
                captured: CaptureStats {
                    total_bytes: bytes,
                    ..captured
                },
                ending,
                for_clients: None,
            },
            Err(problem) => {
                let OutputParser { limits, mask, .. } = self.parser;
                let limits = CaptureLimits {
                    max_shown: limits.max_shown.min(MAX_BAD_OUTPUT_BYTES),
                    ..limits
                };
                let (text, captured) = document_as_text(&document, limits, mask, self.trim_newline);
                Outcome::BadOutput {
                    problem,
                    output: CallOutput {
                        text,
                        stderr: stderr(),
                        captured,
                    },
                    ending,
                }
            }
        }
    }
}

/// Returns a document verbatim, as text.
fn document_as_text(
    document: &DocumentCapture,
    limits: CaptureLimits,
    mask: Arc<Mask>,
    trim_newline: bool,
) -> (String, CaptureStats) {
    let missing = document.total_bytes - document.bytes().len() as u64;
    let limits = CaptureLimits {
        // A file with the beginning would be taken for the whole.
        save_dir: limits.save_dir.filter(|_| missing == 0),
        ..limits
    };
    let mut text = TextCapture::new(limits, mask);
    text.push(document.bytes());
    let (text, captured) = text.finish(trim_newline);
    (
        text,
        CaptureStats {
            total_bytes: document.total_bytes,
            cut_bytes: captured.cut_bytes + missing,
            ..captured
        },
    )
}
