//! Values that stay on the server. A redacted value is null, or, with a salt, a
//! hash. Hashes keep equal values equal, also between servers with the same
//! salt.

use clap::ValueEnum;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use tacho_source::exchange::Field;

/// A kind of values that can be redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// Texts of queries
    Texts,
    /// Addresses of clients
    Addresses,
    /// Names of applications, replicas among them
    Applications,
}

/// The kinds of values to redact, and how.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    /// Kinds of values.
    pub rules: Vec<Rule>,
    /// Precedes each value that is hashed; `None`: values become null.
    pub salt: Option<Vec<u8>>,
}

/// Columns with redacted values: table, column, rule.
const COLUMNS: [(&str, &str, Rule); 5] = [
    ("session", "client_addr", Rule::Addresses),
    ("session", "application", Rule::Applications),
    ("server_replica", "object", Rule::Applications),
    ("marker", "client_addr", Rule::Addresses),
    ("marker", "application", Rule::Applications),
];
/// Number of bytes of a hash that are kept.
const BYTES: usize = 16;

impl Redaction {
    /// True if values of a column are redacted.
    pub fn hides(&self, table: &str, column: &str) -> bool {
        let found = COLUMNS.iter().find(|c| (c.0, c.1) == (table, column));
        found.is_some_and(|c| self.has(c.2))
    }

    /// True if values of a field are redacted.
    pub fn hides_field(&self, field: &Field) -> bool {
        self.hides(&field.table, &field.column.name)
    }

    /// True if a kind of values is redacted.
    pub fn has(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// True if query texts leave the server, as they are or as hashes.
    pub fn has_texts(&self) -> bool {
        !self.has(Rule::Texts) || self.salt.is_some()
    }

    /// Name of this redaction: the rules, and a hash of the salt.
    pub fn name(&self) -> String {
        let rules = self.rules.iter().filter_map(ValueEnum::to_possible_value);
        let mut rules: Vec<String> = rules.map(|rule| rule.get_name().to_string()).collect();
        rules.sort();
        rules.dedup();
        let name = rules.join("_");
        match &self.salt {
            _ if name.is_empty() => "none".to_string(),
            None => name,
            Some(salt) => {
                let mut hash = Sha256::new();
                hash.update(b"the salt of tacho ship: ");
                hash.update(salt);
                format!("{name}-{}", hex(&hash.finalize()[..BYTES]))
            }
        }
    }

    /// The replacement of a redacted value: a hash, or `None` (null) without a salt.
    pub fn replacement(&self, text: &str) -> Option<String> {
        let salt = self.salt.as_ref()?;
        let mut hash = Sha256::new();
        hash.update(salt);
        hash.update(text);
        Some(hex(&hash.finalize()[..BYTES]))
    }

    /// A value as it is shipped; `hidden` if its column is redacted.
    pub fn redacted_or_plain<'t>(&self, hidden: bool, text: &'t str) -> Option<Cow<'t, str>> {
        match hidden {
            true => self.replacement(text).map(Cow::Owned),
            false => Some(Cow::Borrowed(text)),
        }
    }

    /// Identifies a text across servers: a hash of the text in lower case, with
    /// all white space as single blanks. If texts are redacted, the salt is part of
    /// the hash; without a salt there is no fingerprint.
    pub fn fingerprint(&self, text: &str) -> Option<i64> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut hash = Sha256::new();
        if self.has(Rule::Texts) {
            hash.update(self.salt.as_ref()?);
        }
        hash.update(words.join(" ").to_lowercase());
        let hash = hash.finalize();
        let bytes = hash.first_chunk::<8>().copied().unwrap_or_default();
        Some(i64::from_be_bytes(bytes))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_null_without_a_salt_and_a_hash_of_both_with_one() {
        let mut redaction = Redaction::default();
        assert_eq!(redaction.replacement("10.0.0.1"), None);
        redaction.salt = Some(b"pepper".to_vec());
        // printf pepper10.0.0.1 | sha256sum
        let hash = redaction.replacement("10.0.0.1").unwrap();
        assert_eq!(hash.len(), 32);
        redaction.salt = Some(b"salt".to_vec());
        assert_ne!(redaction.replacement("10.0.0.1"), Some(hash));
    }

    #[test]
    fn a_fingerprint_ignores_case_and_white_space_alone() {
        let redaction = Redaction::default();
        let of = |text| redaction.fingerprint(text);
        assert_eq!(of("SELECT $1\n  FROM t "), of("select $1 from t"));
        assert_ne!(of("select $1 from t"), of("select $1 fromt"));
        // printf 'select 1' | sha256sum
        assert_eq!(of("SELECT 1"), Some(0x822a_e07d_4783_158b_u64 as i64));
    }

    #[test]
    fn a_fingerprint_of_a_redacted_text_needs_the_salt() {
        let mut redaction = Redaction {
            rules: vec![Rule::Texts],
            salt: None,
        };
        assert_eq!(redaction.fingerprint("select 1"), None);
        redaction.salt = Some(b"x".to_vec());
        let own = redaction.fingerprint("select 1");
        assert!(own.is_some() && own != Redaction::default().fingerprint("select 1"));
    }
}
