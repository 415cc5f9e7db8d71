//! Turns the bytes of the fuzzer into choices.

/// Ends a text among the choices. It never occurs in UTF-8.
const TEXT_END: u8 = 0xFF;

/// Reads choices from the front of some bytes. After their end, every number is 0 and every text empty.
pub(crate) struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    pub(crate) fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    /// Returns the text up to its end mark.
    pub(crate) fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == TEXT_END);
        let (text, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.get(1..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

/// Cuts bytes at places that look random but follow from the bytes, so that a finding can be repeated.
pub(crate) fn cut_at_random(data: &[u8]) -> Vec<&[u8]> {
    let seed = data.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
    });
    let mut random = fastrand::Rng::with_seed(seed);
    let longest = random.usize(1..64);
    let mut pieces = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(random.usize(0..=longest).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
