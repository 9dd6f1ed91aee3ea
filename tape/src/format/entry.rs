//! Chunks of a sealed file: their kinds, the head of each chunk, and its entry in the footer or the
//! index.

use crate::format::bytes::{u32_at, u64_at};

pub(crate) const CHUNK_MAGIC: [u8; 4] = [0xF1, 0x54, 0x43, 0x4B];
/// Length of a chunk's head in bytes.
pub(crate) const CHUNK_BYTES: usize = 24;
/// Length of an entry of the footer in bytes.
pub(crate) const ENTRY_BYTES: usize = 44;

pub(crate) const SCHEMA: u8 = 1;
pub(crate) const GROUP: u8 = 2;
pub(crate) const COLUMN: u8 = 3;
pub(crate) const FOOTER: u8 = 4;
pub(crate) const INDEX: u8 = 5;
pub(crate) const PACK: u8 = 6;

/// Description of a chunk. In the footer it also has the chunk's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: u8,
    pub(crate) coding: u8,
    pub(crate) table: u8,
    pub(crate) column: u8,
    pub(crate) group: u32,
    pub(crate) rows: u32,
    pub(crate) data_bytes: u32,
    /// Length in bytes before compression with zstd.
    pub(crate) plain_bytes: u32,
    pub(crate) offset: u64,
    pub(crate) min: i64,
    pub(crate) max: i64,
}

impl Entry {
    pub(crate) fn encode_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&CHUNK_MAGIC);
        out.extend_from_slice(&[self.kind, self.coding, self.table, self.column]);
        for field in [self.group, self.rows, self.data_bytes, self.plain_bytes] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }

    /// Parses the head of a chunk.
    pub(crate) fn parse_head(bytes: &[u8], offset: u64) -> Option<Entry> {
        let head = bytes.get(..CHUNK_BYTES)?;
        if head[..4] != CHUNK_MAGIC {
            return None;
        }
        Some(Entry {
            kind: head[4],
            coding: head[5],
            table: head[6],
            column: head[7],
            group: u32_at(head, 8)?,
            rows: u32_at(head, 12)?,
            data_bytes: u32_at(head, 16)?,
            plain_bytes: u32_at(head, 20)?,
            offset,
            min: i64::MIN,
            max: i64::MAX,
        })
    }

    /// Length of the whole chunk in bytes.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        CHUNK_BYTES as u64 + u64::from(self.data_bytes) + 4
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind, self.coding, self.table, self.column]);
        for field in [self.group, self.rows, self.data_bytes, self.plain_bytes] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        for field in [self.offset, self.min as u64, self.max as u64] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Entry> {
        Some(Entry {
            kind: *bytes.first()?,
            coding: *bytes.get(1)?,
            table: *bytes.get(2)?,
            column: *bytes.get(3)?,
            group: u32_at(bytes, 4)?,
            rows: u32_at(bytes, 8)?,
            data_bytes: u32_at(bytes, 12)?,
            plain_bytes: u32_at(bytes, 16)?,
            offset: u64_at(bytes, 20)?,
            min: u64_at(bytes, 28)? as i64,
            max: u64_at(bytes, 36)? as i64,
        })
    }
}
