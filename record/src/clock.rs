//! Decides when ticks are taken and numbers them. Slots follow the server's clock: each answer
//! contains its time. Between two answers, this process extrapolates it by its own monotonic clock.

use std::time::Duration;

/// If the two clocks move apart by more than this between two ticks, the server's clock was set.
const STEP_US: i64 = 1_000_000;

/// A tick to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Number from 1. Slots without a tick leave holes.
    pub tick: i64,
    /// Begin of the slot, ms since 1970.
    pub slot_ms: i64,
    /// Time since the previous tick in ms; 0 for the first tick.
    pub elapsed_ms: i64,
    /// True if the tick fell into a later slot than planned.
    pub late: bool,
    /// Number of slots without a tick before it.
    pub missed: i64,
}

#[derive(Clone, Copy)]
struct Last {
    slot: i64,
    server_us: i64,
    mono_us: i64,
}

/// Plans one tick per slot, at a random moment of the slot.
pub struct Clock {
    interval_us: i64,
    tick: i64,
    last: Option<Last>,
    /// Time in µs on the server's clock and on this process's clock at one moment before the first
    /// tick.
    reference: Option<(i64, i64)>,
    /// End of the history that earlier processes have recorded, in ms since 1970.
    recorded_ms: i64,
    planned_slot: i64,
    /// Planned time of the next tick in µs, on this process's monotonic clock.
    planned_us: i64,
}

impl Clock {
    /// The first tick is due at once, unless an earlier process has recorded its slot. That history
    /// ends at `recorded_ms`.
    pub fn new(interval: Duration, recorded_ms: Option<i64>) -> Clock {
        Clock {
            recorded_ms: recorded_ms.unwrap_or(i64::MIN),
            interval_us: i64::try_from(interval.as_micros()).unwrap_or(i64::MAX),
            tick: 0,
            last: None,
            reference: None,
            planned_slot: i64::MIN,
            planned_us: 0,
        }
    }

    /// Time until the next tick.
    pub fn wait(&self, mono_us: i64) -> Duration {
        Duration::from_micros(u64::try_from(self.planned_us - mono_us).unwrap_or(0))
    }

    /// Plans the next tick after the last one, whether or not it got an answer. `phase` (0 to 1) is
    /// a moment in the first four fifths of the slot. The last fifth is left for late answers.
    pub fn plan(&mut self, mono_us: i64, phase: f64) {
        let Some(last) = self.last else {
            self.planned_us = mono_us + self.interval_us;
            return;
        };
        let server_us = last.server_us + (mono_us - last.mono_us);
        self.planned_slot = server_us.div_euclid(self.interval_us).max(last.slot) + 1;
        let within = (phase * (self.interval_us - self.interval_us / 5) as f64) as i64;
        let planned = self.planned_slot * self.interval_us + within;
        self.planned_us = mono_us + (planned - server_us);
    }

    /// Takes a tick. `server_us` is the server's time in the answer. On this process's clock, the
    /// question left at `asked_us` and the answer came at `answered_us`. The server read its clock
    /// between the two, but a pooler may have held question or answer. The best guess is the moment
    /// that the last tick's two clocks predict. Returns `None` if the slot has a tick already, also
    /// one of an earlier process.
    pub fn take(&mut self, server_us: i64, [asked_us, answered_us]: [i64; 2]) -> Option<Due> {
        let mut slot = server_us.div_euclid(self.interval_us);
        let mono_us = match self.last {
            None => asked_us.midpoint(answered_us),
            Some(last) => {
                (last.mono_us + (server_us - last.server_us)).clamp(asked_us, answered_us)
            }
        };
        let mut due = Due {
            tick: self.tick + 1,
            slot_ms: slot * self.interval_us / 1_000,
            elapsed_ms: 0,
            late: false,
            missed: 0,
        };
        let is_recorded = 1..=self.interval_us / 1_000;
        if self.last.is_none()
            && is_recorded.contains(&self.recorded_ms.saturating_sub(due.slot_ms))
        {
            return None;
        }
        if let Some(last) = self.last {
            let elapsed_us = mono_us - last.mono_us;
            due.elapsed_ms = elapsed_us / 1_000;
            let step = server_us - last.server_us - elapsed_us;
            if step.abs() > STEP_US {
                due.missed = (elapsed_us / self.interval_us - 1).max(0);
            } else {
                // One clock runs a little faster than the other: the slot never goes back.
                slot = slot.max(last.slot);
                due.missed = slot - last.slot - 1;
                due.late = slot > self.planned_slot;
            }
            if due.missed < 0 {
                return None;
            }
            due.tick += due.missed;
        }
        self.tick = due.tick;
        self.last = Some(Last {
            slot,
            server_us,
            mono_us,
        });
        Some(due)
    }

    /// Notes the server's clock at a moment.
    pub fn set_reference(&mut self, server_us: i64, mono_us: i64) {
        self.reference = Some((server_us, mono_us));
    }

    /// Makes a failed tick for the slot of this moment. `None` if the slot has a tick, or the
    /// server's clock is not known.
    pub fn failed_tick(&mut self, mono_us: i64) -> Option<Due> {
        self.take(self.server_us(mono_us)?, [mono_us; 2])
    }

    /// Begin of the first slot after the last tick, in ms since 1970; `None` without a tick.
    pub fn end_ms(&self) -> Option<i64> {
        self.last
            .map(|last| (last.slot + 1) * self.interval_us / 1_000)
    }

    /// Time of the last tick on the server's clock, in µs since 1970; `None` without a tick.
    pub fn last_us(&self) -> Option<i64> {
        self.last.map(|last| last.server_us)
    }

    /// Begins a new life of the server: ticks are numbered from 1 again.
    pub fn begin_life(&mut self) {
        self.tick = 0;
    }

    /// The server's clock at a moment, if known.
    pub fn server_us(&self, mono_us: i64) -> Option<i64> {
        let last = self.last.map(|last| (last.server_us, last.mono_us));
        last.or(self.reference)
            .map(|(server_us, then_us)| server_us + (mono_us - then_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    fn clock() -> Clock {
        Clock::new(Duration::from_secs(1), None)
    }

    fn numbers(due: Option<Due>) -> (i64, i64, i64, bool) {
        let due = due.unwrap();
        (due.tick, due.slot_ms, due.missed, due.late)
    }

    #[test]
    fn each_slot_of_the_servers_clock_has_one_tick_at_most() {
        let mut clock = clock();
        assert_eq!(clock.wait(5), Duration::ZERO);
        let hour = 3_600 * S;
        assert_eq!(
            numbers(clock.take(hour + 100, [10; 2])),
            (1, 3_600_000, 0, false)
        );
        clock.plan(10 + 50, 0.5);
        assert_eq!(
            clock.wait(60),
            Duration::from_micros(1_000_000 + 400_000 - 150)
        );
        assert_eq!(
            numbers(clock.take(hour + S + 5, [10 + S; 2])),
            (2, 3_601_000, 0, false)
        );
        assert_eq!(clock.take(hour + S + 900_000, [10 + S + 900_000; 2]), None);
        assert_eq!(clock.end_ms(), Some(3_602_000));
    }

    #[test]
    fn slots_without_a_tick_leave_holes_and_one_behind_them_is_late() {
        let mut clock = clock();
        clock.take(10 * S, [0; 2]);
        clock.plan(0, 0.0);
        assert_eq!(
            numbers(clock.take(14 * S, [4 * S; 2])),
            (5, 14_000, 3, true)
        );
    }

    #[test]
    fn after_an_outage_the_next_slot_is_planned_not_the_ones_gone_by() {
        let mut clock = clock();
        clock.take(10 * S, [0; 2]);
        clock.plan(60 * S + 500_000, 0.0);
        assert_eq!(clock.wait(60 * S + 500_000), Duration::from_millis(500));
        assert_eq!(
            numbers(clock.take(71 * S, [61 * S; 2])),
            (62, 71_000, 60, false)
        );
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_the_ticks() {
        let mut clock = clock();
        clock.take(7_200 * S, [0; 2]);
        clock.plan(0, 0.0);
        assert_eq!(
            numbers(clock.take(3_601 * S, [S; 2])),
            (2, 3_601_000, 0, false)
        );
        clock.plan(S, 0.0);
        assert_eq!(
            numbers(clock.take(3_602 * S, [2 * S; 2])),
            (3, 3_602_000, 0, false)
        );
    }

    #[test]
    fn an_answer_that_came_late_is_no_step_of_the_clock() {
        let mut clock = clock();
        clock.take(10 * S, [0, 0]);
        clock.plan(0, 0.0);
        // The pooler holds the first question for 4.5 s before the server reads it, and holds the
        // second answer after it was read.
        assert_eq!(
            numbers(clock.take(15 * S, [S / 2, 5 * S])),
            (6, 15_000, 4, true)
        );
        assert_eq!(
            numbers(clock.take(16 * S, [6 * S, 10 * S])),
            (7, 16_000, 0, true)
        );
        assert_eq!(
            numbers(clock.take(20 * S, [10 * S, 10 * S])),
            (11, 20_000, 3, true)
        );
    }

    #[test]
    fn the_servers_clock_is_known_before_the_first_tick() {
        let mut clock = clock();
        assert_eq!((clock.server_us(7), clock.failed_tick(7)), (None, None));
        clock.set_reference(90 * S, 7);
        assert_eq!(clock.server_us(7 + S), Some(91 * S));
        assert_eq!(numbers(clock.failed_tick(7 + S)), (1, 91_000, 0, false));
        assert_eq!(numbers(clock.failed_tick(7 + 3 * S)), (3, 93_000, 1, true));
        assert_eq!(clock.failed_tick(8 + 3 * S), None);
    }

    #[test]
    fn a_slot_that_the_process_before_has_recorded_is_left_to_it() {
        let mut clock = Clock::new(Duration::from_secs(1), Some(11_000));
        assert_eq!(clock.take(10 * S + 900_000, [0, 0]), None);
        assert_eq!(numbers(clock.take(11 * S, [S, S])), (1, 11_000, 0, false));
        let mut set_back = Clock::new(Duration::from_secs(1), Some(3_600_000));
        assert_eq!(
            numbers(set_back.take(11 * S, [S, S])),
            (1, 11_000, 0, false)
        );
    }
}
