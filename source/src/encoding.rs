//! Converts bytes in one of PostgreSQL's encodings to text. Bytes that cannot
//! be decoded become U+FFFD.

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, IBM866, ISO_8859_2, ISO_8859_3, ISO_8859_4,
    ISO_8859_5, ISO_8859_6, ISO_8859_7, ISO_8859_8, ISO_8859_10, ISO_8859_13, ISO_8859_14,
    ISO_8859_15, ISO_8859_16, KOI8_R, KOI8_U, SHIFT_JIS, WINDOWS_874, WINDOWS_1250, WINDOWS_1251,
    WINDOWS_1252, WINDOWS_1253, WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257,
    WINDOWS_1258,
};
use tacho_tape::query;

/// Text of bytes; `id` is PostgreSQL's id of their encoding. The tape decodes
/// UTF-8, SQL_ASCII, LATIN1 and encodings without a table.
pub fn decode(id: i64, bytes: &[u8]) -> String {
    match table(id) {
        Some(encoding) if !bytes.is_ascii() => {
            let (text, _) = encoding.decode_without_bom_handling(bytes);
            query::without_nul(text.into_owned())
        }
        _ => query::decode(id, bytes),
    }
}

fn table(id: i64) -> Option<&'static Encoding> {
    Some(match id {
        1 | 5 => EUC_JP,
        2 => GBK,
        3 | 38 => EUC_KR,
        9 => ISO_8859_2,
        10 => ISO_8859_3,
        11 => ISO_8859_4,
        12 => WINDOWS_1254,
        13 => ISO_8859_10,
        14 => ISO_8859_13,
        15 => ISO_8859_14,
        16 => ISO_8859_15,
        17 => ISO_8859_16,
        18 => WINDOWS_1256,
        19 => WINDOWS_1258,
        20 => IBM866,
        21 => WINDOWS_874,
        22 => KOI8_R,
        23 => WINDOWS_1251,
        24 => WINDOWS_1252,
        25 => ISO_8859_5,
        26 => ISO_8859_6,
        27 => ISO_8859_7,
        28 => ISO_8859_8,
        29 => WINDOWS_1250,
        30 => WINDOWS_1253,
        31 => WINDOWS_1254,
        32 => WINDOWS_1255,
        33 => WINDOWS_1257,
        34 => KOI8_U,
        35 | 41 => SHIFT_JIS,
        36 => BIG5,
        37 => GBK,
        39 => GB18030,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_encodings_are_readable() {
        assert_eq!(decode(1, b"\xc6\xfc\xcb\xdc"), "日本");
        assert_eq!(decode(8, b"caf\xe9"), "café");
        assert_eq!(decode(6, "häß".as_bytes()), "häß");
        assert_eq!(decode(23, b"\xcf\xf0\xe8"), "При");
        assert_eq!(decode(1, b"ab\xc6"), "ab\u{FFFD}");
    }
}
