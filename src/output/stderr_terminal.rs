//! The terminal that progress bars are drawn on. Each frame is a single write.

use std::io::{self, Write as _};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::TermLike;

use crate::output::stalled_reader;
use crate::output::stderr::StderrWriter;

/// Standard error as a terminal.
///
/// Between frames, the cursor is at the beginning of the last line. If it were at the end, the `^C` that a terminal
/// echoes for Ctrl-C would wrap the line, and the rows above couldn't be found again.
#[derive(Debug, Default)]
pub struct StderrTerminal {
    frame: Mutex<Frame>,
}

#[derive(Debug, Default)]
struct Frame {
    /// Output since the last flush.
    output: String,
    /// The line of the cursor has text, which nothing has moved away from.
    ends_in_text: bool,
}

impl Frame {
    /// Adds text. In a new frame it comes below the text of the last one, at whose beginning the cursor rests.
    fn push_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.output.is_empty() && self.ends_in_text {
            self.output.push('\n');
        }
        self.output.push_str(text);
        self.ends_in_text = !text.ends_with('\n');
    }

    /// Adds a movement of the cursor.
    fn push_movement(&mut self, sequence: &str) {
        self.output.push_str(sequence);
        self.ends_in_text = false;
    }
}

impl StderrTerminal {
    fn lock_frame(&self) -> MutexGuard<'_, Frame> {
        self.frame.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the pending output and moves the cursor to the beginning of the line.
    fn take_frame(&self) -> String {
        let mut output = mem::take(&mut self.lock_frame().output);
        output.push('\r');
        output
    }

    /// Moves the cursor by `count` in an ECMA-48 direction: `A` up, `B` down, `C` right, `D` left.
    fn move_cursor(&self, count: usize, direction: char) {
        // Terminals treat 0 as 1.
        if count > 0 {
            let sequence = format!("\x1b[{count}{direction}");
            self.lock_frame().push_movement(&sequence);
        }
    }
}

impl TermLike for StderrTerminal {
    fn width(&self) -> u16 {
        StderrWriter::size().0
    }

    fn height(&self) -> u16 {
        StderrWriter::size().1
    }

    fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
        self.move_cursor(rows, 'A');
        Ok(())
    }

    fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
        self.move_cursor(rows, 'B');
        Ok(())
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'C');
        Ok(())
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'D');
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)?;
        self.write_str("\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        let mut frame = self.lock_frame();
        match text {
            "\r" => frame.push_movement(text),
            _ => frame.push_text(text),
        }
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.lock_frame().push_movement("\r\x1b[2K");
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        stalled_reader::wait_until_stderr_writable(&stderr);
        stderr.write_all(self.take_frame().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_rests_at_the_beginning_of_the_last_line() {
        let terminal = StderrTerminal::default();
        terminal.move_cursor_up(0).unwrap();
        terminal.move_cursor_up(2).unwrap();
        terminal.clear_line().unwrap();
        terminal.write_line("row").unwrap();
        terminal.write_str("bar").unwrap();
        assert_eq!(terminal.take_frame(), "\x1b[2A\r\x1b[2Krow\nbar\r");
        assert_eq!(terminal.take_frame(), "\r");
    }
    /// A line that was printed while no row was drawn.
    #[test]
    fn what_follows_a_line_comes_below_it() {
        let terminal = StderrTerminal::default();
        terminal.write_str("failed").unwrap();
        assert_eq!(terminal.take_frame(), "failed\r");
        terminal.write_str("bar").unwrap();
        assert_eq!(terminal.take_frame(), "\nbar\r");
        terminal.clear_line().unwrap();
        assert_eq!(terminal.take_frame(), "\r\x1b[2K\r");
        terminal.write_str("end").unwrap();
        assert_eq!(terminal.take_frame(), "end\r");
    }
}
