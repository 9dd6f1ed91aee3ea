//! Sections: the rows of one table, column by column. Parsing checks every length, so accessors of
//! a parsed column cannot fail. A section has at most as many rows as bytes, so a small section
//! cannot claim a large number of rows.

use crate::error::{Error, Result};
use crate::format::bytes::u32_at;
use crate::format::schema::ColumnType;

/// Length of the head in bytes.
const HEAD_BYTES: usize = 8;

/// The rows of a table in a frame.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// Id of the table.
    pub table: u8,
    /// Number of rows; at most the section's length in bytes.
    pub rows: usize,
    /// The stored columns. Columns that have only zeros or empty strings are left out.
    pub columns: Vec<RawColumn<'a>>,
}

/// A column as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct RawColumn<'a> {
    /// Id of the column.
    pub id: u8,
    coding: Coding<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Coding<'a> {
    Dense {
        width: usize,
        numbers: &'a [u8],
    },
    Sparse {
        width: usize,
        rows: &'a [u8],
        numbers: &'a [u8],
    },
    Strings {
        width: usize,
        lengths: &'a [u8],
        data: &'a [u8],
    },
}

/// A little-endian number of 1, 2, 4 or 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

fn numbers(bytes: &[u8], width: usize) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(width).map(number)
}

/// Appends `of(number)` for each number. All numbers have `width` bytes.
fn map_numbers<T>(bytes: &[u8], width: usize, out: &mut Vec<T>, mut of: impl FnMut(u64) -> T) {
    match width {
        1 => out.extend(bytes.iter().map(|b| of(u64::from(*b)))),
        2 => out.extend(
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| of(u16::from_le_bytes(*b).into())),
        ),
        4 => out.extend(
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| of(u32::from_le_bytes(*b).into())),
        ),
        _ => out.extend(
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| of(u64::from_le_bytes(*b))),
        ),
    }
}

/// Iterator over the sections of a payload; ends after the first error.
pub struct Sections<'a> {
    rest: &'a [u8],
    remaining: u32,
}

impl<'a> Sections<'a> {
    pub(crate) fn new(payload: &'a [u8], sections: u32) -> Self {
        Sections {
            rest: payload,
            remaining: sections,
        }
    }
}

impl<'a> Iterator for Sections<'a> {
    type Item = Result<Section<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            let trailing = !std::mem::take(&mut self.rest).is_empty();
            return trailing
                .then(|| Err(Error::damaged("unexpected bytes after the last section")));
        }
        self.remaining -= 1;
        let section = parse_section(&mut self.rest);
        if section.is_err() {
            self.remaining = 0;
            self.rest = &[];
        }
        Some(section)
    }
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Result<&'a [u8]> {
    let (taken, left) = rest
        .split_at_checked(bytes)
        .ok_or_else(|| Error::damaged("section ends too early"))?;
    *rest = left;
    Ok(taken)
}

fn take_array<'a>(rest: &mut &'a [u8], entries: usize, width: usize) -> Result<&'a [u8]> {
    let bytes = entries
        .checked_mul(width)
        .ok_or_else(|| Error::damaged("section is too long"))?;
    take(rest, bytes)
}

fn parse_section<'a>(rest: &mut &'a [u8]) -> Result<Section<'a>> {
    let before = rest.len();
    let head = take(rest, HEAD_BYTES)?;
    let rows = u32_at(head, 4).unwrap_or(0) as usize;
    if rows > before {
        return Err(Error::damaged(format!(
            "section has {rows} rows in {before} bytes"
        )));
    }
    let mut columns = Vec::with_capacity(usize::from(head[1]));
    for _ in 0..head[1] {
        columns.push(parse_column(rest, rows)?);
    }
    if rows > before - rest.len() {
        return Err(Error::damaged(format!(
            "section has {rows} rows in fewer bytes"
        )));
    }
    Ok(Section {
        table: head[0],
        rows,
        columns,
    })
}

fn parse_column<'a>(rest: &mut &'a [u8], rows: usize) -> Result<RawColumn<'a>> {
    let head = take(rest, 2)?;
    let coding = match head[1] {
        width @ (1 | 2 | 4 | 8) => {
            let width = usize::from(width);
            let numbers = take_array(rest, rows, width)?;
            Coding::Dense { width, numbers }
        }
        code @ (17 | 18 | 20 | 24) => parse_sparse(rest, rows, usize::from(code - 16))?,
        code @ (33 | 34 | 36) => parse_strings(rest, rows, usize::from(code - 32))?,
        code => return Err(Error::damaged(format!("unknown column coding {code}"))),
    };
    Ok(RawColumn {
        id: head[0],
        coding,
    })
}

fn parse_sparse<'a>(rest: &mut &'a [u8], rows: usize, width: usize) -> Result<Coding<'a>> {
    let entries = number(take(rest, 4)?) as usize;
    let indexes = take_array(rest, entries, 4)?;
    let mut next = 0;
    for index in numbers(indexes, 4) {
        if index < next || index >= rows as u64 {
            return Err(Error::damaged("row index is out of order or too large"));
        }
        next = index + 1;
    }
    Ok(Coding::Sparse {
        width,
        rows: indexes,
        numbers: take_array(rest, entries, width)?,
    })
}

fn parse_strings<'a>(rest: &mut &'a [u8], rows: usize, width: usize) -> Result<Coding<'a>> {
    let lengths = take_array(rest, rows, width)?;
    // At most 16 Mi lengths of 32 bits, so the sum does not overflow.
    let total: u64 = numbers(lengths, width).sum();
    let total = usize::try_from(total).map_err(|_| Error::damaged("strings are too long"))?;
    Ok(Coding::Strings {
        width,
        lengths,
        data: take(rest, total)?,
    })
}

impl<'a> Section<'a> {
    /// Finds a column by id.
    pub fn column(&self, id: u8) -> Option<&RawColumn<'a>> {
        self.columns.iter().find(|c| c.id == id)
    }

    /// The stored numbers of a column; zeros if it is left out.
    pub fn stored(&self, id: u8) -> Vec<u64> {
        self.column(id)
            .map_or_else(|| vec![0; self.rows], |c| c.stored(self.rows))
    }

    /// The strings of a column; empty strings if it is left out.
    pub fn strings(&self, id: u8) -> Vec<&'a [u8]> {
        match self.column(id) {
            Some(c) if c.is_strings() => c.strings().collect(),
            _ => vec![&[]; self.rows],
        }
    }
}

impl<'a> RawColumn<'a> {
    /// True if the column has strings.
    pub fn is_strings(&self) -> bool {
        matches!(self.coding, Coding::Strings { .. })
    }

    /// Length in bytes after its id and coding.
    pub(crate) fn data_bytes(&self) -> usize {
        match self.coding {
            Coding::Dense { numbers, .. } => numbers.len(),
            Coding::Sparse { rows, numbers, .. } => 4 + rows.len() + numbers.len(),
            Coding::Strings { lengths, data, .. } => lengths.len() + data.len(),
        }
    }

    /// The stored numbers, one for each row of the section; zeros for strings.
    pub fn stored(&self, rows: usize) -> Vec<u64> {
        let mut all = Vec::new();
        self.decode(rows, &mut all, |number| number);
        all
    }

    /// Appends the value of each stored number, one for each row of the section. 0 becomes the
    /// default.
    pub(crate) fn decode<T: Copy + Default>(
        &self,
        rows: usize,
        out: &mut Vec<T>,
        mut of: impl FnMut(u64) -> T,
    ) {
        match self.coding {
            Coding::Dense { width, numbers } => map_numbers(numbers, width, out, of),
            Coding::Sparse {
                width,
                rows: r,
                numbers: n,
            } => {
                let begin = out.len();
                out.resize(begin + rows, T::default());
                for (row, value) in numbers(r, 4).zip(numbers(n, width)) {
                    out[begin + row as usize] = of(value);
                }
            }
            Coding::Strings { .. } => out.resize(out.len() + rows, T::default()),
        }
    }

    /// The strings, one for each row; empty for a column of numbers.
    pub fn strings(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (width, lengths, mut rest): (usize, &[u8], &[u8]) = match self.coding {
            Coding::Strings {
                width,
                lengths,
                data,
            } => (width, lengths, data),
            _ => (1, &[], &[]),
        };
        numbers(lengths, width).map(move |length| {
            let (string, left) = rest.split_at(length as usize);
            rest = left;
            string
        })
    }
}

fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

/// The value of a stored number; 0 is null.
pub fn from_stored(ty: ColumnType, stored: u64, base_ms: i64) -> i64 {
    match ty {
        ColumnType::Int => unzigzag(stored),
        ColumnType::Time | ColumnType::TimeUs if stored == 0 => 0,
        ColumnType::Time => base_ms.wrapping_add(unzigzag(stored - 1)),
        ColumnType::TimeUs => unzigzag(stored - 1),
        _ => stored as i64,
    }
}

/// The stored number of a value; the inverse of [`from_stored`].
pub fn to_stored(ty: ColumnType, value: i64, base_ms: i64) -> u64 {
    match ty {
        ColumnType::Int => zigzag(value),
        ColumnType::Time | ColumnType::TimeUs if value == 0 => 0,
        ColumnType::Time => zigzag(value.wrapping_sub(base_ms)).wrapping_add(1),
        ColumnType::TimeUs => zigzag(value).wrapping_add(1),
        _ => value as u64,
    }
}

/// The values of a column for writing: stored numbers or strings.
#[derive(Clone, Debug)]
pub enum Values {
    /// One stored number per row.
    Ints(Vec<u64>),
    /// One string per row.
    Bytes(Vec<Vec<u8>>),
}

pub(crate) fn encode_section(out: &mut Vec<u8>, table: u8, rows: usize, columns: &[(u8, Values)]) {
    let begin = out.len();
    out.extend_from_slice(&[table, 0, 0, 0]);
    out.extend_from_slice(&(rows as u32).to_le_bytes());
    for (id, values) in columns {
        let written = match values {
            Values::Ints(v) => encode_ints(out, *id, v),
            Values::Bytes(v) => encode_strings(out, *id, v),
        };
        out[begin + 1] += u8::from(written);
    }
}

fn width_of(max: u64) -> usize {
    match max {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

fn encode_ints(out: &mut Vec<u8>, id: u8, values: &[u64]) -> bool {
    let used = values.iter().filter(|&&v| v != 0).count();
    if used == 0 {
        return false;
    }
    let width = width_of(values.iter().copied().max().unwrap_or(0));
    if 4 + used * (4 + width) < values.len() * width {
        out.extend_from_slice(&[id, 16 + width as u8]);
        out.extend_from_slice(&(used as u32).to_le_bytes());
        for (row, _) in values.iter().enumerate().filter(|(_, v)| **v != 0) {
            out.extend_from_slice(&(row as u32).to_le_bytes());
        }
        for value in values.iter().filter(|v| **v != 0) {
            out.extend_from_slice(&value.to_le_bytes()[..width]);
        }
    } else {
        out.extend_from_slice(&[id, width as u8]);
        for value in values {
            out.extend_from_slice(&value.to_le_bytes()[..width]);
        }
    }
    true
}

fn encode_strings(out: &mut Vec<u8>, id: u8, values: &[Vec<u8>]) -> bool {
    let longest = values.iter().map(Vec::len).max().unwrap_or(0);
    if longest == 0 {
        return false;
    }
    let width = width_of(longest as u64);
    out.extend_from_slice(&[id, 32 + width as u8]);
    for value in values {
        out.extend_from_slice(&(value.len() as u64).to_le_bytes()[..width]);
    }
    for value in values {
        out.extend_from_slice(value);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_numbers_read_as_documented() {
        assert_eq!(from_stored(ColumnType::Int, 3, 0), -2);
        assert_eq!(from_stored(ColumnType::Time, 0, 5_000), 0);
        assert_eq!(from_stored(ColumnType::Time, 1, 5_000), 5_000);
        assert_eq!(from_stored(ColumnType::Time, 1 + 1, 5_000), 4_999);
        assert_eq!(from_stored(ColumnType::TimeUs, 1 + 14, 5_000), 7);
        assert_eq!(from_stored(ColumnType::Uint, u64::MAX, 0), -1);
        for ty in [ColumnType::Int, ColumnType::Time, ColumnType::TimeUs] {
            for value in [0, 1, -1, 1_790_000_000_000] {
                assert_eq!(from_stored(ty, to_stored(ty, value, 99), 99), value);
            }
        }
    }

    #[test]
    fn a_section_without_the_bytes_for_its_rows_is_refused() {
        let mut bytes = vec![20, 0, 0, 0];
        bytes.extend_from_slice(&1_000_000u32.to_le_bytes());
        assert!(Sections::new(&bytes, 1).next().unwrap().is_err());
    }
}
