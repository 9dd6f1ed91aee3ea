//! Columns compressed with pco in pages. Each page can be decoded alone: a question about an hour
//! decodes only that hour of a day's totals.

use crate::error::{Error, Result};
use crate::format::bytes::u32_at;
use crate::format::coding::{broken, not_packed, overlap, reused_buffer};
use pco::wrapped::{FileCompressor, FileDecompressor};
use std::ops::Range;

/// Number of rows in a page, about one hour of totals.
const PAGE_ROWS: usize = 1 << 10;
/// Numbers of rows for which a column is written in pages. With fewer rows, the overhead of a page
/// would be too large. More rows would not fit into one chunk of pco, which all pages share.
pub(crate) const ROWS: Range<usize> = 4 * PAGE_ROWS..1 << 20;

/// Appends the data of a column.
pub(crate) fn encode(out: &mut Vec<u8>, values: &[i64], level: usize) -> Result<()> {
    let rows = values.chunks(PAGE_ROWS).map(<[i64]>::len).collect();
    let config = pco::ChunkConfig::default().with_compression_level(level);
    let config = config.with_paging_spec(pco::PagingSpec::Exact(rows));
    let file = FileCompressor::default();
    let chunk = file.chunk_compressor(values, &config);
    let mut chunk = chunk.map_err(not_packed)?;
    let head = file.write_header(Vec::new()).map_err(not_packed)?;
    let head = chunk.write_meta(head).map_err(not_packed)?;
    let pages = 0..chunk.n_per_page().len();
    let pages = pages.map(|page| chunk.write_page(page, Vec::new()).map_err(not_packed));
    let pages: Vec<Vec<u8>> = pages.collect::<Result<_>>()?;
    let lengths = [PAGE_ROWS, head.len()].into_iter();
    for length in lengths.chain(pages.iter().map(Vec::len)) {
        out.extend_from_slice(&(length as u32).to_le_bytes());
    }
    out.extend_from_slice(&head);
    pages.iter().for_each(|page| out.extend_from_slice(page));
    Ok(())
}

/// Decodes a range of rows: the pages that contain it.
pub(crate) fn decode(data: &[u8], rows: usize, wanted: Range<usize>) -> Result<Vec<i64>> {
    let short = || broken("pages");
    let number = |at| u32_at(data, at).map(|n| n as usize).ok_or_else(short);
    let (of_page, head) = (number(0)?.max(1), number(4)?);
    let pages = rows.div_ceil(of_page);
    let lengths = pages.checked_add(2).and_then(|n| n.checked_mul(4));
    let mut rest = lengths.and_then(|at| data.get(at..)).ok_or_else(short)?;
    // A piece extends to the end of the data, not of its page: pco copies bytes near the end of
    // its input, and would do so in each page.
    let mut next = |length: usize| {
        let piece = rest;
        rest = rest.get(length..).ok_or_else(short)?;
        Ok::<_, Error>(piece)
    };
    let not_pco = |_| broken("pco");
    let (file, head) = FileDecompressor::new(next(head)?).map_err(not_pco)?;
    let (mut chunk, _) = file.chunk_decompressor::<i64, _>(head).map_err(not_pco)?;
    // Every value of the buffer is written, so it need not be cleared.
    let (mut some, mut done) = (reused_buffer(wanted.len()), 0);
    for page in 0..pages {
        let piece = next(number(8 + 4 * page)?)?;
        let (begin, count) = (page * of_page, of_page.min(rows - page * of_page));
        let own = overlap(begin, count, &wanted);
        if own.is_empty() {
            continue;
        }
        if some.len() < done + count {
            some.resize(done + count, 0);
        }
        let mut page = chunk.page_decompressor(piece, count).map_err(not_pco)?;
        let all = &mut some[done..done + count];
        let progress = page.read(all).map_err(not_pco)?;
        if !progress.finished {
            return Err(broken("pco: too few rows"));
        }
        if own.start > 0 {
            all.copy_within(own.clone(), 0);
        }
        done += own.len();
    }
    some.truncate(done);
    Ok(some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_stored_as_documented() {
        let values: Vec<i64> = (0..5_000).map(|i| i * i % 977).collect();
        let mut coded = Vec::new();
        encode(&mut coded, &values, 8).unwrap();
        let number = |at: usize| u32_at(&coded, 4 * at).unwrap() as usize;
        assert_eq!(number(0), 1_024);
        let lengths = (1..=6).map(number).sum::<usize>();
        assert_eq!(coded.len(), 4 * 7 + lengths);
        // A page is decoded only if it is complete.
        let last = coded.len() - number(6);
        let cut = &coded[..last];
        assert!(decode(cut, 5_000, 4_000..5_000).is_err());
    }
}
