//! History as text: `tacho export` and `tacho import`. The names of kinds and
//! columns are in `tacho_source::exchange`.

pub mod export;
pub mod import;
#[cfg(test)]
mod tests;
