//! `tacho plan-changes`: statements that turned to another plan.

use crate::readers::table::Layout;
use crate::readers::{Reader, ReaderArgs, run as read};
use std::process::ExitCode;

/// Arguments of `tacho plan-changes`.
pub type Args = ReaderArgs<PlanChanges>;

/// The function and its layout.
#[derive(Clone)]
pub struct PlanChanges;

impl Reader for PlanChanges {
    const FUNCTION: &'static str = "plan_changes";
    const LAYOUT: Layout = Layout::Columns(&[
        ("changed_at", "changed"),
        ("time_lost", "ms lost"),
        ("ratio", "times"),
        ("old_mean_exec_time", "mean"),
        ("new_mean_exec_time", "new mean"),
        ("new_calls", "calls"),
        ("query_id", "query id"),
        ("old_plan_id", "plan id"),
        ("new_plan_id", "new plan id"),
        ("back_at", "back since"),
        ("inputs", "inputs"),
        ("query_text", "query"),
    ]);
}

/// Prints the answer.
pub fn run(args: &Args) -> ExitCode {
    read(args)
}
