//! Removed history, until a marker records it: amount, time and reason.

use crate::write::markers::Marker;
use crate::write::recover::Stored;
use crate::write::settings::{Limit, Settings};

/// End of the detail of a marker whose history was removed before it was shipped.
pub const NOT_SHIPPED: &str = "not shipped yet";

/// The history removed for one reason.
struct RemovedFiles {
    why: Limit,
    /// True if the files were protected because they were not shipped yet.
    unshipped: bool,
    files: u64,
    bytes: u64,
    /// First and last slot time of the removed files, in ms since 1970; `None` if they have no
    /// ticks.
    times: Option<(i64, i64)>,
}

/// Removals that no marker has recorded yet.
#[derive(Default)]
pub(crate) struct Removed(Vec<RemovedFiles>);

impl Removed {
    /// Notes a removed file. `unshipped` is true if it was protected because it was not shipped
    /// yet.
    pub(crate) fn add(&mut self, why: Limit, unshipped: bool, file: &Stored) {
        let is_same = |removal: &RemovedFiles| (removal.why, removal.unshipped) == (why, unshipped);
        let known = self.0.iter().position(is_same);
        let at = known.unwrap_or_else(|| {
            self.0.push(RemovedFiles {
                why,
                unshipped,
                files: 0,
                bytes: 0,
                times: None,
            });
            self.0.len() - 1
        });
        let removal = &mut self.0[at];
        removal.files += 1;
        removal.bytes += file.bytes;
        if let Some((min, max)) = file.times {
            let (least, most) = removal.times.unwrap_or((min, max));
            removal.times = Some((least.min(min), most.max(max)));
        }
    }

    /// The markers for the next frame.
    pub(crate) fn markers(
        &self,
        settings: &Settings,
        wall_ms: i64,
    ) -> impl Iterator<Item = Marker> {
        self.0.iter().map(move |removal| {
            let (files, bytes) = (removal.files, removal.bytes);
            let plural = if files == 1 { "" } else { "s" };
            let name = settings.name_of(removal.why);
            let why = match removal.why {
                Limit::Age => format!("older than {name}"),
                Limit::Size | Limit::Unshipped => format!("the history exceeded {name}"),
                Limit::Space => format!("less space was free than {name}"),
            };
            let lost = match removal.unshipped {
                true => format!(", {NOT_SHIPPED}"),
                false => String::new(),
            };
            let detail = format!("{files} file{plural} of {bytes} bytes: {why}{lost}");
            Marker::removed(wall_ms, removal.times.unwrap_or((0, 0)), detail)
        })
    }
}
