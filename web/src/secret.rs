//! Secrets, made from the system's random numbers or read from a file.
//! Comparing one takes the same time for every wrong text.

use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use subtle::ConstantTimeEq;
use tacho_source::Failure;

/// Number of random bytes of a generated secret.
const BYTES: usize = 32;
/// Minimum and maximum length of a token in a file, in bytes.
const LENGTH: std::ops::RangeInclusive<usize> = 16..=1024;

/// A text that only those know who may ask.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Makes a secret of 256 bits, in hexadecimal.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> Result<Secret, Failure> {
        let mut bytes = [0; BYTES];
        let mut filled = 0;
        while filled < BYTES {
            let got = getrandom(&mut bytes[filled..], GetRandomFlags::empty());
            filled += got.map_err(|e| Failure::io("get random numbers", &e.into()))?;
        }
        let digits: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
        Ok(Secret(digits.concat()))
    }

    /// Reads the only line of a file that no other user may read.
    ///
    /// # Errors
    /// The file cannot be read, others can read it, or it holds no token.
    pub fn read(path: &Path) -> Result<Secret, Failure> {
        let name = path.display();
        let failed = |e: io::Error| Failure::io(&format!("read token file \"{name}\""), &e);
        let mut file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.mode() & 0o007 != 0 {
            return Err(
                Failure::usage(format!("token file \"{name}\" has world access"))
                    .hint("Run chmod o= FILE."),
            );
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let token = text.trim();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(&b);
        if !LENGTH.contains(&token.len()) || !token.bytes().all(plain) {
            return Err(
                Failure::usage(format!("token file \"{name}\" does not contain a valid token")).hint(
                    "A token has 16 to 1024 characters of A-Z, a-z, 0-9, - . _ ~ + / and =, such as openssl rand -hex 32 prints.",
                ),
            );
        }
        Ok(Secret(token.to_string()))
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// True if the text is the secret.
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}
