//! The first and the last bytes of a stream.

/// Keeps as many bytes of the beginning and of the end as it is told, at any length of the stream.
#[derive(Debug)]
pub(crate) struct Window {
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    /// Up to twice the limit: cut back in one go, so that each byte is moved once.
    tail: Vec<u8>,
    total: u64,
}

/// What a window kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) text: String,
    /// Where in `text` bytes are left out.
    pub(crate) cut_at: usize,
    /// How many bytes are left out there.
    pub(crate) cut: u64,
    /// Some bytes were no UTF-8 and stand as U+FFFD.
    pub(crate) lossy: bool,
}

impl Window {
    /// A window that keeps a stream of up to `limit` bytes whole, and half of that from either end of a longer one.
    pub(crate) fn new(limit: usize) -> Self {
        Self::of(limit - limit / 2, limit / 2)
    }

    /// A window on the last bytes only.
    pub(crate) fn tail(limit: usize) -> Self {
        Self::of(0, limit)
    }

    fn of(head_limit: usize, tail_limit: usize) -> Self {
        Self {
            head_limit,
            tail_limit,
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
        }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.head_limit - self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        if self.tail.len() + rest.len() > 2 * self.tail_limit {
            self.tail.drain(..self.excess());
        }
        self.tail.extend_from_slice(rest);
    }

    /// Whether all bytes of the stream are still here.
    pub(crate) fn is_whole(&self) -> bool {
        self.total <= (self.head_limit + self.tail_limit) as u64
    }

    /// The bytes that are here, in order; all of them while [`Self::is_whole`].
    pub(crate) fn parts(&self) -> [&[u8]; 2] {
        [&self.head, &self.tail]
    }

    /// The bytes as text, cut between characters.
    pub(crate) fn view(mut self) -> View {
        self.tail.drain(..self.excess());
        if self.is_whole() {
            self.head.append(&mut self.tail);
            let (text, lossy) = text_of(self.head);
            return View {
                cut_at: text.len(),
                text,
                cut: 0,
                lossy,
            };
        }
        self.head.truncate(whole_characters(&self.head));
        self.tail.drain(..continuation(&self.tail));
        let kept = self.head.len() + self.tail.len();
        let (mut text, lossy_head) = text_of(self.head);
        let (tail, lossy_tail) = text_of(self.tail);
        let cut_at = text.len();
        text.push_str(&tail);
        let cut = self.total - kept as u64;
        View {
            text,
            cut_at,
            cut,
            lossy: lossy_head || lossy_tail,
        }
    }

    /// How many bytes of the tail are more than it keeps.
    fn excess(&self) -> usize {
        self.tail.len().saturating_sub(self.tail_limit)
    }
}

fn text_of(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    }
}

/// The length without a character that was cut off at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(4);
    let start = (tail..bytes.len()).rfind(|at| !is_continuation(bytes[*at]));
    match start {
        Some(start) if str::from_utf8(&bytes[start..]).is_err_and(|e| e.error_len().is_none()) => {
            start
        }
        _ => bytes.len(),
    }
}

/// The length of the rest of a character whose beginning was cut off.
fn continuation(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|byte| is_continuation(**byte))
        .count()
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(limit: usize, chunks: &[Vec<u8>]) -> View {
        let mut window = Window::new(limit);
        for chunk in chunks {
            window.push(chunk);
        }
        window.view()
    }

    proptest! {
        /// FAULTS 74, 75: any bytes, cut anywhere, are text; nothing is lost uncounted.
        #[test]
        fn head_and_tail_of_any_text(text in "\\PC{0,60}", limit in 0_usize..80, size in 1_usize..9) {
            let chunks: Vec<Vec<u8>> = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            let view = window(limit, &chunks);
            prop_assert!(!view.lossy);
            let (head, tail) = view.text.split_at(view.cut_at);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert_eq!((view.text.len() as u64) + view.cut, text.len() as u64);
            prop_assert!(view.cut == 0 || view.text.len() <= limit);
            prop_assert_eq!(view.cut == 0, text.len() <= limit);
            prop_assert!(view.cut == 0 || view.text.len() + 6 >= limit);
        }

        #[test]
        fn any_bytes_are_text(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9)) {
            let all = chunks.concat();
            let view = window(16, &chunks);
            prop_assert!(all.len() > 16 || view.lossy == str::from_utf8(&all).is_err());
        }
    }

    #[test]
    fn only_the_end() {
        let mut window = Window::tail(4);
        (0..100).for_each(|_| window.push(b"0123456789"));
        assert_eq!(window.view().text, "6789");
    }
}
