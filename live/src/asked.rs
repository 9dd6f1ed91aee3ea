//! The questions of a view, and how people ask them elsewhere.

use crate::view::{List, View, Window, argument, length};
use tacho_source::{Arguments, Ask};

/// Most rows of a list.
const ROWS: &str = "100";
/// Most sessions that are shown as lanes: a day of one can be many spans.
const LANES: &str = "40";
/// Most rows of a tree.
const TREE: &str = "200";

/// What a question is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// When something was recorded last.
    Status,
    /// The picture.
    Load,
    /// The picture of the earlier window.
    Earlier,
    Markers,
    List,
    /// What queries cost.
    Costs,
    /// Queues of the selection; the tree of a moment follows.
    Heads,
    Tree,
}

/// A question and what it is for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub slot: Slot,
    /// Answers to questions of an earlier view are not wanted any more.
    pub view: u64,
    pub function: &'static str,
    pub arguments: Arguments,
}

impl Asked {
    /// As a source takes it.
    pub fn ask(&self, server: Option<&str>, memory_bytes: u64) -> Ask {
        Ask {
            server: server.map(str::to_string),
            function: self.function.to_string(),
            arguments: self.arguments.clone(),
            texts: true,
            memory_bytes,
            threads: 1,
        }
    }
}

fn arguments(list: &[(&str, &str)]) -> Arguments {
    let owned = |(name, value): &(&str, &str)| ((*name).to_string(), (*value).to_string());
    list.iter().map(owned).collect()
}

fn windowed(window: Window, more: &[(&str, &str)]) -> Arguments {
    let mut all = arguments(more);
    all.insert("since".into(), argument(window.since));
    all.insert("until".into(), argument(window.until));
    all
}

impl View {
    /// The same with the filters.
    fn filtered(&self, mut arguments: Arguments) -> Arguments {
        let filters = self.filters.iter();
        arguments.extend(filters.map(|f| (f.dimension.clone(), f.text.clone())));
        arguments
    }

    /// The question of the picture.
    pub fn load(&self, window: Window) -> (&'static str, Arguments) {
        let width = length(self.width());
        let by = [
            ("bucket", width.as_str()),
            ("by", "wait_event_type"),
            ("n", "all"),
            ("tz", "UTC"),
        ];
        ("timeline", self.filtered(windowed(window, &by)))
    }

    /// The question of the list.
    pub fn listed(&self) -> (&'static str, Arguments) {
        let selection = self.selection();
        let dimension = self.list.dimension().unwrap_or_default();
        match self.list {
            list if list.is_compared() && self.earlier.is_some() => {
                ("compare", self.compared(dimension))
            }
            List::Queries => {
                let by = [
                    ("dimension", dimension),
                    ("by", "wait_event_type"),
                    ("n", ROWS),
                ];
                ("top", self.filtered(windowed(selection, &by)))
            }
            List::Classes | List::Events => {
                let by = [("dimension", dimension), ("n", ROWS)];
                ("top", self.filtered(windowed(selection, &by)))
            }
            List::Sessions => {
                let load = [("scope", "load"), ("n", LANES)];
                ("sessions", self.filtered(windowed(selection, &load)))
            }
            List::Spans => {
                let all = [("scope", "all"), ("n", "1")];
                ("sessions", self.filtered(windowed(self.asked(), &all)))
            }
            // Queues are of the whole server: their readers take no filter.
            List::Locks => ("blocking", windowed(selection, &[("n", ROWS)])),
        }
    }

    fn compared(&self, dimension: &str) -> Arguments {
        let later = self.selection();
        let before = later.earlier(self.earlier.unwrap_or_default());
        let mut all = arguments(&[("dimension", dimension), ("n", ROWS)]);
        for (name, at) in [
            ("since_1", before.since),
            ("until_1", before.until),
            ("since_2", later.since),
            ("until_2", later.until),
        ] {
            all.insert(name.into(), argument(at));
        }
        self.filtered(all)
    }

    /// The tree of a moment.
    pub fn tree(&self, at: i64) -> (&'static str, Arguments) {
        let at = argument(at);
        ("blocking", arguments(&[("at", at.as_str()), ("n", TREE)]))
    }

    /// Every question but when something was recorded last.
    pub fn questions(&self, view: u64) -> Vec<Asked> {
        let window = self.asked();
        let mut all = vec![
            (Slot::Load, self.load(window)),
            (
                match self.list {
                    List::Locks => Slot::Heads,
                    _ => Slot::List,
                },
                self.listed(),
            ),
            (Slot::Markers, ("markers", windowed(window, &[]))),
        ];
        if self.list == List::Queries && self.earlier.is_none() {
            let selection = self.selection();
            // A bucket at least as long as the selection: one row a statement.
            let costs = windowed(selection, &[("n", "all"), ("order_by", "calls")]);
            all.push((Slot::Costs, ("statements_history", costs)));
        }
        if let Some(before) = self.earlier {
            all.push((Slot::Earlier, self.load(window.earlier(before))));
        }
        let asked = |(slot, (function, arguments))| Asked {
            slot,
            view,
            function,
            arguments,
        };
        all.into_iter().map(asked).collect()
    }
}

/// When something was recorded last.
pub fn status(view: u64) -> Asked {
    Asked {
        slot: Slot::Status,
        view,
        function: "status",
        arguments: Arguments::new(),
    }
}
