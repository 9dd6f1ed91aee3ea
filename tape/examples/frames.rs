//! Writes frames of random load to standard output, for a writer:
//! `frames [SESSIONS [FRAMES]] | tacho tape-writer --directory DIR`.

use std::io::Write;
use tacho_tape::testing::{Load, Sampler};

fn main() -> std::io::Result<()> {
    let mut numbers = std::env::args().skip(1).map_while(|a| a.parse().ok());
    let load = Load {
        sessions: numbers.next().unwrap_or(50),
        active: 80,
        trouble: 0,
        churn: 0,
        queries: 200,
        ..Load::default()
    };
    let frames = numbers.next().unwrap_or(3_600);
    let mut sampler = Sampler::new(1, load);
    let mut out = std::io::stdout().lock();
    out.write_all(&sampler.hello(&[]))?;
    for _ in 0..frames {
        out.write_all(&sampler.frame().0)?;
    }
    out.flush()
}
