//! The page is in the program: another page makes another program.

use std::path::Path;

fn main() {
    let page = Path::new("../page/dist");
    // What is not there would count as changed each time.
    let watched = if page.exists() {
        page
    } else {
        Path::new("../page")
    };
    println!("cargo:rerun-if-changed={}", watched.display());
}
