//! The parts and the rows that a question needs, before a plan is made.

use super::parse::{Samples, Selection, Window, nodes};
use super::register::Register;
use super::wait_names;
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;

/// Parts and rows that a question needs.
pub struct Scan<'a> {
    /// The attempt to answer.
    pub run: Run<'a>,
    /// The rows that count.
    pub selection: Selection,
    /// Parts that may have ticks in the window, by node, in ascending order of ticks.
    pub parts: Vec<&'a Part>,
    /// Parts of the same nodes outside the window.
    pub others: Vec<&'a Part>,
    /// Ids of the question's keys.
    pub register: Register,
    /// If set: only the samples of these buckets are needed.
    pub only_buckets: Option<BTreeSet<u32>>,
    window: Window,
    /// Memory that the sums of all threads take, in bytes.
    pub(in crate::query) held: AtomicUsize,
}

impl<'a> Scan<'a> {
    /// Checks the question and finds the parts.
    pub fn new(run: Run<'a>, samples: Samples, window: Window) -> QueryResult<Scan<'a>> {
        let mut selection = Selection::of(run.context, samples)?;
        let nodes = nodes(run, samples.node)?;
        let all = nodes.iter().flat_map(|node| run.store.parts(*node));
        let (parts, others): (Vec<&Part>, Vec<&Part>) = all.partition(|part| window.overlaps(part));
        wait_names::complete(&mut selection.filters, run, parts.iter().copied())?;
        Ok(Scan {
            run,
            selection,
            parts,
            others,
            register: Register::default(),
            only_buckets: None,
            window,
            held: AtomicUsize::new(0),
        })
    }

    /// The same scan with the register of a question, so that its keys have the same ids.
    #[must_use]
    pub fn registered(self, register: &Register) -> Self {
        Scan {
            register: register.clone(),
            ..self
        }
    }

    /// Fails if the cancel flag is set.
    pub fn check_cancel(&self) -> QueryResult<()> {
        self.run.check_cancel()
    }

    /// Frees the columns of a part after it was read. Call it in the order of the parts: with the
    /// last part of a file it also frees what the file's parts share.
    pub fn release(&self, part: usize) {
        let (read, next) = (self.parts[part], self.parts.get(part + 1));
        read.release();
        if !next.is_some_and(|next| next.is_of_same_file(read)) {
            read.release_shared();
        }
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The window as one bucket.
    pub fn whole(&self) -> Buckets {
        Buckets::whole(self.window.since, self.window.until)
    }
}
