//! Descriptor 3: lines of JSON for people, `{"tip":"half way","progress":0.5}`. Whatever else stands there is passed
//! over; its writer is not trusted.

use serde::Deserialize;

use crate::progress::Note;

/// Longer lines are passed over.
const LONGEST: usize = 4 << 10;

/// The lines of a status descriptor, as they come.
#[derive(Debug, Default)]
pub(crate) struct StatusLines {
    line: Vec<u8>,
    too_long: bool,
}

#[derive(Deserialize)]
struct Line {
    tip: Option<String>,
    progress: Option<f64>,
}

impl StatusLines {
    /// Takes the next bytes. Of what they say, the last word counts: people can't read faster than a pipe is read.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<Note> {
        let mut news: Option<Note> = None;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, ends) = match piece.strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            self.too_long |= self.line.len() + piece.len() > LONGEST;
            if !self.too_long {
                self.line.extend_from_slice(piece);
            }
            if ends && let Some(note) = self.end_line() {
                let news = news.get_or_insert_default();
                news.tip = note.tip.or(news.tip.take());
                news.progress = note.progress.or(news.progress);
            }
        }
        news
    }

    fn end_line(&mut self) -> Option<Note> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            return None;
        }
        let Line { tip, progress } = serde_json::from_slice(&line).ok()?;
        let progress = progress.map(|progress| progress.clamp(0.0, 1.0));
        (tip.is_some() || progress.is_some()).then_some(Note { tip, progress })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_pieces_among_noise() {
        let mut lines = StatusLines::default();
        assert_eq!(lines.push(b"noise\n\xff\xfe\n[1]\n{\"tip\":\"ha"), None);
        let note = lines.push(b"lf\",\"progress\":7}\n{\"progress\":0.5}\n{}\nnull\n");
        assert_eq!(
            note,
            Some(Note {
                tip: Some("half".to_owned()),
                progress: Some(0.5)
            })
        );
        for _ in 0..100 {
            assert_eq!(lines.push(&[b'{'; LONGEST]), None);
        }
        assert!(lines.line.capacity() <= 2 * LONGEST);
        assert_eq!(lines.push(b"\n"), None);
        assert!(lines.push(b"{\"tip\":\"x\"}\n").is_some());
    }
}
