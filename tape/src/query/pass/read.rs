//! Reads the parts of a window and adds up the rows that match. Parts are independent of each
//! other, so several threads share them, and sums do not depend on the order. The dictionaries of a
//! file are evaluated once for all its parts.

use super::batches::{Batches, ChosenValues};
use super::explained;
use super::first_pass::{FirstPass, KnownPieces, Pieces};
use super::plan::{Narrow, Passes, Plan, last_group};
use super::row_sums::RowSums;
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::group::Coder;
use crate::query::rows::integers::{Code, Id, Key, NULL, Number};
use crate::query::rows::keys::{Keys, View};
use crate::query::rows::scan::Scan;
use crate::query::rows::select::{Selected, Tests};
use crate::query::rows::ticks::{NONE, Observed, Ticks};
use crate::query::sums::cells::{Bin, Cell, Cells, Sum};
use crate::query::sums::choice::Choice;
use crate::query::sums::closed_buckets::Finished;
use crate::query::sums::measure::{Adder, Cube, Measures};
use crate::query::sums::totals::Totals;
use crate::query::sums::way::ReadFrom;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::{QueryError, QueryResult};
use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Sums and keys may use this fraction (1/2) of the memory limit. The rest is for columns and
/// temporary data.
const MEMORY_SHARE: u64 = 2;

/// The result of a scan.
pub struct Scanned {
    /// The buckets used.
    pub buckets: Buckets,
    /// The observed time of each bucket.
    pub observed: Observed,
    /// Cells for each group of dimensions.
    pub cubes: Vec<Cube<Cells>>,
    /// Summary of finished buckets for the line "other": the load of keys that were not chosen.
    pub rest: Finished,
}

impl Scanned {
    /// The result of a window that was only planned.
    fn nothing(plan: Plan) -> Scanned {
        let mut observed = Observed::default();
        observed.index();
        Scanned {
            observed,
            cubes: plan.groups.iter().map(|_| Cube::default()).collect(),
            rest: Finished::of(plan.buckets.len()),
            buckets: plan.buckets,
        }
    }
}

impl<'a> Scan<'a> {
    /// Adds up the matching rows of all parts, once for each group of at most two dimensions.
    pub fn sums(&self, buckets: Buckets, groups: &[Vec<&Dimension>]) -> QueryResult<Scanned> {
        self.read(self.plan(buckets, groups), |_| Vec::new())
    }

    /// Same as [`Scan::sums`] with the whole window as one bucket, for less than half of its cost: the
    /// cells have no largest number of sessions.
    pub fn weights(&self, groups: &[Vec<&Dimension>]) -> QueryResult<Scanned> {
        self.read(self.plan_weights(groups), |_| Vec::new())
    }

    /// Same as [`Scan::weights`], with the last groups limited to some keys.
    pub fn weights_narrowed(
        &self,
        groups: &[Vec<&Dimension>],
        narrow: &Narrow,
    ) -> QueryResult<Scanned> {
        let plan = Plan {
            narrow: Some(narrow),
            ..self.plan_weights(groups)
        };
        self.read(plan, |_| Vec::new())
    }

    /// The cells of these keys of a dimension.
    pub fn cells_of(
        &self,
        buckets: Buckets,
        dimension: &Dimension,
        keys: impl IntoIterator<Item = Id>,
    ) -> QueryResult<Scanned> {
        let groups = [vec![dimension]];
        let keys = keys.into_iter().map(|key| (key, NULL));
        let choice = Choice::of(&groups[0], keys);
        self.read(self.plan_known(buckets, &groups), |_| vec![choice])
    }

    /// Carries out a plan. With two passes, `choose` gets the sums of the last group's keys and
    /// chooses the keys of each group that get cells. If these are known before, it gets no sums. Only the last choice may leave out keys: the
    /// pieces of these keys are dropped, and no group after it could count them.
    pub fn read(
        &self,
        plan: Plan,
        choose: impl FnOnce(&Cube<Sum>) -> Vec<Choice>,
    ) -> QueryResult<Scanned> {
        if let Some(explained) = self.run.explained {
            explained::put(explained, self, &plan)?;
            return Ok(Scanned::nothing(plan));
        }
        let detail = match plan.passes {
            Passes::One => Detail::All,
            Passes::Sums => Detail::Sums,
            Passes::Known => Detail::Chosen(Chosen {
                choices: choose(&Cube::default()),
                known: KnownPieces::default(),
            }),
            Passes::Chosen | Passes::Largest => Detail::Chosen(self.chosen(&plan, choose)?),
        };
        let mut total = self.run_pass(&plan, &plan.buckets, plan.groups, &detail)?;
        if total.observed.bucket(0).last_interval_ms().is_none() {
            self.find_interval_before(&mut total.observed)?;
        }
        total.observed.index();
        Ok(Scanned {
            buckets: plan.buckets,
            observed: total.observed,
            cubes: total.cubes,
            rest: total.rest,
        })
    }

    /// The first of two passes.
    fn chosen(
        &self,
        plan: &Plan,
        choose: impl FnOnce(&Cube<Sum>) -> Vec<Choice>,
    ) -> QueryResult<Chosen> {
        let first_pass = FirstPass::new(self.run.memory_bytes);
        let (whole, detail) = (self.whole(), Detail::Weights(&first_pass));
        let totals = self.run_pass(plan, &whole, last_group(plan.groups), &detail)?;
        let mut weights = std::mem::take(&mut *first_pass.weights());
        weights.merge(totals.weights);
        let choices = choose(&weights);
        drop(weights);
        Ok(Chosen {
            choices,
            known: first_pass.into_known(),
        })
    }

    /// One pass over the parts.
    fn run_pass(
        &self,
        plan: &Plan<'a, '_>,
        buckets: &Buckets,
        groups: &[Vec<&Dimension>],
        detail: &Detail,
    ) -> QueryResult<Measures> {
        let totals = match detail {
            Detail::All | Detail::Sums => Totals::new(buckets, groups),
            Detail::Weights(_) => Totals::new(buckets, groups).only_sums(),
            Detail::Chosen(chosen) => Totals::new(buckets, groups).chosen(chosen.choices.last()),
        };
        let question = Question {
            buckets,
            groups,
            detail,
            narrow: plan.narrow,
            totals: &totals,
        };
        self.held.store(0, Ordering::Relaxed);
        let steps = plan.steps.iter().map(|step| match (detail, step.first) {
            (Detail::Weights(_), Some(first)) => (step.part, first),
            _ => (step.part, step.last),
        });
        let mut work_items = work_items(steps);
        if matches!((detail, plan.passes), (Detail::Chosen(_), Passes::Largest)) {
            find_exclusive_buckets(&mut work_items, buckets);
        }
        let (mut total, left) = self.add(&question, &work_items)?;
        if !left.is_empty() {
            let work_items: Vec<WorkItem> = left.into_iter().map(WorkItem::Scan).collect();
            total.merge(self.add(&question, &work_items)?.0);
        }
        Ok(total)
    }

    /// Adds up work items; returns their parts that totals did not answer.
    fn add(
        &self,
        question: &Question,
        work_items: &[WorkItem<'a>],
    ) -> QueryResult<(Measures, Vec<&'a Part>)> {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (before, all) = match question.detail {
            Detail::All | Detail::Sums => (0, work_items.len()),
            Detail::Weights(_) => (0, 2 * work_items.len()),
            Detail::Chosen(..) => (work_items.len(), 2 * work_items.len()),
        };
        let left = Mutex::new(Vec::new());
        let work = || -> QueryResult<Measures> {
            let mut worker = Worker::new(self, question);
            while let Some(item) = work_items.get(next.fetch_add(1, Ordering::Relaxed)) {
                let damage = &self.run.damage;
                damage.note_and_continue(worker.add(item))?;
                worker.check_memory()?;
                if let Some(progress) = self.run.progress {
                    progress(before + done.fetch_add(1, Ordering::Relaxed) + 1, all);
                }
            }
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            left.append(&mut worker.left);
            Ok(worker.sums)
        };
        let threads = self.run.threads.clamp(1, work_items.len().max(1));
        let total = on_threads(threads, work)?;
        self.run.damage.check()?;
        Ok((
            total,
            left.into_inner().unwrap_or_else(PoisonError::into_inner),
        ))
    }

    /// Finds the interval of the last tick in the newest part before the window.
    fn find_interval_before(&self, observed: &mut Observed) -> QueryResult<()> {
        let since_ms = self.window().since.div_euclid(1000);
        let earlier = self.others.iter().filter(|p| p.max_ms() < since_ms + 1);
        let Some(part) = earlier.max_by_key(|p| p.max_ms()) else {
            return Ok(());
        };
        let slot = part.ints("tick", "slot_time")?;
        let interval = part.ints("tick", "interval_ms")?;
        for (slot, interval) in slot.iter().zip(interval.iter()) {
            observed.before(*slot, *interval);
        }
        Ok(())
    }
}

/// The sums that a pass computes.
enum Detail<'k> {
    /// The cells of all keys.
    All,
    /// Only the sum of weights by key, for a window of one bucket.
    Sums,
    /// Only the sum of weights by key, for one group and a window of one bucket.
    Weights(&'k FirstPass),
    /// The cells of chosen keys.
    Chosen(Chosen),
}

struct Chosen {
    /// Choice for each group.
    choices: Vec<Choice>,
    /// Keys of the pieces by the dimensions of the last group. Each other group has none or only
    /// the first of these dimensions.
    known: KnownPieces,
}

/// The question that a pass answers.
struct Question<'q> {
    buckets: &'q Buckets,
    groups: &'q [Vec<&'q Dimension>],
    detail: &'q Detail<'q>,
    narrow: Option<&'q Narrow>,
    totals: &'q Totals<'q>,
}

/// A unit of work for one thread.
enum WorkItem<'a> {
    /// A part whose samples are read.
    Scan(&'a Part),
    /// Parts of one file that totals answer, and the buckets that can be finished because no other
    /// item has ticks in them.
    Totals(Vec<&'a Part>, Range<u32>),
}

impl WorkItem<'_> {
    /// The first and the last bucket in which the work item may have ticks; `None` outside the
    /// window.
    fn buckets(&self, buckets: &Buckets) -> Option<(u32, u32)> {
        let parts = match self {
            WorkItem::Scan(part) => std::slice::from_ref(part),
            WorkItem::Totals(parts, _) => parts,
        };
        let first = parts.iter().map(|part| part.min_ms()).min()?;
        let last = parts.iter().map(|part| part.max_ms()).max()?;
        let first = first.saturating_mul(1000).max(buckets.since());
        let last = last.saturating_mul(1000).min(buckets.until() - 1);
        Some((buckets.index(first)? as u32, buckets.index(last)? as u32))
    }
}

/// Divides parts into work items that any thread may take. All parts of a file that totals answer
/// are one work item.
fn work_items<'a>(steps: impl Iterator<Item = (&'a Part, ReadFrom)>) -> Vec<WorkItem<'a>> {
    let mut work_items: Vec<WorkItem> = Vec::new();
    for (part, way) in steps {
        if !way.is_by_totals() {
            work_items.push(WorkItem::Scan(part));
            continue;
        }
        match work_items.last_mut() {
            Some(WorkItem::Totals(parts, _)) if parts[0].is_of_same_file(part) => parts.push(part),
            _ => work_items.push(WorkItem::Totals(vec![part], 0..0)),
        }
    }
    work_items
}

/// Finds the buckets in which only one item has ticks. The first bucket stays unfinished: if it
/// has no tick, `read` looks for the last tick before the window.
fn find_exclusive_buckets(work_items: &mut [WorkItem], buckets: &Buckets) {
    let spans = work_items.iter().enumerate();
    let spans = spans.filter_map(|(at, item)| Some((item.buckets(buckets)?, at)));
    let mut spans: Vec<((u32, u32), usize)> = spans.collect();
    spans.sort_unstable();
    let mut begin = 1;
    for (index, ((first, last), at)) in spans.iter().enumerate() {
        let end = spans.get(index + 1).map_or(NONE, |next| next.0.0);
        let end = end.min(last + 1);
        begin = begin.max(*first);
        if let WorkItem::Totals(_, exclusive) = &mut work_items[*at] {
            *exclusive = begin..end.max(begin);
        }
        begin = begin.max(last + 1);
    }
}

/// Runs the same work on several threads and adds up the results.
fn on_threads(
    threads: usize,
    work: impl Fn() -> QueryResult<Measures> + Sync,
) -> QueryResult<Measures> {
    thread::scope(|scope| {
        // If the system refuses a thread, the others do its work.
        let start = |_| thread::Builder::new().spawn_scoped(scope, &work).ok();
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        let mut total = work();
        for other in others {
            let lost = |_| Err(QueryError::new("XX000", "query thread failed"));
            let found = other.join().unwrap_or_else(lost);
            total = total.and_then(|mut total| {
                total.merge(found?);
                Ok(total)
            });
        }
        total
    })
}

/// A thread that adds up parts.
struct Worker<'s, 'p> {
    scan: &'s Scan<'p>,
    question: &'s Question<'s>,
    /// The dimensions of all groups.
    dimensions: Vec<&'s Dimension>,
    sums: Measures,
    /// Parts that totals did not answer.
    left: Vec<&'p Part>,
    file: Option<FileState<'p>>,
    /// Memory of the sums in bytes.
    held: usize,
    /// Start and end of the ticks of each selected piece, as rows of table `tick`.
    ranges: Vec<(u32, u32)>,
    /// Number of each selected piece's key.
    numbers: Vec<Number>,
    row_sums: RowSums,
    adder: Adder,
}

/// State of the file whose parts are being added.
struct FileState<'s> {
    view: View<'s>,
    tests: OnceCell<Tests>,
    groups: Vec<Coder>,
    /// For each group, if only chosen keys are counted.
    chosen: Vec<ChosenValues>,
    /// For each code of the first dimension of narrowed groups: true if its key counts.
    narrowed: OnceCell<Vec<bool>>,
}

impl<'s, 'p> Worker<'s, 'p> {
    fn new(scan: &'s Scan<'p>, question: &'s Question<'s>) -> Self {
        let groups = question.groups;
        Worker {
            scan,
            question,
            dimensions: groups.iter().flatten().copied().collect(),
            sums: Measures {
                observed: Observed::default(),
                cubes: match question.detail {
                    Detail::Chosen(chosen) => chosen.choices.iter().map(Cube::of).collect(),
                    _ => groups.iter().map(|_| Cube::default()).collect(),
                },
                weights: Cube::default(),
                rest: Finished::of(question.buckets.len()),
            },
            left: Vec::new(),
            file: None,
            held: 0,
            ranges: Vec::new(),
            numbers: Vec::new(),
            row_sums: RowSums::default(),
            adder: Adder::default(),
        }
    }

    /// Fails before the process runs out of memory.
    fn check_memory(&mut self) -> QueryResult<()> {
        let Some(limit) = self.scan.run.memory_bytes else {
            return Ok(());
        };
        let cells: usize = self.sums.cubes.iter().map(Cube::cell_bytes).sum();
        let held = cells + self.sums.weights.bytes();
        let more = held.saturating_sub(self.held);
        self.held = held;
        let all = self.scan.held.fetch_add(more, Ordering::Relaxed) + more;
        let all = all + self.scan.register.ids().bytes();
        match all as u64 <= limit / MEMORY_SHARE {
            true => Ok(()),
            false => Err(QueryError::out_of_memory(limit)),
        }
    }

    fn add(&mut self, item: &WorkItem<'p>) -> QueryResult<()> {
        let (parts, exclusive) = match item {
            WorkItem::Scan(part) => return self.add_part(part),
            WorkItem::Totals(parts, exclusive) => (parts, exclusive),
        };
        self.scan.check_cancel()?;
        let file = self.turn_to(parts[0]);
        let totals = self.question.totals;
        match totals.add(&file.view, parts, &mut self.sums) {
            Ok(left) if left.is_empty() => {
                let observed = self.question.buckets.len();
                self.sums.finish(exclusive.clone(), observed);
            }
            Ok(left) => self.left.extend(left),
            // If the totals are damaged, the samples of the parts are added up instead.
            Err(_) => self.left.extend(parts),
        }
        self.file = Some(file);
        Ok(())
    }

    fn add_part(&mut self, part: &'p Part) -> QueryResult<()> {
        let check = || self.scan.check_cancel();
        let observed = &mut self.sums.observed;
        let mut ticks = Ticks::read_unless(part, self.question.buckets, observed, check)?;
        if let Some(buckets) = &self.scan.only_buckets {
            ticks.count_within(buckets);
        }
        if !ticks.is_idle() && part.rows(RUN) > 0 && !self.question.groups.is_empty() {
            let mut file = self.turn_to(part);
            self.add_rows(&mut file, &ticks)?;
            self.file = Some(file);
        }
        part.release();
        Ok(())
    }

    /// The state for a part's file: the current one, or a new one.
    fn turn_to(&mut self, part: &'p Part) -> FileState<'p> {
        if let Some(mut file) = self.file.take() {
            if file.view.turn_to(part) {
                return file;
            }
            file.view.part.release_shared();
        }
        let groups = self.question.groups;
        FileState {
            view: View::new(part, self.scan.run.decode)
                .canceled_by(self.scan.run.cancel)
                .registered(&self.scan.register),
            tests: OnceCell::new(),
            groups: groups.iter().map(|_| Coder::default()).collect(),
            chosen: groups.iter().map(|_| ChosenValues::default()).collect(),
            narrowed: OnceCell::new(),
        }
    }

    fn add_rows(&mut self, file: &mut FileState, ticks: &Ticks) -> QueryResult<()> {
        let view = &file.view;
        if let Detail::Chosen(chosen) = self.question.detail
            && let Some(pieces) = chosen.known.pieces_with_ranges(view.part, &mut self.ranges)
        {
            return self.add_known(chosen, pieces, ticks);
        }
        let selection = &self.scan.selection;
        let tests = match file.tests.get() {
            Some(tests) => tests,
            None => {
                let tests = Tests::of(view, self.scan.run.catalog, selection)?;
                file.tests.get_or_init(|| tests)
            }
        };
        let mut selected = Selected::of(view, tests, selection, &self.dimensions)?;
        if selected.len() == 0 {
            return Ok(());
        }
        self.scan.check_cancel()?;
        let done = self.add_batches(file, &selected, ticks)?;
        if done == self.question.groups.len() {
            return Ok(());
        }
        let view = &file.view;
        selected.ranges(ticks, &mut self.ranges);
        if self.scan.only_buckets.is_some() {
            selected.drop_uncounted(ticks, &mut self.ranges);
        }
        if let Detail::Chosen(chosen) = self.question.detail
            && let Some(pieces) = chosen.known.pieces(view.part, selected.len())
        {
            return self.add_known(chosen, pieces, ticks);
        }
        self.row_sums.clear();
        let groups = self.question.groups.iter().zip(&mut file.groups);
        for (index, (group, coder)) in groups.enumerate().skip(done) {
            self.scan.check_cancel()?;
            if let Some(narrow) = self.question.narrow.filter(|narrow| narrow.from == index) {
                let first = group[0].resolve(view, &selected.runs)?;
                let of_file = &file.narrowed;
                narrowed(
                    view,
                    narrow,
                    &first,
                    of_file,
                    &mut selected,
                    &mut self.ranges,
                )?;
                self.row_sums.clear();
                if selected.len() == 0 {
                    return Ok(());
                }
            }
            let dimensions: Vec<Rc<Keys>> = group
                .iter()
                .map(|dimension| dimension.resolve(view, &selected.runs))
                .collect::<QueryResult<_>>()?;
            if let Detail::Sums = self.question.detail
                && self.add_row_sums(index, view, &selected, &dimensions, ticks)?
            {
                continue;
            }
            let keys = coder.numbers(view, &selected, &dimensions, &mut self.numbers)?;
            self.scan.check_cancel()?;
            match self.question.detail {
                Detail::Weights(first_pass) => {
                    let ranges = (!selected.runs.are_computed()).then_some(&self.ranges[..]);
                    let sums = sums(ticks, &self.ranges, &self.numbers, keys.len());
                    let mut weights = first_pass.weights();
                    let held = weights.bytes();
                    for (key, sum_ms) in sums {
                        let number = weights.number(keys[key]);
                        *weights.at(number).get_or_insert(0) += sum_ms;
                    }
                    let more = weights.bytes() - held;
                    drop(weights);
                    self.scan.held.fetch_add(more, Ordering::Relaxed);
                    first_pass.put(view.part, &self.numbers, ranges, keys);
                }
                Detail::Chosen(chosen) => {
                    chosen.choices[index].apply(&keys, &mut self.ranges, &mut self.numbers);
                    self.add_numbered(index, ticks, None);
                }
                Detail::All => self.add_numbered(index, ticks, Some(&keys)),
                Detail::Sums => self.add_sums(index, ticks, &keys),
            }
        }
        Ok(())
    }
}

impl Worker<'_, '_> {
    /// Adds the runs of a part while a column of them is decoded; returns the number of groups for
    /// which it did so.
    fn add_batches(
        &mut self,
        file: &mut FileState,
        selected: &Selected,
        ticks: &Ticks,
    ) -> QueryResult<usize> {
        let view = &file.view;
        let chosen = match self.question.detail {
            Detail::Chosen(chosen) if !chosen.known.has(view.part) => chosen,
            _ => return Ok(0),
        };
        if selected.pieces.is_some() || self.scan.only_buckets.is_some() {
            return Ok(0);
        }
        let Some(batches) = Batches::of(view, ticks, &selected.runs) else {
            return Ok(0);
        };
        let groups = self.question.groups.iter().zip(&chosen.choices);
        for (index, (group, choice)) in groups.enumerate() {
            let values = &mut file.chosen[index];
            let Some(grid) = batches.count(group, choice, values, &mut self.adder)? else {
                return Ok(index);
            };
            let cube = &mut self.sums.cubes[index];
            grid.cells(ticks, cube.len(), &mut |number, cell| {
                cube.at(number).add(cell);
            });
        }
        Ok(self.question.groups.len())
    }

    /// Adds the pieces of a part whose keys are known. `ranges` already has their ticks.
    fn add_known(&mut self, chosen: &Chosen, pieces: &Pieces, ticks: &Ticks) -> QueryResult<()> {
        for (group, choice) in chosen.choices.iter().enumerate() {
            self.scan.check_cancel()?;
            pieces.choose(choice, &mut self.ranges, &mut self.numbers);
            self.add_numbered(group, ticks, None);
        }
        Ok(())
    }

    /// Adds the sums of pieces from `ranges` and `numbers` to the only bucket. `keys` has the key of
    /// each number.
    fn add_sums(&mut self, group: usize, ticks: &Ticks, keys: &[Key]) {
        let sums = sums(ticks, &self.ranges, &self.numbers, keys.len());
        let sums = sums.map(|(number, sum_ms)| (keys[number], sum_ms));
        add_sums(&mut self.sums.cubes[group], sums);
    }

    /// Adds the sums of pieces from `ranges` by the rows of a dictionary, if it has all dimensions
    /// of the group; otherwise returns false.
    fn add_row_sums(
        &mut self,
        group: usize,
        view: &View,
        selected: &Selected,
        dimensions: &[Rc<Keys>],
        ticks: &Ticks,
    ) -> QueryResult<bool> {
        let ranges = &self.ranges;
        let add_up = |numbers: &[Number], width| sums(ticks, ranges, numbers, width).collect();
        let numbers = &mut self.numbers;
        let rows = &mut self.row_sums;
        let Some(found) = rows.of_group(view, selected, dimensions, numbers, add_up)? else {
            return Ok(false);
        };
        add_sums(&mut self.sums.cubes[group], found.into_iter());
        Ok(true)
    }

    /// Adds the cells of pieces from `ranges` and `numbers`. `keys` has the key of each number;
    /// without it, numbers are the cube's.
    fn add_numbered(&mut self, group: usize, ticks: &Ticks, keys: Option<&[Key]>) {
        let cube = &mut self.sums.cubes[group];
        let numbers = keys.map(|keys| keys.iter().map(|key| cube.number(*key)));
        let numbers: Option<Vec<Number>> = numbers.map(Iterator::collect);
        let width = numbers.as_ref().map_or(cube.len(), Vec::len);
        let add = |number: Number, cell| {
            let number = numbers.as_ref().map_or(number, |all| all[number.index()]);
            cube.at(number).add(cell);
        };
        let adder = &mut self.adder;
        adder.cells(ticks, &self.ranges, &self.numbers, width, add);
    }
}

/// Removes pieces whose key does not count, and their ranges. `of_file` keeps the keys that count for
/// all parts of a file.
fn narrowed(
    view: &View,
    narrow: &Narrow,
    keys: &Keys,
    of_file: &OnceCell<Vec<bool>>,
    selected: &mut Selected,
    ranges: &mut Vec<(u32, u32)>,
) -> QueryResult<()> {
    let counts = match of_file.get() {
        Some(counts) => counts,
        None => {
            let counts = keys.test(view, |key| narrow.keys.contains(&key))?;
            of_file.get_or_init(|| counts)
        }
    };
    let mut kept = Vec::with_capacity(selected.len());
    let pieces = selected.pieces.as_deref();
    let is_kept = |code: Code| counts[code.index()];
    keys.codes
        .of_pieces(view.part, &selected.runs, pieces, &mut kept, is_kept)?;
    selected.retain(&kept, ranges);
    Ok(())
}

/// Adds sums of keys to the only bucket.
fn add_sums(cube: &mut Cube<Cells>, sums: impl Iterator<Item = (Key, i64)>) {
    for (key, sum_ms) in sums {
        let number = cube.number(key);
        cube.at(number).add(Cell {
            bucket: 0,
            sessions: 0,
            sum_ms,
        });
    }
}

/// Sum of the weights by number of the key, for keys whose pieces have ticks.
fn sums(
    ticks: &Ticks,
    ranges: &[(u32, u32)],
    numbers: &[Number],
    width: usize,
) -> impl Iterator<Item = (usize, i64)> {
    let pieces = ranges.iter().zip(numbers);
    let mut sums = vec![(0, 0); width];
    if let Some(weight_ms) = ticks.same_weight_ms() {
        for ((begin, end), number) in pieces {
            sums[number.index()].0 += u64::from(end - begin);
        }
        for (count, sum_ms) in &mut sums {
            *sum_ms = *count as i64 * weight_ms;
        }
    } else {
        let before = ticks.before();
        for ((begin, end), number) in pieces {
            let (begin, end) = (before[*begin as usize], before[*end as usize]);
            let sum: &mut (u64, i64) = &mut sums[number.index()];
            *sum = (sum.0 + u64::from(end.0 - begin.0), sum.1 + end.1 - begin.1);
        }
    }
    let sums = sums.into_iter().enumerate();
    sums.filter_map(|(number, (count, sum_ms))| (count > 0).then_some((number, sum_ms)))
}
