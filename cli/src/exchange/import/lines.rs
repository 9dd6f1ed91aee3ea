//! Lines of comma separated values. Lines without a quote are split here, which
//! is most of an import's speed. csv-core reads the others.

use super::{ImportError, ImportResult};
use csv_core::ReadRecordResult;
use memchr::{memchr, memchr_iter, memchr2};
use std::io::{ErrorKind, Read};

const BUFFER_BYTES: usize = 1 << 18;
/// Maximum length of a line in bytes. A longer line is refused: it cannot be history, and would be
/// in memory as a whole.
const MOST_LINE_BYTES: usize = 1 << 26;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The fields of a line.
#[derive(Default)]
pub struct Record {
    text: Vec<u8>,
    /// Ends of the fields in `text`.
    ends: Vec<usize>,
    /// Number of bytes between two fields in `text`.
    gap: usize,
    /// Number of the record's first line in the input, from 1.
    pub line: u64,
}

impl Record {
    /// A field by its index; `None` if the line has fewer fields.
    #[inline]
    pub fn get(&self, field: usize) -> Option<&[u8]> {
        let end = *self.ends.get(field)?;
        let begin = match field {
            0 => 0,
            _ => self.ends[field - 1] + self.gap,
        };
        self.text.get(begin..end)
    }

    /// The fields in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).filter_map(|field| self.get(field))
    }

    fn split(&mut self, line: &[u8]) {
        self.gap = 1;
        self.text.clear();
        self.text.extend_from_slice(line);
        self.ends.clear();
        self.ends.extend(memchr_iter(b',', line));
        self.ends.push(line.len());
    }
}

/// Reads line by line. All lines must have as many fields as the first.
pub struct Lines {
    read: Box<dyn Read>,
    buffer: Vec<u8>,
    /// Unread bytes: `at..end` of the buffer.
    at: usize,
    end: usize,
    /// True if the first line was read.
    begun: bool,
    /// True if the input has ended.
    ended: bool,
    /// Number of the current line.
    line: u64,
    fields: Option<usize>,
    quoted: csv_core::Reader,
}

impl Lines {
    /// Creates a reader; reads nothing yet.
    pub fn new(read: Box<dyn Read>) -> Lines {
        let mut quoted = csv_core::Reader::new();
        // Moves csv-core past the begin of the input, where it would look for a
        // byte order mark.
        let _ = quoted.read_record(b"\n", &mut [0; 8], &mut [0; 8]);
        Lines {
            read,
            buffer: vec![0; BUFFER_BYTES],
            at: 0,
            end: 0,
            begun: false,
            ended: false,
            line: 1,
            fields: None,
            quoted,
        }
    }

    /// Reads the next line that is not empty; false if there is none.
    pub fn next(&mut self, record: &mut Record) -> ImportResult<bool> {
        loop {
            let end = self.line_end()?;
            let begun = std::mem::replace(&mut self.begun, true);
            if !begun && self.buffer[self.at..end].starts_with(BYTE_ORDER_MARK) {
                self.at += BYTE_ORDER_MARK.len();
            }
            if self.at == self.end {
                return Ok(false);
            }
            let line = &self.buffer[self.at..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            record.line = self.line;
            if memchr2(b'"', b'\r', line).is_some() {
                if !self.read_quoted(record)? {
                    return Ok(false);
                }
            } else {
                let is_empty = line.is_empty();
                record.split(line);
                self.at = self.end.min(end + 1);
                self.line += 1;
                if is_empty {
                    continue;
                }
            }
            self.check_fields(record)?;
            return Ok(true);
        }
    }

    fn check_fields(&mut self, record: &Record) -> ImportResult<()> {
        let found = record.ends.len();
        match *self.fields.get_or_insert(found) {
            expected if expected == found => Ok(()),
            expected => {
                let message = format!("expected {expected} fields, found {found}");
                Err(ImportError::new(message).at(record.line))
            }
        }
    }

    /// End of the current line in the buffer; enlarges the buffer if necessary.
    fn line_end(&mut self) -> ImportResult<usize> {
        let mut looked = 0;
        loop {
            let from = self.at + looked;
            if let Some(found) = memchr(b'\n', &self.buffer[from..self.end]) {
                return Ok(from + found);
            }
            looked = self.end - self.at;
            if !self.fill()? {
                return Ok(self.end);
            }
        }
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> ImportResult<bool> {
        self.buffer.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        if self.end == self.buffer.len() {
            Lines::check_length(self.end, self.line)?;
            self.buffer.resize(self.end * 2, 0);
        }
        while !self.ended {
            match self.read.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(bytes) => {
                    self.end += bytes;
                    return Ok(true);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => (),
                Err(e) => {
                    let message = format!("could not read input: {e}");
                    return Err(ImportError::new(message).at(self.line));
                }
            }
        }
        Ok(false)
    }

    fn check_length(bytes: usize, line: u64) -> ImportResult<()> {
        match bytes < MOST_LINE_BYTES {
            true => Ok(()),
            false => Err(ImportError::new("line is too long")
                .at(line)
                .hint(format!("At most {MOST_LINE_BYTES} bytes are allowed."))),
        }
    }

    /// Reads a record, possibly of several lines; false if there is none.
    fn read_quoted(&mut self, record: &mut Record) -> ImportResult<bool> {
        record.gap = 0;
        record.text.resize(record.text.len().max(256), 0);
        record.ends.resize(record.ends.len().max(32), 0);
        let (mut bytes, mut fields) = (0, 0);
        loop {
            // The end of the input ends a line, unless a quote is open.
            let is_last = self.ended && self.at == self.end;
            let input = match is_last {
                true => b"\n",
                false => &self.buffer[self.at..self.end],
            };
            let (text, ends) = (&mut record.text[bytes..], &mut record.ends[fields..]);
            let (result, read, written, ended) = self.quoted.read_record(input, text, ends);
            if !is_last {
                self.line += memchr_iter(b'\n', &input[..read]).count() as u64;
                self.at += read;
            }
            bytes += written;
            fields += ended;
            match result {
                ReadRecordResult::InputEmpty if is_last && written == 0 => return Ok(false),
                ReadRecordResult::InputEmpty if is_last => {
                    let message = "quoted field is not closed";
                    return Err(ImportError::new(message).at(record.line));
                }
                ReadRecordResult::InputEmpty => drop(self.fill()?),
                ReadRecordResult::OutputFull => {
                    Lines::check_length(bytes, record.line)?;
                    record.text.resize(record.text.len() * 2, 0);
                }
                ReadRecordResult::OutputEndsFull => {
                    Lines::check_length(fields * size_of::<usize>(), record.line)?;
                    record.ends.resize(record.ends.len() * 2, 0);
                }
                ReadRecordResult::Record | ReadRecordResult::End => {
                    record.text.truncate(bytes);
                    record.ends.truncate(fields);
                    return Ok(matches!(result, ReadRecordResult::Record));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_tape::testing::Random;

    /// Gives a few bytes at a time.
    struct Drops(Vec<u8>, Random);

    impl Read for Drops {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let most = 1 + self.1.below(7) as usize;
            let bytes = most.min(out.len()).min(self.0.len());
            out[..bytes].copy_from_slice(&self.0[..bytes]);
            self.0.drain(..bytes);
            Ok(bytes)
        }
    }

    type Rows = Vec<Vec<Vec<u8>>>;

    fn read(text: &[u8], seed: u64) -> (Rows, Vec<u64>, Option<String>) {
        let mut lines = Lines::new(Box::new(Drops(text.to_vec(), Random(seed))));
        let (mut rows, mut numbers) = (Vec::new(), Vec::new());
        let mut record = Record::default();
        loop {
            match lines.next(&mut record) {
                Ok(true) => {
                    rows.push(record.iter().map(<[u8]>::to_vec).collect());
                    numbers.push(record.line);
                }
                Ok(false) => return (rows, numbers, None),
                Err(error) => return (rows, numbers, Some(error.to_string())),
            }
        }
    }

    /// Rows as the crate csv reads them, and whether it fails because of
    /// unequal lengths.
    fn expected(text: &[u8]) -> (Rows, bool) {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(text);
        let mut rows = Vec::new();
        for record in reader.byte_records() {
            match record {
                Ok(record) => rows.push(record.iter().map(<[u8]>::to_vec).collect()),
                Err(_) => return (rows, true),
            }
        }
        (rows, false)
    }

    #[test]
    fn random_text_reads_as_the_crate_csv_reads_it() {
        let pieces: [&[u8]; 12] = [
            b"a",
            b"b,c",
            b",",
            b"\n",
            b"\r\n",
            b"\"",
            b"\"x,y\"",
            b"\"a\"\"b\"",
            b" ",
            b"\r",
            b"\"\n\"",
            b"\xEF\xBB\xBF",
        ];
        let (mut whole, mut unclosed) = (0, 0);
        for seed in 1..4_000 {
            let mut random = Random(seed);
            let mut text = Vec::new();
            for _ in 0..random.below(14) {
                text.extend_from_slice(pieces[random.below(12) as usize]);
            }
            let (rows, _, error) = read(&text, seed);
            let shown = String::from_utf8_lossy(&text);
            let (mut known, mut fails) = expected(&text);
            // A line end after the text would belong to an open quote.
            if known != expected(&[&text[..], b"\n"].concat()).0 {
                (_, fails) = (known.pop(), true);
                unclosed += 1;
            }
            assert_eq!((rows, error.is_some()), (known, fails), "{shown:?}");
            whole += u64::from(error.is_none());
        }
        assert!(whole > 1_000 && unclosed > 100, "{whole} {unclosed}");
    }

    #[test]
    fn a_quote_that_is_not_closed_is_named() {
        for last in ["\"b", "\"b\n1,2\n", "\"", "1,\"b\"\"\n\n"] {
            let (rows, _, error) = read(format!("a\n\n{last}").as_bytes(), 1);
            assert_eq!(rows.len(), 1, "{last}");
            let expected = "line 3: quoted field is not closed";
            assert_eq!(error.as_deref(), Some(expected), "{last}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_memory() {
        for (begin, rest) in [
            ("time\n", b'x'),
            ("time\n\"", b'x'),
            ("time\n1\n2,\"", b'x'),
            ("time\n\"\",", b','),
        ] {
            let endless = std::io::Cursor::new(begin).chain(std::io::repeat(rest));
            let mut lines = Lines::new(Box::new(endless));
            let mut record = Record::default();
            let error = loop {
                match lines.next(&mut record) {
                    Ok(more) => assert!(more),
                    Err(error) => break error,
                }
            };
            let line = begin.matches('\n').count() + 1;
            assert_eq!(error.to_string(), format!("line {line}: line is too long"));
            assert!(lines.buffer.len() <= 2 * MOST_LINE_BYTES);
        }
    }

    #[test]
    fn lines_have_their_numbers() {
        let text = b"a,b\n\n\"1\n2\",3\r\n4,5\n6\n";
        let (rows, numbers, error) = read(text, 1);
        assert_eq!(rows.len(), 3);
        assert_eq!(numbers, [1, 3, 5]);
        let expected = "line 6: expected 2 fields, found 1";
        assert_eq!(error.as_deref(), Some(expected));
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_read() {
        let long = "x".repeat(3 * BUFFER_BYTES);
        let text = format!("{long},1\n\"{long}\",2\n");
        let mut lines = Lines::new(Box::new(std::io::Cursor::new(text.into_bytes())));
        let mut record = Record::default();
        for number in [b"1", b"2"] {
            assert!(lines.next(&mut record).unwrap());
            assert_eq!(record.get(0).unwrap(), long.as_bytes());
            assert_eq!(record.get(1).unwrap(), number);
            assert_eq!(record.get(2), None);
        }
        assert!(!lines.next(&mut record).unwrap());
    }
}
