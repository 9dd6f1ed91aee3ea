//! Buckets as rows of a table, through binary COPY. A column is stored as an
//! array, or as bytes compressed by pco.

use super::super::access::Access;
use super::super::process::{Running, Stop};
use super::data::{Bucket, COLUMNS, Values};
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufReader, Read, Write};
use std::process::{ChildStdin, Stdio};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// OIDs of the types bigint and double precision.
const INT8: i32 = 20;
const FLOAT8: i32 = 701;

/// Storage of a bucket's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// bigint[] or double precision[].
    Array,
    /// pco in bytea.
    Pco,
}

/// SQL that creates the table for such columns.
pub fn create(cell: Storage, columns: &[Values]) -> Vec<String> {
    let definitions = COLUMNS.iter().zip(columns).map(|(name, values)| {
        let ty = match (cell, values) {
            (Storage::Pco, _) => "bytea",
            (Storage::Array, Values::Ints(_)) => "bigint[]",
            (Storage::Array, Values::Floats(_)) => "double precision[]",
        };
        format!("\"{name}\" {ty} not null")
    });
    let definitions: Vec<String> = definitions.collect();
    let mut sql = vec![
        "drop table if exists codec".to_owned(),
        format!(
            "create table codec (database_id bigint not null, start_at bigint not null, \
             end_at bigint not null, {})",
            definitions.join(", ")
        ),
    ];
    if cell == Storage::Pco {
        let external =
            |name: &&str| format!("alter table codec alter \"{name}\" set storage external");
        sql.extend(COLUMNS.iter().map(external));
    }
    sql.push("create index on codec (database_id)".into());
    sql.push("create index on codec (end_at, start_at)".into());
    sql
}

/// A COPY in progress.
pub struct Writer {
    psql: Running,
    input: ChildStdin,
    cell: Storage,
    buffer: Vec<u8>,
}

impl Writer {
    /// Begins the COPY.
    pub fn start(access: &Access, cell: Storage) -> Result<Self> {
        let mut psql = access.psql_loaded();
        psql.args(["-c", "copy codec from stdin (format binary)"]);
        let mut psql = Running::start(psql.stdin(Stdio::piped()))?;
        let input = psql.input().context("psql has no input")?;
        Ok(Self {
            psql,
            input,
            cell,
            buffer: SIGNATURE.to_vec(),
        })
    }

    /// Adds a bucket. Write errors are ignored here: psql's message about them
    /// comes at the end.
    pub fn add(&mut self, bucket: &Bucket) -> Result<()> {
        put_bucket(&mut self.buffer, self.cell, bucket)?;
        let _ = self.input.write_all(&self.buffer);
        self.buffer.clear();
        Ok(())
    }

    /// Ends the COPY and the transaction.
    pub fn finish(mut self, stop: &Stop) -> Result<()> {
        let written = self.input.write_all(&(-1_i16).to_be_bytes());
        drop(self.input);
        self.psql.finish(stop)?;
        written.context("could not write to psql")
    }
}

fn put_bucket(out: &mut Vec<u8>, cell: Storage, bucket: &Bucket) -> Result<()> {
    out.extend(i16::try_from(3 + bucket.columns.len())?.to_be_bytes());
    for number in [bucket.database, bucket.bounds.0, bucket.bounds.1] {
        out.extend(8_i32.to_be_bytes());
        out.extend(number.to_be_bytes());
    }
    for values in &bucket.columns {
        let at = out.len();
        out.extend([0; 4]);
        match cell {
            Storage::Array => put_array(out, values)?,
            Storage::Pco => out.extend(compressed(values)?),
        }
        let length = i32::try_from(out.len() - at - 4)?;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

fn put_array(out: &mut Vec<u8>, values: &Values) -> Result<()> {
    let (length, ty) = match values {
        Values::Ints(v) => (v.len(), INT8),
        Values::Floats(v) => (v.len(), FLOAT8),
    };
    for number in [1, 0, ty, i32::try_from(length)?, 1] {
        out.extend(number.to_be_bytes());
    }
    let mut put = |bytes: [u8; 8]| {
        out.extend(8_i32.to_be_bytes());
        out.extend(bytes);
    };
    match values {
        Values::Ints(v) => v.iter().for_each(|x| put(x.to_be_bytes())),
        Values::Floats(v) => v.iter().for_each(|x| put(x.to_be_bytes())),
    }
    Ok(())
}

fn compressed(values: &Values) -> Result<Vec<u8>> {
    let config = pco::ChunkConfig::default();
    Ok(match values {
        Values::Ints(v) => pco::standalone::simple_compress(v, &config)?,
        Values::Floats(v) => pco::standalone::simple_compress(v, &config)?,
    })
}

/// Reads the whole table back, and passes the columns of each bucket to `each`.
/// These columns have the types of the columns of `like`.
pub fn read(
    access: &Access,
    cell: Storage,
    like: &[Values],
    stop: &Stop,
    mut each: impl FnMut(&[Values]),
) -> Result<()> {
    let mut psql = access.psql_loaded();
    psql.args(["-c", "copy codec to stdout (format binary)"]);
    let mut psql = Running::piped(psql.stdin(Stdio::null()))?;
    let output = psql.output().context("psql has no output")?;
    let mut input = BufReader::with_capacity(1 << 20, output);
    let told = read_all(&mut input, cell, like, stop, &mut each);
    if told.is_err() {
        stop.check()?;
    }
    // If psql failed, its message says more than the error of the reader.
    psql.finish(stop)?;
    told
}

fn read_all(
    input: &mut impl Read,
    cell: Storage,
    like: &[Values],
    stop: &Stop,
    each: &mut impl FnMut(&[Values]),
) -> Result<()> {
    let mut signature = [0; SIGNATURE.len()];
    input.read_exact(&mut signature)?;
    ensure!(signature == SIGNATURE, "psql did not send a binary COPY");
    let mut field = Vec::new();
    loop {
        stop.check()?;
        let mut fields = [0; 2];
        input.read_exact(&mut fields)?;
        match i16::from_be_bytes(fields) {
            -1 => break,
            n if usize::try_from(n)? == like.len() + 3 => {}
            n => bail!("a row of {n} fields"),
        }
        for _ in 0..3 {
            read_field(input, &mut field)?;
        }
        let mut columns = Vec::with_capacity(like.len());
        for kind in like {
            read_field(input, &mut field)?;
            columns.push(values(&field, cell, kind)?);
        }
        each(&columns);
    }
    Ok(std::io::copy(input, &mut std::io::sink()).map(drop)?)
}

fn read_field(input: &mut impl Read, field: &mut Vec<u8>) -> Result<()> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = usize::try_from(i32::from_be_bytes(length)).context("a null field")?;
    field.resize(length, 0);
    Ok(input.read_exact(field)?)
}

fn values(field: &[u8], cell: Storage, kind: &Values) -> Result<Values> {
    Ok(match (cell, kind) {
        (Storage::Pco, Values::Ints(_)) => Values::Ints(pco::standalone::simple_decompress(field)?),
        (Storage::Pco, Values::Floats(_)) => {
            Values::Floats(pco::standalone::simple_decompress(field)?)
        }
        (Storage::Array, Values::Ints(_)) => Values::Ints(elements(field, i64::from_be_bytes)?),
        (Storage::Array, Values::Floats(_)) => Values::Floats(elements(field, f64::from_be_bytes)?),
    })
}

/// Elements of an array with one dimension. Each stands after its length.
fn elements<T>(field: &[u8], from: fn([u8; 8]) -> T) -> Result<Vec<T>> {
    let elements = field.get(20..).context("an array without head")?;
    let one = |element: &[u8]| Ok(from(element[4..].try_into()?));
    elements.chunks_exact(12).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_read_the_values_that_were_put() {
        let columns = vec![
            Values::Ints(vec![1, -2, i64::MAX]),
            Values::Floats(vec![0.1, -1e300, 0.0]),
        ];
        let bucket = Bucket {
            database: 1,
            bounds: (2, 3),
            columns: columns.clone(),
        };
        for cell in [Storage::Array, Storage::Pco] {
            let mut bytes = SIGNATURE.to_vec();
            put_bucket(&mut bytes, cell, &bucket).expect("put");
            put_bucket(&mut bytes, cell, &bucket).expect("put");
            bytes.extend((-1_i16).to_be_bytes());
            let mut seen = Vec::new();
            let mut each = |columns: &[Values]| seen.push(columns.to_vec());
            let mut input = bytes.as_slice();
            read_all(&mut input, cell, &columns, &Stop::default(), &mut each).expect("read");
            assert_eq!(seen, [columns.clone(), columns.clone()]);
            let cut = bytes.len() - 3;
            let mut input = &bytes[..cut];
            assert!(read_all(&mut input, cell, &columns, &Stop::default(), &mut |_| ()).is_err());
        }
    }
}
