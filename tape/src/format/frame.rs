//! Frames: the messages of the pipe, which logs store as they are. `docs/format.md` describes the
//! bytes. No memory is allocated for an unchecked length.

use crate::crc::crc32c;
use crate::error::{Error, Result};
use crate::format::bytes::{u32_at, u64_at};
use crate::format::section::{Section, Sections, Values, encode_section};

/// First bytes of every frame.
pub const MAGIC: [u8; 4] = [0xF1, 0x54, 0x43, 0x48];
/// Bytes before the payload.
pub const HEADER_BYTES: usize = 40;
/// Bytes after the payload.
pub const CRC_BYTES: usize = 4;
/// Maximum length of the payload in bytes.
pub const MAX_PAYLOAD: usize = 16 << 20;
/// Maximum length of a frame in bytes.
pub const MAX_FRAME: usize = HEADER_BYTES + MAX_PAYLOAD + CRC_BYTES;
/// Kind of the first frame of a connection and of a log.
pub const HELLO: u8 = 1;
/// Kind of a frame with definitions, ticks, samples and all other data.
pub const DATA: u8 = 2;
/// Kind of a frame that the writer makes: definitions in use, markers.
pub const DEFINE: u8 = 3;

const VERSION: u8 = 1;

/// The fields before the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// [`HELLO`], [`DATA`], [`DEFINE`], or a kind of a later version.
    pub kind: u8,
    /// Length of the payload in bytes, at most [`MAX_PAYLOAD`].
    pub payload_bytes: usize,
    /// Number of sections in the payload.
    pub sections: u32,
    /// Life of the sampler.
    pub incarnation: u64,
    /// Sequence number within the incarnation.
    pub sequence: u64,
    /// Base of TIME columns, in ms since 1970.
    pub base_ms: i64,
}

impl Header {
    /// Reads the header at the start of `bytes`. `None` if there are fewer than [`HEADER_BYTES`]
    /// bytes.
    ///
    /// # Errors
    /// The magic, the version or the length is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Option<Header>> {
        if bytes.len() < HEADER_BYTES {
            return Ok(None);
        }
        if bytes[..4] != MAGIC {
            return Err(Error::damaged("invalid magic number of a frame"));
        }
        if bytes[5] != VERSION {
            let message = format!("unsupported version {} of a frame", bytes[5]);
            return Err(Error::new(crate::error::Kind::Version, message));
        }
        let field32 = |at| u32_at(bytes, at).unwrap_or(0);
        let field64 = |at| u64_at(bytes, at).unwrap_or(0);
        let payload_bytes = field32(8) as usize;
        if payload_bytes > MAX_PAYLOAD {
            return Err(Error::damaged(format!(
                "frame is too long: {payload_bytes} bytes"
            )));
        }
        Ok(Some(Header {
            kind: bytes[4],
            payload_bytes,
            sections: field32(12),
            incarnation: field64(16),
            sequence: field64(24),
            base_ms: field64(32) as i64,
        }))
    }

    /// Length of the whole frame in bytes.
    pub fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.payload_bytes + CRC_BYTES
    }
}

/// A frame whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Fields before the payload.
    pub header: Header,
    /// All bytes, including header and checksum.
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the frame at the start of `bytes`. `None` if the frame is incomplete.
    ///
    /// # Errors
    /// The header or the checksum is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Frame<'a>>> {
        let Some(header) = Header::parse(bytes)? else {
            return Ok(None);
        };
        let Some(bytes) = bytes.get(..header.frame_bytes()) else {
            return Ok(None);
        };
        let end = bytes.len() - CRC_BYTES;
        let expected = crc32c(&bytes[..end]);
        let stored = u32_at(bytes, end).unwrap_or(0);
        if stored != expected {
            let message =
                format!("incorrect frame checksum: {stored:#010x}, expected {expected:#010x}");
            return Err(Error::damaged(message));
        }
        Ok(Some(Frame { header, bytes }))
    }

    /// The sections of the payload, parsed one by one.
    pub fn sections(&self) -> Sections<'a> {
        let payload = &self.bytes[HEADER_BYTES..self.bytes.len() - CRC_BYTES];
        Sections::new(payload, self.header.sections)
    }

    /// All sections.
    ///
    /// # Errors
    /// One of them is damaged.
    pub fn all_sections(&self) -> Result<Vec<Section<'a>>> {
        self.sections().collect()
    }
}

/// Makes a frame.
pub struct FrameBuilder {
    bytes: Vec<u8>,
    sections: u32,
}

impl FrameBuilder {
    /// Starts a frame.
    pub fn new(kind: u8, incarnation: u64, sequence: u64, base_ms: i64) -> Self {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[kind, VERSION, 0, 0]);
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&incarnation.to_le_bytes());
        bytes.extend_from_slice(&sequence.to_le_bytes());
        bytes.extend_from_slice(&base_ms.to_le_bytes());
        FrameBuilder { bytes, sections: 0 }
    }

    /// Adds a section. Each column has one value for each row. Columns of zeros and sections
    /// without rows are left out.
    pub fn section(&mut self, table: u8, rows: usize, columns: &[(u8, Values)]) {
        if rows > 0 {
            encode_section(&mut self.bytes, table, rows, columns);
            self.sections += 1;
        }
    }

    /// Length of the payload so far in bytes.
    pub fn payload_bytes(&self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }

    /// The finished frame.
    pub fn finish(mut self) -> Vec<u8> {
        let payload = self.payload_bytes() as u32;
        self.bytes[8..12].copy_from_slice(&payload.to_le_bytes());
        self.bytes[12..16].copy_from_slice(&self.sections.to_le_bytes());
        let crc = crc32c(&self.bytes);
        self.bytes.extend_from_slice(&crc.to_le_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Vec<u8> {
        let mut frame = FrameBuilder::new(DATA, 7, 3, 1_000);
        let dense = (1, Values::Ints(vec![1, 2, 300]));
        let sparse = (2, Values::Ints(vec![0, 0, 70_000]));
        let zeros = (3, Values::Ints(vec![0, 0, 0]));
        let strings = vec![b"a".to_vec(), vec![], b"xyz".to_vec()];
        frame.section(20, 3, &[dense, sparse, zeros, (4, Values::Bytes(strings))]);
        frame.finish()
    }

    #[test]
    fn crc_is_castagnoli() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn a_frame_gives_back_its_columns() {
        let bytes = sample();
        let frame = Frame::parse(&bytes).unwrap().unwrap();
        assert_eq!(frame.header.sequence, 3);
        let sections = frame.all_sections().unwrap();
        assert_eq!((sections.len(), sections[0].rows), (1, 3));
        assert_eq!(sections[0].columns.len(), 3);
        assert_eq!(sections[0].column(1).unwrap().stored(3), [1, 2, 300]);
        assert_eq!(sections[0].column(2).unwrap().stored(3), [0, 0, 70_000]);
        let strings = sections[0].column(4).unwrap().strings().collect::<Vec<_>>();
        assert_eq!(strings, [&b"a"[..], b"", b"xyz"]);
    }

    #[test]
    fn every_prefix_is_incomplete_and_every_flipped_bit_is_found() {
        let bytes = sample();
        for end in 0..bytes.len() {
            assert!(Frame::parse(&bytes[..end]).unwrap().is_none());
        }
        for bit in 0..bytes.len() * 8 {
            let mut copy = bytes.clone();
            copy[bit / 8] ^= 1 << (bit % 8);
            // A larger length makes the frame incomplete; every other change is damage.
            assert!(!matches!(Frame::parse(&copy), Ok(Some(_))), "bit {bit}");
        }
    }

    #[test]
    fn flipped_bits_behind_a_right_checksum_do_not_panic() {
        let bytes = sample();
        for bit in HEADER_BYTES * 8..(bytes.len() - 4) * 8 {
            let mut copy = bytes.clone();
            copy[bit / 8] ^= 1 << (bit % 8);
            let end = copy.len() - 4;
            let crc = crc32c(&copy[..end]).to_le_bytes();
            copy[end..].copy_from_slice(&crc);
            let frame = Frame::parse(&copy).unwrap().unwrap();
            for section in frame.sections().flatten() {
                for column in &section.columns {
                    let _ = column.stored(section.rows);
                    let _ = column.strings().count();
                }
            }
        }
    }

    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), 0..256u64, 0..70_000u64, any::<u64>()]
    }

    proptest! {
        #[test]
        fn sections_survive_a_round_trip(
            ints in prop::collection::vec(number(), 1..200),
            strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20),
        ) {
            let mut frame = FrameBuilder::new(DATA, 1, 1, 0);
            frame.section(9, ints.len(), &[(5, Values::Ints(ints.clone())), (6, Values::Ints(vec![1; ints.len()]))]);
            frame.section(8, strings.len(), &[(1, Values::Bytes(strings.clone()))]);
            let bytes = frame.finish();
            let frame = Frame::parse(&bytes).unwrap().unwrap();
            let sections = frame.all_sections().unwrap();
            let got = sections[0].column(5).map_or(vec![0; ints.len()], |c| c.stored(ints.len()));
            prop_assert_eq!(got, ints);
            let got: Vec<Vec<u8>> = match sections[1].column(1) {
                Some(c) => c.strings().map(<[u8]>::to_vec).collect(),
                None => vec![vec![]; strings.len()],
            };
            prop_assert_eq!(got, strings);
        }

        #[test]
        fn arbitrary_payloads_do_not_panic(payload in prop::collection::vec(any::<u8>(), 0..200), n in 0..5u32) {
            for section in Sections::new(&payload, n).flatten() {
                for column in &section.columns {
                    prop_assert!(section.rows <= payload.len());
                    let _ = column.stored(section.rows);
                    let _ = column.strings().count();
                }
            }
        }
    }
}
