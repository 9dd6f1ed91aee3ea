//! Codings of the columns of sealed files. Decoding trusts nothing: counts are checked against the
//! table's rows, and memory grows with the decoded values, not with the claims of a header.

use crate::error::{Error, Result};
use crate::format::bytes::u32_at;
use crate::format::coding::{
    CONSTANT, GAPS, NUMBERS, OFFSET, PAGES, PCO, SPANS, STARTS, STEPS, broken, keep_buffer,
    not_packed, overlap, reused_buffer,
};
use crate::format::numbers;
use crate::format::pages;
use crate::format::table::{BATCH_ROWS, Strings};
use pco::standalone::{ChunkDecompressor, DecompressorItem, FileDecompressor};
use std::cell::RefCell;
use std::io::Read;
use std::ops::Range;

const ZSTD_LEVEL: i32 = 9;
/// Compression level of pco: up to 256 bins for a column.
const LEVEL: usize = pco::DEFAULT_COMPRESSION_LEVEL;
/// Compression level of pco for unordered references: up to 128 bins. With more bins, encoding
/// takes longer, and the description of the bins takes more bytes than they save.
const REFERENCES_LEVEL: usize = 7;

/// A span is consecutive rows with equal values. A column is written as spans if they have at least
/// this many rows on average. Then they are as short as pco, and reading and writing them costs
/// next to nothing.
const SPAN_ROWS: usize = 16;

/// Appends the coding byte and the data.
pub(crate) fn encode_ints(out: &mut Vec<u8>, values: &[i64]) -> Result<()> {
    encode_at(out, values, LEVEL)
}

/// Same as [`encode_ints`], for unordered references.
pub(crate) fn encode_references(out: &mut Vec<u8>, values: &[i64]) -> Result<()> {
    encode_at(out, values, REFERENCES_LEVEL)
}

/// Same as [`encode_ints`], but pages can be read without the others.
pub(crate) fn encode_paged(out: &mut Vec<u8>, values: &[i64]) -> Result<()> {
    if encode_regular(out, values, LEVEL)? {
        return Ok(());
    }
    let is_constant = values.windows(2).all(|pair| pair[0] == pair[1]);
    if is_constant || !pages::ROWS.contains(&values.len()) {
        return encode_flat(out, values, LEVEL);
    }
    out.push(PAGES);
    pages::encode(out, values, LEVEL)
}

/// True if the column is stored relative to others.
pub(crate) fn is_rewritten(coding: u8) -> bool {
    matches!(coding, STARTS | GAPS | OFFSET)
}

fn encode_at(out: &mut Vec<u8>, values: &[i64], level: usize) -> Result<()> {
    match encode_regular(out, values, level)? {
        true => Ok(()),
        false => encode_flat(out, values, level),
    }
}

/// Encodes values as spans or steps if they suit; returns false if not.
fn encode_regular(out: &mut Vec<u8>, values: &[i64], level: usize) -> Result<bool> {
    let spans = 1 + values.windows(2).filter(|pair| pair[0] != pair[1]).count();
    if spans > 1 && spans * SPAN_ROWS <= values.len() {
        encode_spans(out, values, level)?;
        return Ok(true);
    }
    let step = |pair: &[i64]| pair[1].wrapping_sub(pair[0]);
    let changes = values.windows(3).filter(|v| step(&v[..2]) != step(&v[1..]));
    let are_steps = spans > 1 && (2 + changes.count()) * SPAN_ROWS <= values.len();
    if are_steps {
        encode_steps(out, values, level)?;
    }
    Ok(are_steps)
}

fn encode_flat(out: &mut Vec<u8>, values: &[i64], level: usize) -> Result<()> {
    if let Some((&first, rest)) = values.split_first()
        && rest.iter().all(|&v| v == first)
    {
        out.push(CONSTANT);
        out.extend_from_slice(&first.to_le_bytes());
        return Ok(());
    }
    out.push(PCO);
    let config = pco::ChunkConfig::default().with_compression_level(level);
    let packed = pco::standalone::simple_compress(values, &config);
    out.extend_from_slice(&packed.map_err(not_packed)?);
    Ok(())
}

fn encode_spans(out: &mut Vec<u8>, values: &[i64], level: usize) -> Result<()> {
    let spans = values.chunk_by(|a, b| a == b);
    let (lengths, values): (Vec<i64>, Vec<i64>) =
        spans.map(|span| (span.len() as i64, span[0])).unzip();
    let mut coded = Vec::new();
    encode_flat(&mut coded, &lengths, LEVEL)?;
    out.push(SPANS);
    out.extend_from_slice(&(values.len() as u32).to_le_bytes());
    out.extend_from_slice(&(coded.len() as u32).to_le_bytes());
    out.extend_from_slice(&coded);
    encode_flat(out, &values, level)
}

fn encode_steps(out: &mut Vec<u8>, values: &[i64], level: usize) -> Result<()> {
    let steps = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
    out.push(STEPS);
    out.extend_from_slice(&values[0].to_le_bytes());
    encode_spans(out, &steps.collect::<Vec<i64>>(), level)
}

/// The inverse of [`encode_ints`].
pub(crate) fn decode_ints(coded: &[u8], rows: usize) -> Result<Vec<i64>> {
    let (&coding, data) = coded.split_first().ok_or_else(|| broken("coding"))?;
    decode_values(coding, data, rows)
}

/// Same as [`decode_ints`], if the coding byte is stored elsewhere.
pub(crate) fn decode_values(coding: u8, data: &[u8], rows: usize) -> Result<Vec<i64>> {
    decode_rows(coding, data, rows, 0..rows)
}

/// Decodes a range of rows. It decodes no more than that if the coding allows it.
pub(crate) fn decode_rows(
    coding: u8,
    data: &[u8],
    rows: usize,
    wanted: Range<usize>,
) -> Result<Vec<i64>> {
    match coding {
        CONSTANT => decode_flat(coding, data, wanted.len()),
        SPANS => Ok(of_spans(read_spans(data, rows)?, wanted)),
        STEPS => decode_steps(data, rows, wanted),
        PAGES => pages::decode(data, rows, wanted),
        _ => {
            let mut all = decode_flat(coding, data, rows)?;
            all.truncate(wanted.end);
            all.drain(..wanted.start.min(all.len()));
            Ok(all)
        }
    }
}

fn decode_flat(coding: u8, data: &[u8], rows: usize) -> Result<Vec<i64>> {
    match coding {
        CONSTANT => {
            let value = data.try_into().map_err(|_| broken("constant"))?;
            let mut values = reused_buffer(rows);
            values.clear();
            values.resize(rows, i64::from_le_bytes(value));
            Ok(values)
        }
        PCO => decode_pco(data, rows),
        NUMBERS => numbers::decode(data, rows),
        other => Err(Error::damaged(format!("unknown column coding {other}"))),
    }
}

/// Consecutive rows with one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of rows.
    pub rows: usize,
    /// The number.
    pub value: i64,
}

/// The spans of a column that is stored as spans; `None` for other or damaged columns.
pub(crate) fn spans(coded: &[u8], rows: usize) -> Option<Vec<Span>> {
    let (&coding, data) = coded.split_first()?;
    match coding {
        CONSTANT => {
            let value = i64::from_le_bytes(data.try_into().ok()?);
            Some(vec![Span { rows, value }])
        }
        SPANS => read_spans(data, rows).ok(),
        _ => None,
    }
}

fn read_spans(data: &[u8], rows: usize) -> Result<Vec<Span>> {
    let short = || broken("spans");
    let number = |at| u32_at(data, at).map(|n| n as usize).ok_or_else(short);
    let (count, bytes) = (number(0)?, number(4)?);
    if count > rows {
        return Err(broken("spans: too many"));
    }
    let (lengths, values) = data[8..].split_at_checked(bytes).ok_or_else(short)?;
    let flat = |coded: &[u8]| {
        let (&coding, data) = coded.split_first().ok_or_else(short)?;
        decode_flat(coding, data, count)
    };
    let (lengths, values) = (flat(lengths)?, flat(values)?);
    let mut left = rows;
    let mut spans = Vec::with_capacity(count);
    for (&length, &value) in lengths.iter().zip(&values) {
        let rows = usize::try_from(length).ok().filter(|rows| *rows <= left);
        let rows = rows.ok_or_else(|| broken("spans: too many rows"))?;
        left -= rows;
        spans.push(Span { rows, value });
    }
    keep_buffer(lengths);
    keep_buffer(values);
    match left == 0 {
        true => Ok(spans),
        false => Err(broken("spans: too few rows")),
    }
}

/// The numbers in the rows `wanted` of a column with these spans.
fn of_spans(spans: Vec<Span>, wanted: Range<usize>) -> Vec<i64> {
    let mut some = reused_buffer(wanted.len());
    some.clear();
    for (begin, span) in placed(spans) {
        let own = overlap(begin, span.rows, &wanted);
        some.resize(some.len() + own.len(), span.value);
    }
    some
}

/// Spans, each with the row that it begins at.
fn placed(spans: Vec<Span>) -> impl Iterator<Item = (usize, Span)> {
    spans.into_iter().scan(0, |next, span| {
        let begin = *next;
        *next += span.rows;
        Some((begin, span))
    })
}

fn decode_steps(data: &[u8], rows: usize, wanted: Range<usize>) -> Result<Vec<i64>> {
    let (first, steps) = data.split_at_checked(9).ok_or_else(|| broken("steps"))?;
    let (first, coding) = first.split_first_chunk().ok_or_else(|| broken("steps"))?;
    let left = rows.checked_sub(1).filter(|_| coding == [SPANS]);
    let left = left.ok_or_else(|| broken("steps"))?;
    let mut last = i64::from_le_bytes(*first);
    let mut some = reused_buffer(wanted.len());
    some.clear();
    if wanted.contains(&0) {
        some.push(last);
    }
    for (begin, span) in placed(read_spans(steps, left)?) {
        let own = overlap(begin + 1, span.rows, &wanted);
        let at = |row: usize| last.wrapping_add(span.value.wrapping_mul(row as i64 + 1));
        some.extend(own.map(at));
        last = last.wrapping_add(span.value.wrapping_mul(span.rows as i64));
    }
    Ok(some)
}

fn decode_pco(data: &[u8], rows: usize) -> Result<Vec<i64>> {
    // Every old value of the buffer is overwritten.
    let mut values = reused_buffer(rows);
    read_pco(data, rows, |chunk, own| {
        if values.len() < own.end {
            values.resize(own.end, 0);
        }
        read_whole(chunk, &mut values[own])
    })?;
    values.truncate(rows);
    Ok(values)
}

type PcoChunk<'d> = ChunkDecompressor<i64, &'d [u8]>;

/// Calls `read` with each chunk of pco and the rows that it has.
fn read_pco<'d>(
    data: &'d [u8],
    rows: usize,
    mut read: impl FnMut(&mut PcoChunk<'d>, Range<usize>) -> Result<()>,
) -> Result<()> {
    let not_pco = |_| broken("pco");
    let (file, mut rest) = FileDecompressor::new(data).map_err(not_pco)?;
    let mut begin = 0;
    while let DecompressorItem::Chunk(mut chunk) = file.chunk_decompressor(rest).map_err(not_pco)? {
        if chunk.n() > rows - begin {
            return Err(broken("pco: too many rows"));
        }
        let end = begin + chunk.n();
        read(&mut chunk, begin..end)?;
        begin = end;
        rest = chunk.into_src();
    }
    match begin == rows {
        true => Ok(()),
        false => Err(broken("pco: too few rows")),
    }
}

/// Reads the rest of a chunk, which has as many rows as `values`.
fn read_whole(chunk: &mut PcoChunk, values: &mut [i64]) -> Result<()> {
    let progress = chunk.read(values).map_err(|_| broken("pco"))?;
    match progress.finished {
        true => Ok(()),
        false => Err(broken("pco: too few rows")),
    }
}

/// Decodes a column of pco and calls `each` with batches of its rows. A batch stays in the
/// processor's cache, and no memory is needed for the whole column.
pub(crate) fn decode_batches(
    data: &[u8],
    rows: usize,
    mut each: impl FnMut(&[i64]) -> Result<()>,
) -> Result<()> {
    let mut batch = reused_buffer(BATCH_ROWS);
    batch.resize(BATCH_ROWS, 0);
    let done = read_pco(data, rows, |chunk, own| {
        let mut left = own.len();
        while left > BATCH_ROWS {
            chunk.read(&mut batch).map_err(|_| broken("pco"))?;
            each(&batch)?;
            left -= BATCH_ROWS;
        }
        read_whole(chunk, &mut batch[..left])?;
        each(&batch[..left])
    });
    keep_buffer(batch);
    done
}

/// Encodes strings before compression: their u32 lengths, then their bytes.
pub(crate) fn encode_strings(strings: &Strings) -> Vec<u8> {
    let mut plain = Vec::with_capacity(strings.ends.len() * 4 + strings.data.len());
    let mut begin = 0;
    for &end in &strings.ends {
        plain.extend_from_slice(&((end - begin) as u32).to_le_bytes());
        begin = end;
    }
    plain.extend_from_slice(&strings.data);
    plain
}

/// Compresses with zstd; returns the data and its size before compression.
pub(crate) fn compress(plain: &[u8]) -> Result<(Vec<u8>, u32)> {
    let size = u32::try_from(plain.len());
    let size = size.map_err(|_| Error::damaged("column is larger than 4 GiB"))?;
    let packed = zstd::bulk::compress(plain, ZSTD_LEVEL);
    let packed = packed.map_err(|e| Error::damaged(format!("could not compress: {e}")))?;
    Ok((packed, size))
}

/// Memory for claims up to this size, in bytes, is allocated before decompression. For larger
/// claims it grows with the decompressed data.
const SMALL_BYTES: u32 = 1 << 18;

/// The inverse of [`compress`].
pub(crate) fn decompress(packed: &[u8], plain_bytes: u32) -> Result<Vec<u8>> {
    if plain_bytes <= SMALL_BYTES {
        let plain = decompress_small(packed, plain_bytes as usize);
        let plain = plain.map_err(|_| broken("zstd"))?;
        return match plain.len() == plain_bytes as usize {
            true => Ok(plain),
            false => Err(broken("zstd")),
        };
    }
    let decoder = zstd::stream::read::Decoder::with_buffer(packed);
    let decoder = decoder.map_err(|_| broken("zstd"))?;
    let mut plain = Vec::new();
    let limit = u64::from(plain_bytes) + 1;
    let read = decoder.take(limit).read_to_end(&mut plain);
    match read {
        Ok(n) if n == plain_bytes as usize => Ok(plain),
        _ => Err(broken("zstd")),
    }
}

/// Decompresses with a context that each thread keeps: making one costs more than decompressing a
/// footer.
fn decompress_small(packed: &[u8], plain_bytes: usize) -> std::io::Result<Vec<u8>> {
    thread_local! {
        static CONTEXT: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    }
    CONTEXT.with_borrow_mut(|context| {
        let context = match context {
            Some(context) => context,
            None => context.insert(zstd::bulk::Decompressor::new()?),
        };
        context.decompress(packed, plain_bytes)
    })
}

/// The inverse of [`encode_strings`]. `plain_bytes` is 0 for strings in a pack.
pub(crate) fn decode_strings(data: &[u8], plain_bytes: u32, rows: usize) -> Result<Strings> {
    let plain = match plain_bytes {
        0 => data.to_vec(),
        _ => decompress(data, plain_bytes)?,
    };
    let short = || broken("strings");
    let (lengths, data) = rows
        .checked_mul(4)
        .and_then(|at| plain.split_at_checked(at))
        .ok_or_else(short)?;
    let mut end = 0usize;
    let mut ends = Vec::with_capacity(rows);
    for length in lengths.chunks_exact(4) {
        let length = length.try_into().map_or(0, u32::from_le_bytes);
        end = end.checked_add(length as usize).ok_or_else(short)?;
        ends.push(end);
    }
    match end == data.len() {
        true => Ok(Strings {
            ends,
            data: data.to_vec(),
        }),
        false => Err(short()),
    }
}

/// Encodes starts: 0 is null, 1 is the start of the session's last run that has one. Other starts
/// are 2 + zigzag(base − start). `None` if a number is too large for that.
pub(crate) fn starts(values: &[i64], sessions: &[i64], base: &[i64]) -> Option<Vec<i64>> {
    let mut last = Last::default();
    let coded = values.iter().enumerate().map(|(row, &value)| {
        let known = last.of(sessions[row]);
        if value == 0 {
            return Some(0);
        }
        last.set(value);
        if known == Some(value) {
            return Some(1);
        }
        let difference = base[row].checked_sub(value)?;
        let zigzag = difference.checked_mul(2)? ^ (difference >> 63);
        zigzag.checked_add(2)
    });
    coded.collect()
}

/// The inverse of [`starts`].
pub(crate) fn from_starts(coded: &[i64], sessions: &[i64], base: &[i64]) -> Vec<i64> {
    let mut last = Last::default();
    let values = coded.iter().enumerate().map(|(row, &code)| {
        let known = last.of(sessions[row]);
        let value = match code {
            0 => return 0,
            1 => known.unwrap_or(0),
            _ => {
                let zigzag = code.wrapping_sub(2);
                base[row].wrapping_sub((zigzag >> 1) ^ -(zigzag & 1))
            }
        };
        last.set(value);
        value
    });
    values.collect()
}

/// The last start, or the end of the last run, of the session whose rows are read.
#[derive(Default)]
struct Last {
    session: Option<i64>,
    value: Option<i64>,
}

impl Last {
    fn of(&mut self, session: i64) -> Option<i64> {
        if self.session != Some(session) {
            self.session = Some(session);
            self.value = None;
        }
        self.value
    }

    fn set(&mut self, value: i64) {
        self.value = Some(value);
    }
}

/// Encodes first ticks as the number of ticks since the end of the session's run before. The first
/// run of a session counts from `origin`.
pub(crate) fn gaps(first: &[i64], sessions: &[i64], lengths: &[i64], origin: i64) -> Vec<i64> {
    let mut last = Last::default();
    let coded = first.iter().enumerate().map(|(row, &tick)| {
        let before = last.of(sessions[row]).unwrap_or(origin);
        last.set(tick.wrapping_add(lengths[row]));
        tick.wrapping_sub(before)
    });
    coded.collect()
}

/// The inverse of [`gaps`], in place.
pub(crate) fn from_gaps(coded: &mut [i64], sessions: &[i64], lengths: &[i64], origin: i64) {
    let (mut session, mut end) = (None, origin);
    for ((value, own), length) in coded.iter_mut().zip(sessions).zip(lengths) {
        if session != Some(*own) {
            (session, end) = (Some(*own), origin);
        }
        *value = end.wrapping_add(*value);
        end = value.wrapping_add(*length);
    }
}

/// Consecutive runs of a session that have equal lengths, and equal distances between their first
/// ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EqualRun {
    /// First row.
    pub row: usize,
    first_tick: i64,
    step: i64,
    ticks: i64,
}

impl EqualRun {
    /// First tick and number of ticks of one of its rows.
    #[inline]
    pub fn run(&self, row: usize) -> (i64, i64) {
        let steps = row.wrapping_sub(self.row) as i64;
        let first_tick = self.first_tick.wrapping_add(self.step.wrapping_mul(steps));
        (first_tick, self.ticks)
    }
}

/// Same as [`from_gaps`], for columns that are stored as spans.
pub(crate) fn stretches(
    gaps: &[Span],
    sessions: &[Span],
    lengths: &[Span],
    origin: i64,
) -> Vec<EqualRun> {
    let mut stretches = Vec::new();
    let (mut row, mut session, mut end) = (0, None, origin);
    let mut columns = [gaps, sessions, lengths].map(|spans| Cursor { spans, done: 0 });
    while let [Some(gap), Some(own), Some(length)] = columns.each_mut().map(Cursor::span) {
        if session != Some(own.value) {
            (session, end) = (Some(own.value), origin);
        }
        let rows = gap.rows.min(own.rows).min(length.rows);
        let step = gap.value.wrapping_add(length.value);
        stretches.push(EqualRun {
            row,
            first_tick: end.wrapping_add(gap.value),
            step,
            ticks: length.value,
        });
        end = end.wrapping_add(step.wrapping_mul(rows as i64));
        row += rows;
        columns.iter_mut().for_each(|column| column.done += rows);
    }
    stretches
}

/// A position in a column: its spans from the current one on. `done` rows of the current span are
/// used.
struct Cursor<'s> {
    spans: &'s [Span],
    done: usize,
}

impl Cursor<'_> {
    /// The rest of the current span; `None` at the end of the column.
    fn span(&mut self) -> Option<Span> {
        while let [first, rest @ ..] = self.spans
            && first.rows <= self.done
        {
            (self.spans, self.done) = (rest, self.done - first.rows);
        }
        let first = self.spans.first()?;
        Some(Span {
            rows: first.rows - self.done,
            value: first.value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn starts_of(values: &[(i64, i64, i64)]) -> [Vec<i64>; 3] {
        let mut rows = values.to_vec();
        rows.sort_by_key(|r| r.0);
        [0, 1, 2].map(|i| rows.iter().map(|r| [r.0, r.1, r.2][i]).collect())
    }

    proptest! {
        #[test]
        fn numbers_survive(values in prop::collection::vec(any::<i64>(), 0..700)) {
            let mut coded = Vec::new();
            encode_ints(&mut coded, &values).unwrap();
            prop_assert_eq!(decode_ints(&coded, values.len()).unwrap(), values.clone());
            prop_assert!(values.is_empty() || decode_ints(&coded, values.len() - 1).is_err() || coded[0] == CONSTANT);
        }

        #[test]
        fn spans_survive(spans in prop::collection::vec((any::<i64>(), 16..90usize), 2..40)) {
            let spans = spans.iter().map(|(value, rows)| vec![*value; *rows]);
            let values = spans.collect::<Vec<_>>().concat();
            let mut coded = Vec::new();
            encode_ints(&mut coded, &values).unwrap();
            prop_assert!(coded[0] == SPANS || coded[0] == CONSTANT);
            prop_assert_eq!(decode_ints(&coded, values.len()).unwrap(), values.clone());
            for rows in [1, values.len() - 1, values.len() + 1] {
                prop_assert!(decode_ints(&coded, rows).is_err() || coded[0] == CONSTANT);
            }
        }

        #[test]
        fn steps_survive(
            first in any::<i64>(),
            spans in prop::collection::vec((any::<i64>(), 34..90usize), 1..40),
        ) {
            let steps = spans.iter().flat_map(|(step, rows)| std::iter::repeat_n(*step, *rows));
            let mut values = vec![first];
            values.extend(steps.scan(first, |last, step| {
                *last = last.wrapping_add(step);
                Some(*last)
            }));
            let mut coded = Vec::new();
            encode_ints(&mut coded, &values).unwrap();
            prop_assert!(coded[0] == STEPS || coded[0] == CONSTANT);
            prop_assert_eq!(decode_ints(&coded, values.len()).unwrap(), values.clone());
            for rows in [0, 1, values.len() - 1, values.len() + 1] {
                prop_assert!(decode_ints(&coded, rows).is_err() || coded[0] == CONSTANT);
            }
        }

        #[test]
        fn starts_and_gaps_survive(
            rows in prop::collection::vec((1..4i64, 0..6i64, 0..9i64), 0..50),
        ) {
            let [sessions, values, base] = starts_of(&rows);
            let coded = starts(&values, &sessions, &base).unwrap();
            prop_assert_eq!(from_starts(&coded, &sessions, &base), values.clone());
            let coded = gaps(&values, &sessions, &base, 77);
            let mut decoded = coded;
            from_gaps(&mut decoded, &sessions, &base, 77);
            prop_assert_eq!(decoded, values);
        }

        #[test]
        fn stretches_are_gaps(
            spans in prop::array::uniform3(prop::collection::vec((0..30usize, 0..4i64), 1..9)),
        ) {
            let spans = spans.map(|spans| {
                let of = |(rows, value)| Span { rows, value };
                spans.into_iter().map(of).collect::<Vec<_>>()
            });
            let flat = |spans: &Vec<Span>| {
                let rows = spans.iter().map(|s| vec![s.value; s.rows]);
                rows.collect::<Vec<_>>().concat()
            };
            let [mut gaps, sessions, lengths] = spans.each_ref().map(flat);
            let rows = gaps.len().min(sessions.len()).min(lengths.len());
            gaps.truncate(rows);
            from_gaps(&mut gaps, &sessions, &lengths, 77);
            let found = stretches(&spans[0], &spans[1], &spans[2], 77);
            for row in 0..rows {
                let at = found.partition_point(|s| s.row <= row) - 1;
                prop_assert_eq!(found[at].run(row), (gaps[row], lengths[row]));
            }
        }

        #[test]
        fn damaged_columns_do_not_panic(data in prop::collection::vec(any::<u8>(), 0..100), rows in 0..300usize) {
            let _ = decode_ints(&data, rows);
            let _ = decode_pco(&data, rows);
            let _ = decode_values(SPANS, &data, rows);
            let _ = decode_steps(&data, rows, 0..rows);
            let _ = decode_strings(&data, 1_000, rows);
        }
    }

    #[test]
    fn flipped_bits_of_a_column_do_not_panic() {
        let wild: Vec<i64> = (0..600).map(|i| i * i % 91).collect();
        let calm: Vec<i64> = (0..600).map(|i| i / 40 % 7).collect();
        let paged: Vec<i64> = (0..4_200).map(|i| i * i % 5).collect();
        for values in [wild, calm, paged] {
            let mut coded = Vec::new();
            encode_paged(&mut coded, &values).unwrap();
            for bit in 0..coded.len() * 8 {
                let mut copy = coded.clone();
                copy[bit / 8] ^= 1 << (bit % 8);
                let _ = decode_ints(&copy, values.len());
                let _ = decode_rows(copy[0], &copy[1..], values.len(), 30..50);
            }
        }
    }

    #[test]
    fn a_range_of_rows_equals_the_same_rows_of_all() {
        let wild: Vec<i64> = (0..5_000).map(|i| i * i % 977).collect();
        let spans: Vec<i64> = (0..5_000).map(|i| i / 60 % 4).collect();
        let steps: Vec<i64> = (0..5_000).map(|i| i % 60).collect();
        let constant = vec![7; 5_000];
        let few = wild[..900].to_vec();
        let codings = [PAGES, SPANS, STEPS, CONSTANT, PCO];
        for (values, coding) in [wild, spans, steps, constant, few].iter().zip(codings) {
            let mut coded = Vec::new();
            encode_paged(&mut coded, values).unwrap();
            assert_eq!(coded[0], coding);
            let rows = values.len();
            assert_eq!(decode_ints(&coded, rows).unwrap(), *values);
            let ends = [0, 1, 59, 60, 61, 899, 900, 1_024, 2_047, 4_999, 5_000];
            for begin in ends.into_iter().filter(|begin| *begin <= rows) {
                for end in ends.into_iter().filter(|end| (begin..=rows).contains(end)) {
                    let some = decode_rows(coding, &coded[1..], rows, begin..end).unwrap();
                    assert_eq!(some, values[begin..end], "{coding}: {begin}..{end}");
                }
            }
        }
    }

    #[test]
    fn batches_are_the_column_or_fail_like_it() {
        let batches = |data: &[u8], rows: usize| -> Result<Vec<i64>> {
            let mut all = Vec::new();
            decode_batches(data, rows, |batch| {
                assert!((1..=BATCH_ROWS).contains(&batch.len()));
                all.extend_from_slice(batch);
                Ok(())
            })?;
            Ok(all)
        };
        for rows in [1, 2, 4_095, 4_096, 4_097, 8_192, 9_000] {
            let values: Vec<i64> = (0..rows).map(|i| i * i % 977).collect();
            let mut coded = Vec::new();
            encode_flat(&mut coded, &values, 1).unwrap();
            if rows > 1 {
                assert_eq!(coded[0], PCO);
                assert_eq!(batches(&coded[1..], values.len()).unwrap(), values);
            }
        }
        let values: Vec<i64> = (0..4_100).map(|i| i * i % 5).collect();
        let mut coded = Vec::new();
        encode_flat(&mut coded, &values, 1).unwrap();
        for rows in [4_099, 4_101] {
            assert!(batches(&coded[1..], rows).is_err());
        }
        for bit in 0..coded.len() * 8 {
            let mut copy = coded[1..].to_vec();
            if let Some(byte) = copy.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
            let expected = decode_pco(&copy, values.len());
            let found = batches(&copy, values.len());
            assert_eq!(found.is_ok(), expected.is_ok(), "bit {bit}");
            assert_eq!(found.ok(), expected.ok(), "bit {bit}");
        }
    }

    #[test]
    fn spans_are_stored_as_documented() {
        let mut values = [vec![7; 20], vec![-1; 20]].concat();
        let mut coded = Vec::new();
        encode_ints(&mut coded, &values).unwrap();
        let number = |n: i64| n.to_le_bytes();
        let head = [&[SPANS, 2, 0, 0, 0, 9, 0, 0, 0, CONSTANT][..], &number(20)].concat();
        assert_eq!(coded[..head.len()], head);
        assert_eq!(coded[head.len()], PCO);
        // The spans of 20 and 11 rows have fewer than 16 rows on average.
        values.truncate(31);
        coded.clear();
        encode_ints(&mut coded, &values).unwrap();
        assert_eq!(coded[0], PCO);
    }

    #[test]
    fn a_start_far_from_its_base_is_left_to_pco() {
        assert_eq!(starts(&[i64::MIN], &[1], &[5]), None);
        assert_eq!(
            starts(&[90, 90, 0, 90, 95], &[1; 5], &[100; 5]),
            Some(vec![22, 1, 0, 1, 12])
        );
    }

    #[test]
    fn a_zstd_frame_of_the_wrong_size_is_refused() {
        let (packed, size) = compress(&[7; 1_000]).unwrap();
        assert_eq!(decompress(&packed, size).unwrap(), [7; 1_000]);
        assert!(decompress(&packed, size - 1).is_err());
        assert!(decompress(&packed, size + 1).is_err());
    }
}
