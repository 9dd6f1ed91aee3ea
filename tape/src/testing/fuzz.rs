//! Fuzzing of parsers. Inputs are mutated; an input with a new outcome is mutated further. A test
//! runs a fixed number of rounds from a fixed seed. With `FUZZ_SECONDS` in the environment it runs
//! for that time, from `FUZZ_SEED` or the time of day. An input that causes a panic is printed in
//! hexadecimal and written to a file.

use crate::crc::crc32c;
use crate::format::frame::MAGIC;
use crate::testing::Random;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime};

/// Number of rounds in a test.
const ROUNDS: usize = 400;
/// Maximum length of an input in bytes.
const MOST_BYTES: usize = 1 << 16;
/// Maximum number of kept inputs.
const MOST_KEPT: usize = 4_096;

/// A fuzzed parser: its seeds and mutations.
pub struct Fuzz<'a> {
    /// Name, for messages.
    pub name: &'a str,
    /// The first inputs.
    pub seeds: Vec<Vec<u8>>,
    /// Words that mutations insert.
    pub words: &'a [&'a str],
    /// Corrects the checksums of an input. Seven of eight inputs are corrected.
    pub mend: fn(&mut [u8]),
}

/// Leaves an input unchanged.
pub fn keep(_: &mut [u8]) {}

impl Fuzz<'_> {
    /// Gives mutated inputs to `target`, which returns the name of the outcome.
    ///
    /// # Panics
    /// The target panicked.
    #[allow(clippy::panic)]
    pub fn run(self, target: impl Fn(&[u8]) -> String) {
        let seconds = number("FUZZ_SECONDS");
        let clock = SystemTime::UNIX_EPOCH.elapsed();
        let clock = clock.map_or(1, |t| t.as_nanos() as u64);
        let seed = match seconds {
            None => 1,
            Some(_) => number("FUZZ_SEED").unwrap_or(clock),
        };
        let until = seconds.map(|s| Instant::now() + Duration::from_secs(s));
        let mut random = Random(seed);
        let mut kept = self.seeds.clone();
        let mut outcomes: HashSet<String> = HashSet::new();
        let mut rounds = 0;
        loop {
            let input = match kept.get(rounds) {
                Some(seed) if rounds < self.seeds.len() => seed.clone(),
                _ => self.next(&mut random, &kept),
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
            let Ok(outcome) = outcome else {
                panic!("{}", self.report(seed, rounds, &input));
            };
            if outcomes.insert(outcome) && kept.len() < MOST_KEPT {
                kept.push(input);
            }
            rounds += 1;
            let done = match until {
                Some(until) => Instant::now() >= until,
                None => rounds >= ROUNDS,
            };
            if done {
                break;
            }
        }
        let (name, found) = (self.name, outcomes.len());
        println!("fuzz {name}: {rounds} inputs, {found} outcomes, seed {seed}");
    }

    fn report(&self, seed: u64, round: usize, input: &[u8]) -> String {
        let name = format!("tacho-fuzz-{}-{}", self.name, std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::write(&path, input);
        let hex: String = input.iter().map(|b| format!("{b:02x}")).collect();
        let (name, path) = (self.name, path.display());
        format!("{name}, seed {seed}, round {round}, input in {path}: {hex}")
    }

    fn next(&self, random: &mut Random, kept: &[Vec<u8>]) -> Vec<u8> {
        let pick = |random: &mut Random| -> Vec<u8> {
            let at = random.below(kept.len() as u64) as usize;
            kept.get(at).cloned().unwrap_or_default()
        };
        let mut input = pick(random);
        for _ in 0..1 + random.below(5) {
            let other = pick(random);
            self.mutate(random, &mut input, &other);
        }
        input.truncate(MOST_BYTES);
        if random.below(8) > 0 {
            (self.mend)(&mut input);
        }
        input
    }

    fn mutate(&self, random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
        let at = random.below(input.len() as u64 + 1) as usize;
        let length = (1 << random.below(8)) as usize;
        let end = (at + length).min(input.len());
        match random.below(9) {
            0 => flip(input, at, 1 << random.below(8)),
            1 => flip(input, at, random.below(256) as u8),
            2 => drop(input.drain(at..end)),
            3 => {
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            4 => {
                let from = random.below(other.len() as u64 + 1) as usize;
                let to = (from + length).min(other.len());
                input.splice(at..end, other[from..to].iter().copied());
            }
            5 => {
                let number = interesting(random).to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4) as usize];
                let end = (at + width).min(input.len());
                input.splice(at..end, number[..width].iter().copied());
            }
            6 => input.truncate(at),
            _ if self.words.is_empty() => flip(input, at, random.below(256) as u8),
            _ => {
                let word = self.words[random.below(self.words.len() as u64) as usize];
                let end = if random.chance(50) { at } else { end };
                input.splice(at..end, word.bytes());
            }
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn flip(input: &mut [u8], at: usize, bits: u8) {
    if let Some(byte) = input.get_mut(at) {
        *byte ^= bits;
    }
}

/// Numbers near the limits of types and formats.
fn interesting(random: &mut Random) -> u64 {
    let bits = random.below(65) as u32;
    let power = 1_u64.checked_shl(bits).unwrap_or(0);
    power.wrapping_add(random.below(3)).wrapping_sub(1)
}

/// Corrects the checksum of every frame.
pub fn mend_frames(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(skip) = bytes[at..].windows(4).position(|w| w == MAGIC) {
        at += skip;
        let length = u32_at(bytes, at + 8).unwrap_or(u32::MAX) as usize;
        at = match mend(bytes, at, (at + 40).saturating_add(length)) {
            Some(end) => end,
            None => at + 4,
        };
    }
}

/// Corrects the checksums of a log: both header copies and all frames.
pub fn mend_log(bytes: &mut [u8]) {
    for begin in [0, 80] {
        mend(bytes, begin, begin + 76);
    }
    mend_frames(bytes);
}

/// Corrects the checksums of a sealed file: head, chunks and tail.
pub fn mend_sealed(bytes: &mut [u8]) {
    use crate::format::entry::CHUNK_MAGIC;
    use crate::format::sealed_write::{HEAD_BYTES, TAIL_BYTES};
    mend(bytes, 0, HEAD_BYTES - 4);
    let mut at = HEAD_BYTES.min(bytes.len());
    while let Some(skip) = bytes[at..].windows(4).position(|w| w == CHUNK_MAGIC) {
        at += skip;
        let length = u32_at(bytes, at + 16).unwrap_or(u32::MAX) as usize;
        at = match mend(bytes, at, (at + 24).saturating_add(length)) {
            Some(end) => end,
            None => at + 4,
        };
    }
    if let Some(begin) = bytes.len().checked_sub(TAIL_BYTES) {
        mend(bytes, begin, begin + TAIL_BYTES - 4);
    }
}

/// Writes the checksum of `begin..end` behind it; returns the end of the checksum.
fn mend(bytes: &mut [u8], begin: usize, end: usize) -> Option<usize> {
    let crc = crc32c(bytes.get(begin..end)?);
    let behind = end.checked_add(4)?;
    bytes
        .get_mut(end..behind)?
        .copy_from_slice(&crc.to_le_bytes());
    Some(behind)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
