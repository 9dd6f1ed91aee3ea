//! History as text: `tacho export` and `tacho import`. What a kind and its
//! columns are called stands in `tacho_source::exchange`.

pub mod export;
pub mod import;
#[cfg(test)]
mod tests;
