//! Turns what a program prints into what a terminal would show at the end: without colors and movements of the cursor, and each
//! line as it was overwritten last. A progress bar is one line then.

/// A longer line is shown in parts, which nothing overwrites.
const MAX_LINE_BYTES: usize = 8 << 10;
/// The longest escape sequence that isn't split between two parts of a line.
const MAX_ESCAPE_BYTES: usize = 32;

const BACKSPACE: u8 = 8;
const BELL: u8 = 7;
const ESCAPE: u8 = 0x1b;

/// The line that is still being printed.
#[derive(Debug, Default)]
pub(super) struct ShownLines {
    line: Vec<u8>,
    /// Whether anything that was printed isn't shown.
    pub(super) has_changed: bool,
}

impl ShownLines {
    /// Reads the next bytes, and emits the lines that are complete.
    pub(super) fn push(&mut self, bytes: &[u8], emit: &mut dyn FnMut(&[u8])) {
        for piece in bytes.chunks(MAX_LINE_BYTES) {
            self.push_piece(piece, emit);
        }
    }

    fn push_piece(&mut self, bytes: &[u8], emit: &mut dyn FnMut(&[u8])) {
        let complete = bytes.iter().rposition(|byte| *byte == b'\n');
        let (lines, rest) = bytes.split_at(complete.map_or(0, |at| at + 1));
        if self.line.is_empty() && !has_controls(lines) {
            emit(lines);
        } else if !lines.is_empty() {
            self.line.extend_from_slice(lines);
            for line in std::mem::take(&mut self.line).split_inclusive(|byte| *byte == b'\n') {
                self.emit_line(line, emit);
            }
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > MAX_LINE_BYTES {
            self.shorten_line(emit);
        }
    }

    /// Emits the rest: no more bytes follow.
    pub(super) fn finish(&mut self, emit: &mut dyn FnMut(&[u8])) {
        let line = std::mem::take(&mut self.line);
        self.emit_line(&line, emit);
    }

    /// Emits a line. The end of a line of Windows is no overwriting.
    fn emit_line(&mut self, line: &[u8], emit: &mut dyn FnMut(&[u8])) {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if has_controls(text) {
            self.has_changed = true;
            emit(&shown_text(text));
        } else {
            emit(text);
        }
        emit(&line[text.len()..]);
    }

    /// Leaves out what was overwritten. If the line is still too long then, it is emitted.
    fn shorten_line(&mut self, emit: &mut dyn FnMut(&[u8])) {
        let last_start = self.line.iter().rposition(|byte| *byte == b'\r');
        let rest = self.line.split_off(last_start.unwrap_or(0));
        self.line = [shown_text(&self.line), rest].concat();
        if self.line.len() > MAX_LINE_BYTES / 2 {
            let escape = self.line.iter().rposition(|byte| *byte == ESCAPE);
            let escape = escape.filter(|at| self.line.len() - at < MAX_ESCAPE_BYTES);
            let begun = self.line.split_off(escape.unwrap_or(self.line.len()));
            self.finish(emit);
            self.line = begun;
        }
    }
}

fn has_controls(text: &[u8]) -> bool {
    let is_control = |byte: &u8| matches!(*byte, b'\r' | BACKSPACE | ESCAPE);
    text.iter().any(is_control)
}

/// Returns what a terminal shows of a text without line breaks.
fn shown_text(text: &[u8]) -> Vec<u8> {
    let mut cells: Vec<&[u8]> = Vec::new();
    let (mut column, mut rest) = (0_usize, text);
    while let Some(first) = rest.first() {
        let (piece, after) = rest.split_at(piece_len(rest));
        rest = after;
        match *first {
            b'\r' => column = 0,
            BACKSPACE => column = column.saturating_sub(1),
            ESCAPE if matches!(piece, b"\x1b[K" | b"\x1b[0K") => cells.truncate(column),
            ESCAPE if piece == b"\x1b[2K" => cells.fill(b" "),
            ESCAPE => {}
            _ => {
                cells.splice(column..(column + 1).min(cells.len()), [piece]);
                column += 1;
            }
        }
    }
    let mut shown = cells.concat();
    if text.contains(&b'\r') {
        shown.truncate(shown.trim_ascii_end().len());
    }
    shown
}

/// Returns the length of the character, invalid byte or escape sequence (ECMA-48) that a text begins with. Such a sequence is
/// `ESC [ … letter`, a string such as the title of a window, or a few signs.
fn piece_len(text: &[u8]) -> usize {
    let ends_at = match text {
        [ESCAPE, b'[', ..] => {
            let is_end = |byte: &u8| (0x40..=0x7e).contains(byte);
            text[2..].iter().position(is_end).map(|at| at + 3)
        }
        [ESCAPE, b']' | b'P' | b'X' | b'^' | b'_', ..] => {
            let is_end = |at: &usize| text[*at] == BELL || text[*at - 1..].starts_with(b"\x1b\\");
            (2..text.len()).find(is_end).map(|at| at + 1)
        }
        [ESCAPE, signs @ ..] => {
            let is_sign = |byte: &&u8| (0x20..=0x2f).contains(*byte);
            Some(signs.iter().take_while(is_sign).count() + 2)
        }
        _ => {
            let chunk = text[..text.len().min(4)].utf8_chunks().next();
            let first = chunk.and_then(|chunk| chunk.valid().chars().next());
            Some(first.map_or(1, char::len_utf8))
        }
    };
    ends_at.map_or(text.len(), |end| end.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is shown of a text that arrives in pieces of this many bytes.
    fn shown(text: &[u8], piece: usize) -> String {
        let (mut lines, mut shown) = (ShownLines::default(), Vec::new());
        for piece in text.chunks(piece) {
            lines.push(piece, &mut |bytes| shown.extend_from_slice(bytes));
        }
        lines.finish(&mut |bytes| shown.extend_from_slice(bytes));
        String::from_utf8_lossy(&shown).into_owned()
    }

    #[test]
    fn a_line_is_what_a_terminal_shows_of_it() {
        for (printed, expected) in [
            ("plain\n\ttext\n", "plain\n\ttext\n"),
            ("of\r\nWindows\r\n", "of\r\nWindows\r\n"),
            ("1%\r2%\r100%\ndone\n", "100%\ndone\n"),
            ("\r 1%\r10%", "10%"),
            ("abcdef\rxyz\n", "xyzdef\n"),
            ("working\r\x1b[Kdone\n", "done\n"),
            ("working\x1b[2K\rdone\n", "done\n"),
            ("50%\r       \rdone\n", "done\n"),
            ("spin |\x08/\x08-\n", "spin -\n"),
            ("b\x08bo\x08ol\x08ld\n", "bold\n"),
            ("\x1b[1;32mok\x1b[0m é\x1b[39m\n", "ok é\n"),
            ("a\x1b[3Cb\x1b[2Dc\x1b[1Gd\n", "abcd\n"),
            (
                "\x1b]0;title\x07text \x1b]8;;http://h\x1b\\link\x1b]8;;\x1b\\\n",
                "text link\n",
            ),
            ("\x1b(B\x1b7up\x1b[2A\x1b[?25l\n", "up\n"),
            ("日本\r語\n", "語本\n"),
            ("text\x1b", "text"),
            ("text\x1b[3", "text"),
            ("\x1b[99999999999999999999Cx\n", "x\n"),
            ("", ""),
        ] {
            for piece in [1, 2, 3, 1_000] {
                assert_eq!(
                    shown(printed.as_bytes(), piece),
                    expected,
                    "{printed:?} {piece}"
                );
            }
        }
    }

    /// However long a progress bar runs, it takes no more memory, and what was never overwritten isn't lost.
    #[test]
    fn a_long_line_takes_bounded_memory() {
        let mut lines = ShownLines::default();
        let mut emitted = 0;
        for number in 0..100_000 {
            let state = format!("\r\x1b[32m{number} of 100000\x1b[0m");
            lines.push(state.as_bytes(), &mut |bytes| emitted += bytes.len());
            assert!(lines.line.len() <= MAX_LINE_BYTES, "{}", lines.line.len());
        }
        assert_eq!(emitted, 0);
        let mut last = Vec::new();
        lines.finish(&mut |bytes| last.extend_from_slice(bytes));
        assert_eq!(last, b"99999 of 100000");
        let long = format!("\x1b[1m{}\x1b[0m", "é".repeat(50_000));
        for piece in [1, 7, 1 << 20] {
            assert_eq!(shown(long.as_bytes(), piece), "é".repeat(50_000));
        }
    }
}
