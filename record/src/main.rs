//! The program `tacho-record`.

use std::process::ExitCode;
use tacho_source::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    tacho_record::main()
}
