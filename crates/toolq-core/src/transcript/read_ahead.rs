//! Reads the bytes of a file at the offsets of its calls. While these follow each other closely, as in a recording with many
//! short turns, one read serves many of them.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// How much the first window of a sequence holds, and the largest, in bytes.
const WINDOW_BYTES: Range<usize> = 8 * 1024..64 * 1024;
/// How much of a window comes before the range that was asked for, in bytes: the id of a response is read after its calls.
const LOOKBACK_BYTES: u64 = 2 * 1024;
/// The largest gap to the range before, in bytes, at which one range follows another.
const MAX_GAP_BYTES: u64 = 16 * 1024;
/// Longer ranges are read on their own, in bytes.
const MAX_SHORT_BYTES: u64 = 16 * 1024;

/// The part of a file that was read last.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    /// Offset of `window` in the file.
    begin: u64,
    window: Vec<u8>,
    /// End of the range that was asked for last.
    last_end: u64,
}

impl ReadAhead {
    /// Returns the bytes of `range`, an offset in `file` to another one.
    ///
    /// # Errors
    /// The file can't be read, or ends before the range does.
    pub(super) fn read(&mut self, file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
        let near = self.last_end.saturating_sub(LOOKBACK_BYTES)..=self.last_end + MAX_GAP_BYTES;
        let follows = near.contains(&range.start);
        self.last_end = range.end;
        if let Some(bytes) = self.in_window(&range) {
            return Ok(bytes.to_vec());
        }
        if !follows || range.end - range.start > MAX_SHORT_BYTES {
            return read_range(file, range);
        }
        self.fill(file, &range)?;
        let bytes = self.in_window(&range).ok_or(ErrorKind::UnexpectedEof)?;
        Ok(bytes.to_vec())
    }

    fn in_window(&self, range: &Range<u64>) -> Option<&[u8]> {
        let begin = usize::try_from(range.start.checked_sub(self.begin)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(self.begin)?).ok()?;
        self.window.get(begin..end)
    }

    /// Reads a window around `range`, which grows as long as each continues the last one.
    fn fill(&mut self, file: &File, range: &Range<u64>) -> io::Result<()> {
        let begin = range.start.saturating_sub(LOOKBACK_BYTES);
        let continues = (self.begin..=self.begin + self.window.len() as u64).contains(&begin);
        let bytes = match self.window.len() {
            last if continues => (2 * last).clamp(WINDOW_BYTES.start, WINDOW_BYTES.end),
            _ => WINDOW_BYTES.start,
        };
        let needed = usize::try_from(range.end - begin).map_err(io::Error::other)?;
        self.begin = begin;
        self.window.resize(bytes.max(needed), 0);
        let mut filled = 0;
        // What comes after the range isn't worth another read, nor an error.
        while filled < needed {
            match file.read_at(&mut self.window[filled..], begin + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.window.clear();
                    return Err(error);
                }
            }
        }
        self.window.truncate(filled);
        Ok(())
    }
}

/// Returns the bytes of `range`, an offset in `file` to another one.
///
/// # Errors
/// The file can't be read, or ends before the range does.
pub(super) fn read_range(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let count = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
    let mut bytes = vec![0; count];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const FILE_BYTES: usize = 200_003;

    fn file() -> (File, Vec<u8>) {
        let bytes: Vec<u8> = (0..=250).cycle().take(FILE_BYTES).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        (file, bytes)
    }

    fn read(ahead: &mut ReadAhead, file: &File, range: &Range<usize>) -> io::Result<Vec<u8>> {
        ahead.read(file, range.start as u64..range.end as u64)
    }

    #[test]
    fn ranges_in_any_order_have_their_own_bytes() {
        let (file, bytes) = file();
        let mut ahead = ReadAhead::default();
        let mut expect = |range: Range<usize>| {
            let read = read(&mut ahead, &file, &range).unwrap();
            assert!(read == bytes[range.clone()], "{range:?}");
        };
        let starts = |step| (0..FILE_BYTES - 100).step_by(step);
        for start in starts(1_777).chain(starts(1_777).rev()) {
            expect(start..start + 100);
        }
        for start in starts(9_973) {
            // As in a recording: the calls of a turn, the id that comes before them, and a long result somewhere else.
            expect(start + 50..start + 90);
            expect(start..start + 7);
            let far = FILE_BYTES - 20_000 - start % 1_000;
            expect(far..far + 18_000);
        }
        expect(FILE_BYTES - 5..FILE_BYTES);
        expect(FILE_BYTES..FILE_BYTES);
    }

    #[test]
    fn a_range_past_the_end_of_the_file_is_an_error() {
        let (file, _) = file();
        let mut ahead = ReadAhead::default();
        for before_end in [200, 100, 50, 20, FILE_BYTES] {
            let start = FILE_BYTES - before_end;
            let error = read(&mut ahead, &file, &(start..start + 80)).err();
            let expected = (before_end < 80).then_some(ErrorKind::UnexpectedEof);
            assert_eq!(error.map(|error| error.kind()), expected, "{start}");
        }
    }

    #[test]
    fn ranges_that_follow_each_other_are_read_together() {
        let (file, _) = file();
        let mut ahead = ReadAhead::default();
        for range in [0..100, 150..200] {
            read(&mut ahead, &file, &range).unwrap();
        }
        // Nothing is left to read, but the window still has what follows.
        file.set_len(0).unwrap();
        assert!(read(&mut ahead, &file, &(210..300)).is_ok());
        assert!(read(&mut ahead, &file, &(100_000..100_010)).is_err());
    }
}
