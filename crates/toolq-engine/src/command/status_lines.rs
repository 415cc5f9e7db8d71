//! Status lines on descriptor 3: JSON for people, such as `{"tip":"halfway","progress":0.5}`. Their writer isn't
//! trusted, so anything else is skipped.

use serde::Deserialize;

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
}

impl StatusLineParser {
    /// Parses the next bytes. Returns only the latest message and progress in them, since people can't read faster than
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
            }
        }
        latest
    }

    fn finish_line(&mut self) -> Option<Progress> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            return None;
        }
        let StatusLine { tip, progress } = serde_json::from_slice(&line).ok()?;
        let progress = progress.map(|progress| progress.clamp(0.0, 1.0));
        (tip.is_some() || progress.is_some()).then_some(Progress {
            message: tip,
            fraction: progress,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_lines_are_parsed_and_noise_is_skipped() {
        let mut lines = StatusLineParser::default();
        assert_eq!(lines.push(b"noise\n\xff\xfe\n[1]\n{\"tip\":\"ha"), None);
        let update = lines.push(b"lf\",\"progress\":7}\n{\"progress\":0.5}\n{}\nnull\n");
        assert_eq!(
            update,
            Some(Progress {
                message: Some("half".to_owned()),
                fraction: Some(0.5)
            })
        );
        for _ in 0..100 {
            assert_eq!(lines.push(&[b'{'; MAX_LINE_BYTES]), None);
        }
        assert!(lines.line.capacity() <= 2 * MAX_LINE_BYTES);
        assert_eq!(lines.push(b"\n"), None);
        assert!(lines.push(b"{\"tip\":\"x\"}\n").is_some());
    }
}
