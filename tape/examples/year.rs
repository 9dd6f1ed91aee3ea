//! Makes a year that ends with an imported day. `year DIR [DAYS]` replaces the only history file of
//! a directory by copies, one for each day.

use std::path::Path;
use tacho_tape::files::storage::OsStorage;
use tacho_tape::testing::repeat::repeat_day;

fn main() -> tacho_tape::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = args.first() else {
        eprintln!("usage: year DIR [DAYS]");
        std::process::exit(2);
    };
    let days = args.get(1).and_then(|days| days.parse().ok());
    repeat_day(
        &OsStorage::new(Path::new(directory)),
        1,
        days.unwrap_or(365),
    )
}
