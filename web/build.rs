//! The page is part of the program: the program is built again when the page
//! changes.

use std::path::Path;

fn main() {
    let page = Path::new("../page/dist");
    // Cargo would treat a missing path as changed at each build.
    let watched = if page.exists() {
        page
    } else {
        Path::new("../page")
    };
    println!("cargo:rerun-if-changed={}", watched.display());
}
