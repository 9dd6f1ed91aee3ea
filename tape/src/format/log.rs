//! The log: two copies of a header, then frames as they came. The store reads it while the writer
//! appends. Recovery also reads it: it skips damaged frames and never appends to a log that it
//! read.

use crate::crc::crc32c;
use crate::error::{Error, Kind, Result};
use crate::format::bytes::{u32_at, u64_at};
use crate::format::frame::{CRC_BYTES, DATA, DEFINE, Frame, HEADER_BYTES, HELLO, Header, MAGIC};
use crate::format::hello;
use crate::format::ingest::Ingest;
use crate::format::part::{Identity, LogDamage};
use crate::format::sums::Sums;

const LOG_MAGIC: [u8; 4] = [0xF1, 0x54, 0x43, 0x4C];
const VERSION: u8 = 1;
/// Length of one copy of the header in bytes.
const COPY_BYTES: usize = 80;
/// Offset of the first frame.
pub const FRAMES_AT: usize = 2 * COPY_BYTES;

/// The header of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogHeader {
    /// The node and server that write it.
    pub identity: Identity,
    /// Life of the sampler that sent its frames.
    pub incarnation: u64,
    /// Number that is added to the ticks of its frames.
    pub tick_base: u64,
    /// Sequence of its first data frame. If an earlier log of the same incarnation has this or a
    /// later frame, that frame does not count: writing it had failed.
    pub first_sequence: u64,
    /// Wall clock in ms since 1970 when the log was created.
    pub created_ms: i64,
}

impl LogHeader {
    /// Both copies of the header.
    pub fn encode(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(FRAMES_AT);
        copy.extend_from_slice(&LOG_MAGIC);
        copy.extend_from_slice(&[VERSION, COPY_BYTES as u8, 0, 0]);
        encode_identity(&mut copy, &self.identity);
        copy.extend_from_slice(&self.incarnation.to_le_bytes());
        copy.extend_from_slice(&self.tick_base.to_le_bytes());
        copy.extend_from_slice(&self.first_sequence.to_le_bytes());
        copy.extend_from_slice(&self.created_ms.to_le_bytes());
        copy.extend_from_slice(&[0; 4]);
        let crc = crc32c(&copy);
        copy.extend_from_slice(&crc.to_le_bytes());
        copy.extend_from_within(..);
        copy
    }

    /// Reads the header from the start of a log.
    ///
    /// # Errors
    /// Both copies are damaged or missing, or of a later version.
    pub fn parse(bytes: &[u8]) -> Result<LogHeader> {
        let first = parse_copy(bytes);
        first.or_else(|error| {
            let second = bytes.get(COPY_BYTES..).unwrap_or(&[]);
            parse_copy(second).map_err(|_| error)
        })
    }
}

pub(crate) const IDENTITY_BYTES: usize = 32;

pub(crate) fn encode_identity(out: &mut Vec<u8>, identity: &Identity) {
    out.extend_from_slice(&identity.node.to_le_bytes());
    out.extend_from_slice(&identity.system_identifier.to_le_bytes());
    out.extend_from_slice(&identity.postmaster_start_us.to_le_bytes());
    out.extend_from_slice(&identity.timeline.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
}

pub(crate) fn parse_identity(bytes: &[u8]) -> Option<Identity> {
    Some(Identity {
        node: u64_at(bytes, 0)?,
        system_identifier: u64_at(bytes, 8)?,
        postmaster_start_us: u64_at(bytes, 16)? as i64,
        timeline: u32_at(bytes, 24)?,
    })
}

fn parse_copy(bytes: &[u8]) -> Result<LogHeader> {
    let Some(copy) = bytes.get(..COPY_BYTES) else {
        return Err(Error::damaged("log ends within its header"));
    };
    if copy[..4] != LOG_MAGIC
        || u32_at(copy, COPY_BYTES - 4) != Some(crc32c(&copy[..COPY_BYTES - 4]))
    {
        return Err(Error::damaged("invalid log header"));
    }
    if copy[4] != VERSION {
        let message = format!("unsupported version {} of log", copy[4]);
        return Err(Error::new(Kind::Version, message));
    }
    let field = |at| u64_at(copy, at).unwrap_or(0);
    let identity = parse_identity(&copy[8..8 + IDENTITY_BYTES]);
    Ok(LogHeader {
        identity: identity.unwrap_or_default(),
        incarnation: field(40),
        tick_base: field(48),
        first_sequence: field(56),
        created_ms: field(64) as i64,
    })
}

/// A stretch of a log's bytes.
#[derive(Clone, Copy, Debug)]
pub enum Stretch<'a> {
    /// A valid frame.
    Frame(Frame<'a>),
    /// Bytes that are not a valid frame. A valid frame follows, or the bytes cannot be an
    /// incomplete frame.
    Damaged {
        /// Offset in the log.
        offset: usize,
        /// Length in bytes.
        bytes: usize,
    },
    /// The start of a frame at the end of the log, or zeros. The frame is being written, or a crash
    /// cut it off.
    Torn {
        /// Offset in the log.
        offset: usize,
        /// Length in bytes.
        bytes: usize,
    },
}

/// Goes through the frames of a log.
pub struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    sums: Sums<'a>,
    /// True after damage: bytes that look like a frame may not be one.
    doubt: bool,
}

impl<'a> Scan<'a> {
    /// Scans all frames of a log.
    pub fn new(log: &'a [u8]) -> Self {
        Scan {
            bytes: log,
            at: FRAMES_AT.min(log.len()),
            sums: Sums::new(log),
            doubt: false,
        }
    }

    /// Scans frames without a log header.
    fn of_frames(frames: &'a [u8]) -> Self {
        Scan {
            at: 0,
            ..Scan::new(frames)
        }
    }

    /// Offset after the stretches returned so far.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The valid frame at an offset; `None` if none begins there.
    fn frame_at(&mut self, at: usize) -> Option<Frame<'a>> {
        let log = self.bytes;
        let bytes = log.get(at..)?;
        if !self.doubt {
            return Frame::parse(bytes).ok().flatten();
        }
        let header = Header::parse(bytes).ok().flatten()?;
        let bytes = bytes.get(..header.frame_bytes())?;
        let end = bytes.len() - CRC_BYTES;
        let stored = u32_at(bytes, end)?;
        let valid = self.sums.of(at, at + end) == stored;
        valid.then_some(Frame { header, bytes })
    }

    /// Offset of the first valid frame from `from` on; `None` if there is none.
    fn resync(&mut self, from: usize) -> Option<usize> {
        let mut at = from;
        while let Some(found) = self.bytes.get(at..)?.windows(4).position(|w| w == MAGIC) {
            at += found;
            if self.frame_at(at).is_some() {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// True if the rest may be an incomplete frame.
    fn is_torn(&self, rest: &[u8]) -> bool {
        if rest.iter().all(|&b| b == 0) {
            return true;
        }
        let head = rest.len().min(MAGIC.len());
        let begins = rest[..head] == MAGIC[..head];
        begins && (rest.len() < HEADER_BYTES || matches!(Frame::parse(rest), Ok(None)))
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = Stretch<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.at;
        let rest = self.bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        if let Some(frame) = self.frame_at(offset) {
            self.at += frame.bytes.len();
            return Some(Stretch::Frame(frame));
        }
        self.doubt = true;
        if let Some(next) = self.resync(offset + 1) {
            self.at = next;
            let bytes = next - offset;
            return Some(Stretch::Damaged { offset, bytes });
        }
        self.at = self.bytes.len();
        let bytes = rest.len();
        Some(match self.is_torn(rest) {
            true => Stretch::Torn { offset, bytes },
            false => Stretch::Damaged { offset, bytes },
        })
    }
}

/// The contents of a log.
pub struct LogContents {
    /// Header of the log.
    pub header: LogHeader,
    /// All rows; `None` without a hello frame.
    pub ingest: Option<Ingest>,
    /// Damaged bytes.
    pub damage: Vec<LogDamage>,
    /// Length in bytes of an incomplete frame at the end.
    pub torn_bytes: usize,
    /// Sequence of the last data frame that counts; 0 = none.
    pub last_sequence: u64,
    /// Offset after the last valid frame.
    pub end: usize,
}

/// Reads a log. Data frames from `until_sequence` on do not count.
///
/// # Errors
/// The header is damaged.
pub fn read_log(bytes: &[u8], until_sequence: u64) -> Result<LogContents> {
    let header = LogHeader::parse(bytes)?;
    let mut contents = LogContents::new(header);
    contents.read(Scan::new(bytes), 0, until_sequence);
    Ok(contents)
}

impl LogContents {
    /// The contents of a log without frames.
    pub(crate) fn new(header: LogHeader) -> Self {
        LogContents {
            header,
            ingest: None,
            damage: Vec::new(),
            torn_bytes: 0,
            last_sequence: 0,
            end: FRAMES_AT,
        }
    }

    /// Adds the bytes that were appended after [`LogContents::end`]. Unless there was damage, the
    /// result is the same as reading the whole log again.
    pub(crate) fn read_on(&mut self, bytes: &[u8], until_sequence: u64) {
        self.torn_bytes = 0;
        self.read(Scan::of_frames(bytes), self.end, until_sequence);
    }

    /// Scans frames. `before` is the offset in the log of the first scanned byte.
    fn read(&mut self, mut scan: Scan<'_>, before: usize, until_sequence: u64) {
        let bytes = scan.bytes;
        let mut reader = Reader {
            contents: self,
            until_sequence,
            before,
            unclosed: Vec::new(),
        };
        while let Some(stretch) = scan.next() {
            match stretch {
                Stretch::Frame(frame) => {
                    reader.frame(&frame, bytes);
                    reader.contents.end = before + scan.offset();
                }
                Stretch::Damaged { offset, bytes } => {
                    let reason = "frames have an incorrect checksum".into();
                    reader.damage(before + offset, bytes, reason);
                }
                Stretch::Torn { bytes, .. } => reader.contents.torn_bytes = bytes,
            }
        }
    }
}

struct Reader<'a> {
    contents: &'a mut LogContents,
    until_sequence: u64,
    /// Offset in the log of the first byte of the scan.
    before: usize,
    /// Indexes in `contents.damage` of damage whose `until_ms` is not known yet.
    unclosed: Vec<usize>,
}

impl Reader<'_> {
    fn last_slot_ms(&self) -> Option<i64> {
        self.contents.ingest.as_ref()?.last_slot_ms()
    }

    fn damage(&mut self, offset: usize, bytes: usize, reason: String) {
        self.unclosed.push(self.contents.damage.len());
        let since_ms = self.last_slot_ms();
        self.contents.damage.push(LogDamage {
            offset: offset as u64,
            bytes: bytes as u64,
            since_ms,
            until_ms: None,
            reason,
        });
    }

    fn frame(&mut self, frame: &Frame<'_>, log: &[u8]) {
        let before = self.last_slot_ms();
        if let Err(error) = self.take(frame) {
            // Both slices are parts of one allocation, so their distance is an offset.
            let offset = frame.bytes.as_ptr() as usize - log.as_ptr() as usize;
            self.damage(self.before + offset, frame.bytes.len(), error.message);
        }
        let after = self.last_slot_ms();
        if after != before
            && let Some(ingest) = &self.contents.ingest
        {
            for index in self.unclosed.drain(..) {
                self.contents.damage[index].until_ms = ingest.frame_first_slot_ms();
            }
        }
    }

    fn take(&mut self, frame: &Frame<'_>) -> Result<()> {
        let sections = frame.all_sections()?;
        let header = &self.contents.header;
        match frame.header.kind {
            HELLO if self.contents.ingest.is_none() => {
                let schema = hello::read_schema(&sections)?;
                self.contents.ingest = Some(Ingest::new(schema, header.tick_base)?);
            }
            DATA => {
                let sequence = frame.header.sequence;
                let fresh = sequence > self.contents.last_sequence;
                if !fresh || sequence >= self.until_sequence {
                    return Ok(());
                }
                self.contents.last_sequence = sequence;
                let ingest = self.contents.ingest.as_mut();
                let ingest =
                    ingest.ok_or_else(|| Error::damaged("data comes before the hello frame"))?;
                ingest.sections(&sections, frame.header.base_ms);
            }
            // Markers of a frame that is written again, in the next log.
            DEFINE if frame.header.sequence >= self.until_sequence => (),
            DEFINE => {
                let ingest = self.contents.ingest.as_mut();
                let ingest =
                    ingest.ok_or_else(|| Error::damaged("data comes before the hello frame"))?;
                ingest.sections(&sections, frame.header.base_ms);
            }
            _ => (),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Load, Sampler, Seen, difference, log_bytes, read};
    use proptest::prelude::*;

    struct Made {
        log: Vec<u8>,
        /// Start of each frame, and the end of the log.
        offsets: Vec<usize>,
        ticks: Vec<Vec<(u64, i64)>>,
        seen: Vec<Vec<Seen>>,
    }

    fn header() -> LogHeader {
        LogHeader {
            identity: Identity {
                node: 9,
                system_identifier: 8,
                timeline: 7,
                postmaster_start_us: 6,
            },
            incarnation: 5,
            tick_base: 100,
            first_sequence: 1,
            created_ms: 4,
        }
    }

    fn make(seed: u64, load: Load, frames: usize) -> Made {
        let mut sampler = Sampler::new(seed, load);
        sampler.tick_base = 100;
        let mut bytes = vec![sampler.hello(&[])];
        let (mut ticks, mut seen) = (vec![vec![]], vec![vec![]]);
        for _ in 0..frames {
            let (frame, t, s) = sampler.frame();
            bytes.push(frame);
            ticks.push(t);
            seen.push(s);
        }
        let mut offsets = vec![FRAMES_AT];
        for frame in &bytes {
            offsets.push(offsets[offsets.len() - 1] + frame.len());
        }
        let log = log_bytes(&header(), &bytes);
        Made {
            log,
            offsets,
            ticks,
            seen,
        }
    }

    #[test]
    fn begins_of_frames_at_every_place_cost_no_more_than_their_number() {
        let made = make(3, Load::default(), 2);
        // Each header claims the longest possible length.
        let fakes = 20_000;
        let end = fakes * HEADER_BYTES;
        let mut hostile = Vec::new();
        for number in 0..fakes {
            let payload = (end - number * HEADER_BYTES).min(crate::format::frame::MAX_PAYLOAD);
            let mut head = made.log[made.offsets[1]..][..HEADER_BYTES].to_vec();
            head[8..12].copy_from_slice(&(payload as u32).to_le_bytes());
            hostile.extend(head);
        }
        // Valid frames are found behind and between them.
        let mut log = made.log[..made.offsets[2]].to_vec();
        log.extend(&hostile);
        log.extend(&made.log[made.offsets[2]..]);
        log.extend(&hostile);
        let mut scan = Scan::new(&log);
        let frames = scan.by_ref().filter(|s| matches!(s, Stretch::Frame(_)));
        assert_eq!(frames.count(), 3);
        let most = (2 * fakes * 8_192 + 2 * log.len()) as u64;
        assert!(scan.sums.work <= most, "{} of {most}", scan.sums.work);
    }

    type Rows = (Vec<(u64, i64)>, Vec<Seen>);

    fn expected(made: &Made, frames: impl Fn(usize) -> bool) -> Rows {
        let kept = (0..made.seen.len()).filter(|&i| frames(i));
        let kept: Vec<usize> = kept.collect();
        let ticks = kept.iter().flat_map(|&i| made.ticks[i].clone()).collect();
        let mut seen: Vec<Seen> = kept.iter().flat_map(|&i| made.seen[i].clone()).collect();
        seen.sort();
        (ticks, seen)
    }

    fn contents(log: &[u8]) -> (Rows, LogContents) {
        let mut contents = read_log(log, u64::MAX).unwrap();
        let rows = contents.ingest.take().map_or_else(Default::default, |i| {
            assert_eq!(i.dropped_rows(), 0);
            read([&i.finish(Identity::default())])
        });
        (rows, contents)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_log_reads_as_the_sent_frames(seed in 0..u64::MAX, ticks_per_frame in 1..12usize) {
            let load = Load { ticks_per_frame, ..Load::default() };
            let made = make(seed, load, 30);
            let (rows, contents) = contents(&made.log);
            let expected = expected(&made, |_| true);
            prop_assert_eq!(difference(&rows.0, &expected.0), None);
            prop_assert_eq!(difference(&rows.1, &expected.1), None);
            prop_assert_eq!(contents.damage, vec![]);
            prop_assert_eq!(contents.header, header());
            prop_assert_eq!(contents.last_sequence, 30);
        }
    }

    #[test]
    fn every_prefix_gives_the_whole_frames_in_it() {
        let made = make(3, Load::default(), 6);
        for end in FRAMES_AT..=made.log.len() {
            let whole = made.offsets.iter().skip(1).filter(|&&o| o <= end).count();
            let (rows, contents) = contents(&made.log[..end]);
            assert!(rows == expected(&made, |i| i < whole), "end {end}");
            assert_eq!(contents.damage, [], "end {end}");
            assert_eq!(contents.torn_bytes, end - made.offsets[whole]);
        }
        assert!(read_log(&made.log[..FRAMES_AT - COPY_BYTES - 1], u64::MAX).is_err());
    }

    #[test]
    fn a_flipped_bit_loses_its_frame_only_and_is_reported() {
        // The first data frame defines everything; the others repeat its rows.
        let load = Load {
            same: 100,
            trouble: 0,
            churn: 0,
            active: 100,
            ..Load::default()
        };
        let made = make(4, load, 4);
        for bit in (FRAMES_AT * 8..made.log.len() * 8).step_by(7) {
            let mut log = made.log.clone();
            log[bit / 8] ^= 1 << (bit % 8);
            let hit = made.offsets.iter().filter(|&&o| o <= bit / 8).count() - 1;
            let mut contents = read_log(&log, u64::MAX).unwrap();
            let last = hit + 2 == made.offsets.len();
            let ticks = contents.ingest.take().map_or_else(Vec::new, |i| {
                let part = i.finish(Identity::default());
                let rows = part.ints("run", "ticks").unwrap().iter().sum::<i64>();
                let ticks = part.ints("tick", "tick").unwrap().to_vec();
                assert_eq!(rows, 5 * ticks.len() as i64);
                // Every definition is in the first data frame.
                assert_eq!(part.lost_definitions() > 0, hit == 1, "bit {bit}");
                ticks
            });
            let all = [101, 102, 103, 104];
            let kept = all
                .iter()
                .enumerate()
                .filter(|(i, _)| i + 1 != hit && hit > 0);
            assert_eq!(
                ticks,
                kept.map(|(_, t)| *t).collect::<Vec<_>>(),
                "bit {bit}"
            );
            // A flipped bit in the length of the last frame makes it look like a frame whose
            // writing was cut off. That is no damage; its bytes count as torn.
            let found = contents.damage.iter().map(|d| d.bytes).sum::<u64>();
            assert!(found > 0 || last && contents.torn_bytes > 0, "bit {bit}");
            if hit == 2 {
                let damage = &contents.damage[0];
                assert_eq!(damage.offset, made.offsets[2] as u64);
                assert_eq!(damage.since_ms, Some(1_790_000_000_000));
                assert_eq!(damage.until_ms, Some(1_790_000_002_000));
            }
        }
    }

    #[test]
    fn one_damaged_copy_of_the_header_does_no_harm() {
        let made = make(5, Load::default(), 1);
        for bit in 0..FRAMES_AT * 8 {
            let mut log = made.log.clone();
            log[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(LogHeader::parse(&log).unwrap(), header());
        }
    }

    #[test]
    fn a_definition_that_comes_late_serves_earlier_rows() {
        let load = Load {
            churn: 0,
            queries: 3,
            ..Load::default()
        };
        // The frames from sequence 60 on repeat the definitions that they use.
        for (frames, lost) in [(59, true), (140, false)] {
            let made = make(6, load.clone(), frames);
            let mut log = made.log.clone();
            log[made.offsets[1] + 45] ^= 1;
            let ingest = read_log(&log, u64::MAX).unwrap().ingest.unwrap();
            let part = ingest.finish(Identity::default());
            assert_eq!(part.lost_definitions() > 0, lost);
            let names = part.bytes("name", "bytes").unwrap();
            assert_eq!(names.iter().any(|n| n == b"?"), lost);
            if !lost {
                let expected = expected(&made, |i| i != 1);
                assert_eq!(difference(&read([&part]).1, &expected.1), None);
            }
        }
    }

    #[test]
    fn frames_that_a_later_log_repeats_do_not_count() {
        let made = make(
            7,
            Load {
                trouble: 0,
                ..Load::default()
            },
            10,
        );
        let contents = read_log(&made.log, 8).unwrap();
        assert_eq!(contents.last_sequence, 7);
        let part = contents.ingest.unwrap().finish(Identity::default());
        assert_eq!(part.last_tick(), 107);
    }
}
