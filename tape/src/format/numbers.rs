//! Numbers of variable length (LEB128, signed ones with zigzag), and columns of them. For few rows
//! they are shorter than pco, and zstd finds the similarities between columns in them.

use crate::error::Result;
use crate::format::coding::{CONSTANT, NUMBERS, broken, reused_buffer};

/// Maximum number of rows for [`NUMBERS`].
const NUMBERS_ROWS: usize = 1 << 10;
/// A column may be this many bytes longer as [`NUMBERS`] than with pco, because zstd cannot
/// compress pco's bits.
const NUMBERS_MORE: usize = 24;

pub(crate) fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

pub(crate) fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

/// Appends a number in groups of seven bits, the lowest first. Bit 7 is set if more groups follow.
/// Example: 300 becomes the bytes AC 02.
pub(crate) fn put_number(out: &mut Vec<u8>, mut n: u64) {
    while n > 0x7F {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Reads a number that [`put_number`] wrote.
pub(crate) fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for (at, &byte) in rest.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7F);
        if at == 9 && bits > 1 {
            return None;
        }
        n |= bits << (7 * at);
        if byte < 0x80 {
            *rest = &rest[at + 1..];
            return Some(n);
        }
    }
    None
}

/// Replaces the coding byte and data of a short column if [`NUMBERS`] is shorter.
pub(crate) fn shorten(coded: &mut Vec<u8>, values: &[i64]) {
    if coded[0] == CONSTANT || values.len() > NUMBERS_ROWS {
        return;
    }
    let mut plain = vec![NUMBERS, 0];
    let mut steps = vec![NUMBERS, 1];
    let mut last = 0i64;
    for &value in values {
        put_number(&mut plain, zigzag(value));
        put_number(&mut steps, zigzag(value.wrapping_sub(last)));
        last = value;
    }
    let shorter = if steps.len() < plain.len() {
        steps
    } else {
        plain
    };
    if shorter.len() <= coded.len() + NUMBERS_MORE {
        *coded = shorter;
    }
}

/// The inverse of [`shorten`], without the coding byte.
pub(crate) fn decode(data: &[u8], rows: usize) -> Result<Vec<i64>> {
    let broken = || broken("numbers");
    let (are_steps, mut rest) = match data.split_first() {
        Some((0, rest)) => (false, rest),
        Some((1, rest)) => (true, rest),
        _ => return Err(broken()),
    };
    if rows > rest.len() {
        return Err(broken());
    }
    let mut values = reused_buffer(rows);
    values.clear();
    let mut last = 0i64;
    for _ in 0..rows {
        let number = unzigzag(take_number(&mut rest).ok_or_else(broken)?);
        last = if are_steps {
            last.wrapping_add(number)
        } else {
            number
        };
        values.push(last);
    }
    match rest.is_empty() {
        true => Ok(values),
        false => Err(broken()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::codec::{decode_ints, encode_ints};

    #[test]
    fn numbers_of_every_length_come_back_and_longer_ones_are_refused() {
        let numbers = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, u64::MAX >> bit]);
        for n in numbers {
            let mut out = Vec::new();
            put_number(&mut out, n);
            let mut rest = &out[..];
            assert_eq!((take_number(&mut rest), rest.len()), (Some(n), 0));
            assert_eq!(take_number(&mut &out[..out.len() - 1]), None, "{n}");
            assert_eq!(zigzag(unzigzag(n)), n);
        }
        let above = [&[0xFF; 9][..], &[2]].concat();
        assert_eq!(take_number(&mut &above[..]), None);
        assert_eq!(take_number(&mut &[0x80; 11][..]), None);
    }

    #[test]
    fn a_few_numbers_are_written_as_documented_and_come_back() {
        let coded = |values: &[i64]| {
            let mut coded = Vec::new();
            encode_ints(&mut coded, values).unwrap();
            shorten(&mut coded, values);
            assert_eq!(decode_ints(&coded, values.len()).unwrap(), values);
            coded
        };
        assert_eq!(coded(&[5, -3, 300]), [9, 0, 10, 5, 0xD8, 4]);
        assert_eq!(coded(&[1_000, 1_001, 1_003]), [9, 1, 0xD0, 15, 2, 4]);
        let far = coded(&[i64::MIN, i64::MAX, 0]);
        assert_eq!(far[0], NUMBERS);
        assert_eq!(coded(&[7, 7])[0], CONSTANT);
        for broken in [
            &[9u8][..],
            &[9, 2, 1],
            &[9, 0],
            &[9, 0, 1, 1],
            &[9, 1, 0x80],
        ] {
            assert!(decode_ints(broken, 1).is_err(), "{broken:?}");
        }
    }
}
