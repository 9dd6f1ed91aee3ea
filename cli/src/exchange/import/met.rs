//! A cache of values by their text in the input. An import reads millions of
//! texts, most of them again soon after. Therefore only some are kept, one after
//! the other in one piece of memory.

use std::hash::Hasher;
use tacho_tape::fast::Fold;

/// Maximum size of all kept texts in bytes. Before it is exceeded, the cache starts empty again.
const MOST_BYTES: usize = 1 << 22;
/// Bits of an element of `places` that hold the index of an entry + 1.
const INDEX: u64 = u32::MAX as u64;

/// Values by text: references to rows, or indexes.
pub struct TextCache<T> {
    /// Hash table with open addressing. A place has the upper half of the hash,
    /// and below it the index of an entry + 1; 0 = free. Most other entries are
    /// skipped by their upper halves, without a look at their texts.
    places: Vec<u64>,
    entries: Vec<Entry<T>>,
    texts: Vec<u8>,
    most: usize,
}

struct Entry<T> {
    /// Position of the entry's text in `texts`.
    begin: usize,
    end: usize,
    value: T,
}

impl<T: Copy> TextCache<T> {
    /// Keeps at most `most` texts, a power of two, and then starts empty again.
    /// A table that does not fit into the processor's cache costs more than it
    /// saves.
    pub fn new(most: usize) -> Self {
        TextCache {
            places: vec![0; 4 * most],
            entries: Vec::new(),
            texts: Vec::new(),
            most,
        }
    }

    /// The result for a text.
    pub fn get(&self, text: &[u8]) -> Option<T> {
        self.find(text, hash(text)).ok()
    }

    /// Keeps the result for a new text.
    pub fn keep(&mut self, text: &[u8], value: T) {
        if self.entries.len() == self.most || self.texts.len() + text.len() > MOST_BYTES {
            self.clear();
        }
        let hash = hash(text);
        let Err(place) = self.find(text, hash) else {
            return;
        };
        let begin = self.texts.len();
        self.texts.extend_from_slice(text);
        self.entries.push(Entry {
            begin,
            end: self.texts.len(),
            value,
        });
        self.places[place] = hash & !INDEX | self.entries.len() as u64;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.fill(0);
        self.entries.clear();
        self.texts.clear();
    }

    /// The value of a text, or the free place for it.
    fn find(&self, text: &[u8], hash: u64) -> Result<T, usize> {
        let last = self.places.len() - 1;
        let mut place = hash as usize & last;
        loop {
            let known = self.places[place];
            if known == 0 {
                return Err(place);
            }
            if (known ^ hash) & !INDEX == 0 {
                let entry = &self.entries[(known & INDEX) as usize - 1];
                if self.texts[entry.begin..entry.end] == *text {
                    return Ok(entry.value);
                }
            }
            place = (place + 1) & last;
        }
    }
}

fn hash(text: &[u8]) -> u64 {
    let mut hash = Fold::default();
    hash.write(text);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_finds_only_values_that_it_keeps() {
        let mut met = TextCache::new(1 << 14);
        let mut forgotten = 0;
        for number in 0..40_000_u32 {
            let text = number.to_le_bytes();
            assert_eq!(met.get(&text), None);
            met.keep(&text, number);
            assert_eq!(met.get(&text), Some(number));
            let earlier = number / 2;
            match met.get(&earlier.to_le_bytes()) {
                Some(found) => assert_eq!(found, earlier),
                None => forgotten += 1,
            }
        }
        assert!((1_000..39_000).contains(&forgotten), "{forgotten}");
        met.clear();
        assert_eq!(met.get(&39_999_u32.to_le_bytes()), None);
    }

    #[test]
    fn texts_with_one_beginning_and_long_texts_differ() {
        let mut met = TextCache::new(1 << 14);
        let long = vec![b'x'; MOST_BYTES + 1];
        for (value, length) in [0, 1, 7, 8, 9, 4_096, long.len()].into_iter().enumerate() {
            met.keep(&long[..length], value);
            assert_eq!(met.get(&long[..length]), Some(value));
            let other = [&long[..length], b"y"].concat();
            assert_eq!(met.get(&other), None);
        }
    }
}
