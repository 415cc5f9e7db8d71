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
    /// Output since the last flush.
    frame: Mutex<String>,
}

impl StderrTerminal {
    fn lock_frame(&self) -> MutexGuard<'_, String> {
        self.frame.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the pending output and moves the cursor to the beginning of the line.
    fn take_frame(&self) -> String {
        let mut frame = mem::take(&mut *self.lock_frame());
        frame.push('\r');
        frame
    }

    /// Moves the cursor by `count` in an ECMA-48 direction: `A` up, `B` down, `C` right, `D` left.
    fn move_cursor(&self, count: usize, direction: char) -> io::Result<()> {
        match count {
            // Terminals treat 0 as 1.
            0 => Ok(()),
            _ => self.write_str(&format!("\x1b[{count}{direction}")),
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
        self.move_cursor(rows, 'A')
    }

    fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
        self.move_cursor(rows, 'B')
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'C')
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)?;
        self.write_str("\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.lock_frame().push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str("\r\x1b[2K")
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
}
