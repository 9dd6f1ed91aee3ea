//! The questions of a view, in the form that other programs take.

use crate::view::{List, View, Window};
use tacho_source::arguments::texts;
use tacho_source::{Arguments, Ask};
use tacho_tape::query::report::METRICS;
use tacho_tape::query::{
    Blocking, Changes, Compare, Markers, Plan, PlanChanges, Plans, Queries, Request, Row,
    ServerHistory, Sessions, Status, Timeline, Top,
};

/// Dimension of the bars and of the picture.
const CLASS: &str = "wait_event_type";

/// Maximum number of rows of a list.
const ROWS: Option<i64> = Some(100);
/// Maximum number of sessions that are shown as lanes: one session may have many spans in a day.
const LANES: Option<i64> = Some(40);
/// Maximum number of rows of a tree.
const TREE: Option<i64> = Some(200);

/// Purpose of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// The time of the last tick.
    Status,
    /// The load in the picture.
    Load,
    /// The load of the earlier window, in the same picture.
    Earlier,
    Markers,
    List,
    /// Costs of queries, or the changes of a query's plan.
    Costs,
    /// Queues in the selected time. A question for the tree of the longest one follows.
    Heads,
    Tree,
    /// Measurements that may be alarms.
    Alarms,
}

/// A question and its purpose.
#[derive(Clone, Debug)]
pub struct Asked {
    pub slot: Slot,
    /// Number of the view. Answers for an earlier view are ignored.
    pub view: u64,
    pub function: &'static str,
    pub arguments: Arguments,
}

impl Asked {
    /// The question for a source.
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

/// A function and its arguments.
type Question = (&'static str, Arguments);

fn question<R: Request>(request: &R) -> Question {
    (R::Row::FUNCTION, texts(request))
}

impl List {
    /// The purpose of the list's question.
    fn slot(self) -> Slot {
        match self {
            List::Locks => Slot::Heads,
            _ => Slot::List,
        }
    }
}

impl View {
    /// The filters in a request's form.
    fn filters(&self) -> Vec<(String, String)> {
        let filters = self.filters.iter();
        filters
            .map(|f| (f.dimension.clone(), f.text.clone()))
            .collect()
    }

    /// The question of the picture.
    pub fn load(&self, window: Window) -> Question {
        let (function, mut arguments) = question(&Timeline {
            since: Some(window.since),
            until: Some(window.until),
            bucket: Some(self.width()),
            by: Some(CLASS.to_string()),
            n: None,
            filters: self.filters(),
            ..Timeline::default()
        });
        arguments.insert("tz".to_string(), "UTC".to_string());
        (function, arguments)
    }

    /// The question of the list.
    pub fn listed(&self) -> Question {
        let Window { since, until } = self.selection();
        match self.list {
            list if list.is_compared() && self.earlier.is_some() => self.compared(),
            List::Queries | List::Classes | List::Events | List::Tags => {
                let is_split = self.list == List::Queries;
                question(&Top {
                    since: Some(since),
                    until: Some(until),
                    dimension: self.list.dimension().map(str::to_string),
                    by: is_split.then(|| CLASS.to_string()),
                    n: ROWS,
                    filters: self.filters(),
                    ..Top::default()
                })
            }
            List::Sessions => self.sessions(self.selection(), "load", LANES),
            List::Spans => self.sessions(self.asked(), "all", Some(1)),
            List::Findings => question(&Changes {
                since: Some(self.asked().since),
                until: Some(self.asked().until),
                ..Changes::default()
            }),
            List::Plans => question(&Plans {
                since: Some(self.asked().since),
                until: Some(self.asked().until),
                query_id: self.query(),
                n: ROWS,
                ..Plans::default()
            }),
            List::Trees => question(&Plan {
                plan_id: self.plans.first().cloned(),
                diff: self.plans.get(1).cloned(),
                query_id: self.query(),
                ..Plan::default()
            }),
            List::Alarms => self.alarms(),
            // Queues concern the whole server: the function `blocking` takes no filter.
            List::Locks => question(&Blocking {
                since: Some(since),
                until: Some(until),
                n: ROWS,
                ..Blocking::default()
            }),
        }
    }

    /// The question for the measurements that may be alarms.
    fn alarms(&self) -> Question {
        let Window { since, until } = self.measured();
        question(&ServerHistory {
            since: Some(since),
            until: Some(until),
            metric: Some(METRICS.join(",")),
            ..ServerHistory::default()
        })
    }

    fn sessions(&self, window: Window, scope: &str, n: Option<i64>) -> Question {
        question(&Sessions {
            since: Some(window.since),
            until: Some(window.until),
            scope: Some(scope.to_string()),
            n,
            filters: self.filters(),
            ..Sessions::default()
        })
    }

    fn compared(&self) -> Question {
        let later = self.selection();
        let before = later.earlier(self.earlier.unwrap_or_default());
        question(&Compare {
            since_1: Some(before.since),
            until_1: Some(before.until),
            since_2: Some(later.since),
            until_2: Some(later.until),
            dimension: self.list.dimension().map(str::to_string),
            n: ROWS,
            filters: self.filters(),
            ..Compare::default()
        })
    }

    /// The tree of a moment.
    pub fn tree(&self, at: i64) -> Question {
        question(&Blocking {
            at: Some(at),
            n: TREE,
            ..Blocking::default()
        })
    }

    /// All questions of the view except `status`.
    pub fn questions(&self, view: u64) -> Vec<Asked> {
        let window = self.asked();
        let markers = question(&Markers {
            since: Some(window.since),
            until: Some(window.until),
            ..Markers::default()
        });
        let mut all = vec![(Slot::Load, self.load(window))];
        if self.list != List::Alarms {
            all.push((self.list.slot(), self.listed()));
        }
        all.push((Slot::Markers, markers));
        if self.has_alarms() {
            all.push((Slot::Alarms, self.alarms()));
        }
        if self.list == List::Plans {
            let changes = question(&PlanChanges {
                since: Some(window.since),
                until: Some(window.until),
                query_id: self.query(),
                n: ROWS,
                ..PlanChanges::default()
            });
            all.push((Slot::Costs, changes));
        }
        if self.list == List::Queries && self.earlier.is_none() {
            let selection = self.selection();
            let costs = question(&Queries {
                since: Some(selection.since),
                until: Some(selection.until),
                n: ROWS,
                filters: self.filters(),
                ..Queries::default()
            });
            all.push((Slot::Costs, costs));
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

/// The question for the last tick.
pub fn status(view: u64) -> Asked {
    let (function, arguments) = question(&Status::default());
    Asked {
        slot: Slot::Status,
        view,
        function,
        arguments,
    }
}
