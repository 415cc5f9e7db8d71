//! Maps whose keys are numbers that toolq gives out itself, one after another.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map keyed by such numbers.
pub(crate) type NumberMap<V> = HashMap<usize, V, BuildHasherDefault<NumberHasher>>;

/// Spreads consecutive numbers. Unlike the standard hasher, which is several times slower, it doesn't protect against chosen keys:
/// no input chooses these.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

/// 2⁶⁴ divided by the golden ratio (Knuth, "The Art of Computer Programming", 6.4).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = (self.0 ^ number as u64).wrapping_mul(MULTIPLIER);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher as _;

    use super::*;

    /// A map looks at the upper seven bits, and at as many lower ones as it needs.
    #[test]
    fn consecutive_numbers_are_spread() {
        let hashes: Vec<u64> = (0..1_024_usize)
            .map(|number| BuildHasherDefault::<NumberHasher>::default().hash_one(number))
            .collect();
        let distinct = |part: fn(u64) -> u64| {
            let parts: HashSet<u64> = hashes.iter().map(|hash| part(*hash)).collect();
            parts.len()
        };
        assert_eq!(distinct(|hash| hash % 1_024), 1_024);
        assert_eq!(distinct(|hash| hash >> 57), 128);
    }

    #[test]
    fn a_map_finds_what_was_inserted() {
        let mut map = NumberMap::default();
        for number in 0..1_000 {
            map.insert(number, number * 2);
            if number >= 10 {
                assert_eq!(map.remove(&(number - 10)), Some((number - 10) * 2));
            }
        }
        assert_eq!(map.len(), 10);
        assert_eq!(map.get(&999), Some(&1_998));
    }
}
