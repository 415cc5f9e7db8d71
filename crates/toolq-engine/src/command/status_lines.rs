//! Status lines on descriptor 3: JSON for people, such as `{"tip":"halfway","progress":0.5}`. `params` and `result` are
//! JSON to show instead of the input and of what the model receives. Their writer isn't trusted, so anything else is
//! skipped.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::progress::Progress;

/// Longer lines are skipped.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Parses the bytes of a status descriptor as they arrive.
#[derive(Debug, Default)]
pub(crate) struct StatusLineParser {
    line: Vec<u8>,
    too_long: bool,
}

#[derive(Deserialize)]
struct StatusLine {
    tip: Option<String>,
    progress: Option<f64>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
}

impl StatusLineParser {
    /// Parses the next bytes. Returns only the latest value of each member in them, since people can't read faster than
    /// pipes are read.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Progress> {
        let mut latest: Option<Progress> = None;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, is_complete) = match piece.strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            self.too_long |= self.line.len() + piece.len() > MAX_LINE_BYTES;
            if !self.too_long {
                self.line.extend_from_slice(piece);
            }
            if is_complete && let Some(update) = self.finish_line() {
                let latest = latest.get_or_insert_default();
                latest.message = update.message.or(latest.message.take());
                latest.fraction = update.fraction.or(latest.fraction);
                latest.params = update.params.or(latest.params.take());
                latest.result = update.result.or(latest.result.take());
            }
        }
        latest
    }

    fn finish_line(&mut self) -> Option<Progress> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            return None;
        }
        let line: StatusLine = serde_json::from_slice(&line).ok()?;
        let is_empty = line.tip.is_none() && line.progress.is_none();
        let is_empty = is_empty && line.params.is_none() && line.result.is_none();
        (!is_empty).then_some(Progress {
            message: line.tip,
            fraction: line.progress.map(|progress| progress.clamp(0.0, 1.0)),
            params: line.params,
            result: line.result,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_lines_are_parsed_and_noise_is_skipped() {
        let mut lines = StatusLineParser::default();
        let noise = lines.push(b"noise\n\xff\xfe\n[1]\n{\"tip\":\"ha");
        assert!(noise.is_none());
        let update = lines.push(b"lf\",\"progress\":7}\n{\"progress\":0.5}\n{}\nnull\n");
        let update = update.unwrap();
        assert_eq!(update.message.as_deref(), Some("half"));
        assert_eq!(update.fraction, Some(0.5));
        for _ in 0..100 {
            assert!(lines.push(&[b'{'; MAX_LINE_BYTES]).is_none());
        }
        assert!(lines.line.capacity() <= 2 * MAX_LINE_BYTES);
        assert!(lines.push(b"\n").is_none());
        assert!(lines.push(b"{\"tip\":\"x\"}\n").is_some());
    }

    #[test]
    fn params_and_results_are_any_json_with_its_digits() {
        let mut lines = StatusLineParser::default();
        let update =
            lines.push(b"{\"params\":{\"n\":1.00}}\n{\"result\":[1]}\n{\"result\":null}\n");
        let update = update.unwrap();
        assert_eq!(update.params.unwrap().get(), "{\"n\":1.00}");
        assert_eq!(update.result.unwrap().get(), "[1]");
    }
}
