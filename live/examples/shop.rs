//! Writes the history of the tests, for `tools/record-live.sh`: `shop
//! DIRECTORY`.

#[allow(unused)]
#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_default();
    let scratch = common::Scratch(directory.into());
    scratch.import();
    // The caller removes the directory.
    std::mem::forget(scratch);
}
