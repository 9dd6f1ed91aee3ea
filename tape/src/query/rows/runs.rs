//! The runs of a part, or pieces of runs: a run is cut where a derived attribute (the head of a
//! lock queue) changes within it.

use super::ticks::{RunRanges, Ticks};
use crate::format::codec::EqualRun;
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::format::table::Column;
use crate::query::value::error::QueryResult;
use std::sync::Arc;

/// Pieces of runs by index: row of table `run`, first tick, number of ticks.
pub struct Runs {
    rows: Option<Vec<u32>>,
    len: usize,
    places: Places,
}

/// First tick and number of ticks of each piece.
enum Places {
    Columns { first_tick: Column, ticks: Column },
    Stretches(Vec<EqualRun>),
}

impl Runs {
    /// Whole runs.
    pub fn whole(part: &Part) -> QueryResult<Runs> {
        let places = match part.stretches() {
            Some(stretches) => Places::Stretches(stretches),
            None => Places::Columns {
                first_tick: part.ints(RUN, "first_tick")?,
                ticks: part.ints(RUN, "ticks")?,
            },
        };
        Ok(Runs {
            rows: None,
            len: part.rows(RUN),
            places,
        })
    }

    /// Pieces by their rows, first ticks and numbers of ticks.
    pub fn pieces(rows: Vec<u32>, first_tick: Vec<i64>, ticks: Vec<i64>) -> Runs {
        Runs {
            rows: Some(rows),
            len: first_tick.len(),
            places: Places::Columns {
                first_tick: Column(Arc::new(first_tick)),
                ticks: Column(Arc::new(ticks)),
            },
        }
    }

    /// True if first ticks and lengths are computed from a few numbers, not stored in columns.
    pub fn are_computed(&self) -> bool {
        matches!(self.places, Places::Stretches(_))
    }

    /// Number of pieces.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The row of table `run` that a piece belongs to.
    #[inline]
    pub fn row(&self, piece: usize) -> usize {
        match &self.rows {
            Some(rows) => rows[piece] as usize,
            None => piece,
        }
    }

    /// The row of each piece; `None` if pieces are whole runs.
    pub fn rows(&self) -> Option<&[u32]> {
        self.rows.as_deref()
    }

    /// Calls `each` with first tick and number of ticks of the given pieces, in ascending order.
    /// `None` means all pieces.
    pub fn for_each(&self, pieces: Option<&[u32]>, mut each: impl FnMut(i64, i64)) {
        match (&self.places, pieces) {
            (Places::Columns { first_tick, ticks }, None) => {
                let all = first_tick.iter().zip(ticks.iter());
                all.for_each(|(first, ticks)| each(*first, *ticks));
            }
            (Places::Columns { first_tick, ticks }, Some(pieces)) => {
                let pieces = pieces.iter().map(|piece| *piece as usize);
                pieces.for_each(|piece| each(first_tick[piece], ticks[piece]));
            }
            (Places::Stretches(all), None) => {
                for (index, stretch) in all.iter().enumerate() {
                    let end = all.get(index + 1).map_or(self.len, |next| next.row);
                    for row in stretch.row..end {
                        let (first, ticks) = stretch.run(row);
                        each(first, ticks);
                    }
                }
            }
            (Places::Stretches(all), Some(pieces)) => {
                let mut at = 0;
                for piece in pieces.iter().map(|piece| *piece as usize) {
                    while all.get(at + 1).is_some_and(|next| next.row <= piece) {
                        at += 1;
                    }
                    let (first, ticks) = all[at].run(piece);
                    each(first, ticks);
                }
            }
        }
    }

    /// Appends for each given piece the range of its rows in `ticks`. Pieces ascend; `None` means
    /// all.
    pub fn ranges(&self, pieces: Option<&[u32]>, ticks: &Ticks, ranges: &mut Vec<(u32, u32)>) {
        let (Places::Stretches(all), None) = (&self.places, pieces) else {
            self.for_each(pieces, |first, length| {
                ranges.push(ticks.range(first, length))
            });
            return;
        };
        for (index, stretch) in all.iter().enumerate() {
            let end = all.get(index + 1).map_or(self.len, |next| next.row);
            let rows = stretch.row..end.max(stretch.row);
            match ticks.ranges(stretch, rows.len()) {
                Some(found) => ranges.extend(found.all()),
                None => ranges.extend(rows.map(|row| {
                    let (first, length) = stretch.run(row);
                    ticks.range(first, length)
                })),
            }
        }
    }

    /// The ranges of all pieces in `ticks`, stretch by stretch. `None` unless pieces are whole runs
    /// that are stored as stretches, and every tick of them is stored.
    pub fn stretches(&self, ticks: &Ticks) -> Option<Vec<RunRanges>> {
        let Places::Stretches(all) = &self.places else {
            return None;
        };
        let ends = all.iter().skip(1).map(|next| next.row).chain([self.len]);
        let ranges = all.iter().zip(ends).map(|(stretch, end)| {
            let runs = end.checked_sub(stretch.row)?;
            ticks.ranges(stretch, runs)
        });
        let ranges: Vec<RunRanges> = ranges.collect::<Option<_>>()?;
        let covered: usize = ranges.iter().map(RunRanges::runs).sum();
        (covered == self.len).then_some(ranges)
    }

    fn place(&self, piece: usize) -> (i64, i64) {
        match &self.places {
            Places::Columns { first_tick, ticks } => (first_tick[piece], ticks[piece]),
            Places::Stretches(all) => {
                let at = all.partition_point(|stretch| stretch.row <= piece);
                all[at - 1].run(piece)
            }
        }
    }

    /// First tick of a piece.
    #[inline]
    pub fn first_tick(&self, piece: usize) -> i64 {
        self.place(piece).0
    }

    /// Number of ticks of a piece.
    #[inline]
    pub fn ticks(&self, piece: usize) -> i64 {
        self.place(piece).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::part::Identity;
    use crate::format::part_builder::PartBuilder;
    use crate::store::snapshot::Snapshot;
    use crate::testing::memory::MemoryStorage;
    use crate::testing::schema;
    use crate::write::seal::write_sealed;

    /// Three sessions. Their states change at almost every tick, and two of them are absent for a
    /// while.
    fn sealed() -> MemoryStorage {
        let storage = MemoryStorage::new();
        let mut b = PartBuilder::new(Arc::new(schema().with_runs())).unwrap();
        let sessions = [7, 8, 9].map(|pid| {
            let session = [("pid", pid), ("category", 1)];
            b.intern("session", &session).unwrap()
        });
        for tick in 5..405 {
            let times = ("slot_time", 1_000 * tick);
            let values = [("tick", tick), times, ("interval_ms", 1_000)];
            b.row("tick", &values).unwrap();
            for (index, session) in sessions.into_iter().enumerate() {
                if index > 0 && (90..100 * index as i64).contains(&tick) {
                    continue;
                }
                let state = ("state", 1 + (tick - i64::from(tick % 97 == 0)) % 2);
                b.sample(tick as u64, session, &[state]).unwrap();
            }
        }
        write_sealed(&storage, 1, b, Identity::default(), Default::default()).unwrap();
        storage
    }

    #[test]
    fn stretches_of_a_sealed_file_are_its_runs() {
        let store = Snapshot::open_storage(&sealed()).unwrap();
        let part = store.parts(0).next().unwrap();
        let runs = Runs::whole(part).unwrap();
        let Places::Stretches(stretches) = &runs.places else {
            panic!("the columns are not stored as spans");
        };
        assert!(stretches.len() < runs.len() / 16);
        let column = |name| part.ints(RUN, name).unwrap().to_vec();
        let pairs = column("first_tick").into_iter().zip(column("ticks"));
        let expected: Vec<(i64, i64)> = pairs.collect();
        assert!(expected.iter().any(|(_, ticks)| *ticks > 1));
        assert_eq!(runs.len(), expected.len());
        let read = |pieces: Option<&[u32]>| {
            let mut found = Vec::new();
            runs.for_each(pieces, |first, ticks| found.push((first, ticks)));
            found
        };
        assert_eq!(read(None), expected);
        let third: Vec<u32> = (0..runs.len() as u32).step_by(3).collect();
        let of = |piece: &u32| expected[*piece as usize];
        assert_eq!(read(Some(&third)), third.iter().map(of).collect::<Vec<_>>());
        for (piece, run) in expected.iter().enumerate() {
            assert_eq!((runs.first_tick(piece), runs.ticks(piece)), *run);
        }
        let spans = part.spans("session").unwrap();
        let rows = spans.iter().map(|span| vec![span.value; span.rows]);
        assert_eq!(rows.collect::<Vec<_>>().concat(), column("session"));
    }
}
