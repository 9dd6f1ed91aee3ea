//! Limits of shipping on average: bytes per second, and a share of a CPU. An
//! object is made and put at full speed. The program then waits for as long as the
//! limits require before the next one.

use crate::limits::Limits;
use crate::place::{Place, Result};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// The limits, and the time of the next put.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// Limit in bytes per second; `None` = no limit.
    rate: Option<u64>,
    /// Limit of the program's share of a CPU, in hundredths; `None` = no limit.
    cpu: Option<u32>,
    /// CPU time of the program for which `next` has a pause already.
    paid: Duration,
    /// Earliest time of the next put, as time since `Paced::begin`.
    next: Duration,
}

impl Pace {
    /// The limits, before the first put.
    pub fn new(rate: Option<u64>, cpu: Option<u32>) -> Pace {
        Pace {
            rate,
            cpu,
            ..Pace::default()
        }
    }

    /// Notes a put of `bytes` that began at `begun`, and the program's CPU time so
    /// far.
    fn put(&mut self, begun: Duration, bytes: u64, used: Duration) {
        let begun = begun.max(self.next);
        let sent = self
            .rate
            .map(|rate| Duration::from_secs_f64(bytes as f64 / rate as f64));
        let fresh = used.saturating_sub(self.paid);
        let made = self.cpu.map(|cpu| fresh * 100 / cpu);
        self.paid = used;
        self.next = begun + sent.max(made).unwrap_or_default();
    }
}

/// A place that is used no faster than the limits allow.
pub struct Paced {
    place: Box<dyn Place>,
    pace: RefCell<Pace>,
    begin: Instant,
    limits: Limits,
}

impl Paced {
    /// `limits` ends the waits when the program has to end.
    pub fn new(place: Box<dyn Place>, pace: Pace, limits: Limits) -> Paced {
        Paced {
            place,
            pace: RefCell::new(pace),
            begin: Instant::now(),
            limits,
        }
    }

    fn wait(&self) -> Result<()> {
        let left = self.pace.borrow().next.saturating_sub(self.begin.elapsed());
        self.limits.wait(left)
    }
}

/// CPU time of this program.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Place for Paced {
    fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        self.wait()?;
        let (begun, size) = (self.begin.elapsed(), bytes.len() as u64);
        let put = self.place.put_new(name, bytes);
        self.pace.borrow_mut().put(begun, size, used());
        put
    }

    fn list(&self, directory: &str, each: &mut dyn FnMut(&str)) -> Result<()> {
        self.place.list(directory, each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    /// A place that has every object already.
    struct Anywhere;

    impl Place for Anywhere {
        fn put_new(&self, _: &str, _: Vec<u8>) -> Result<bool> {
            Ok(true)
        }

        fn list(&self, _: &str, _: &mut dyn FnMut(&str)) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_shipper_that_waits_for_days_ends_on_a_signal() {
        let limits = Limits::default();
        let pace = Pace::new(Some(1), None);
        let place = Paced::new(Box::new(Anywhere), pace, limits.clone());
        assert_eq!(place.put_new("a", vec![0; 1 << 20]), Ok(true));
        std::thread::spawn(move || limits.stop.store(true, Ordering::Relaxed));
        let ended = Err("tacho ship received a signal to stop".to_string());
        assert_eq!(place.put_new("b", Vec::new()), ended);
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn bytes_are_waited_for_and_idle_time_is_not_saved_up() {
        let mut pace = Pace::new(Some(1_000), None);
        pace.put(SECOND, 3_000, SECOND * 9);
        assert_eq!(pace.next, SECOND * 4);
        pace.put(SECOND * 2, 1_000, SECOND * 9);
        assert_eq!(pace.next, SECOND * 5);
        pace.put(SECOND * 60, 500, SECOND * 9);
        assert_eq!(pace.next, SECOND * 60 + SECOND / 2);
    }

    #[test]
    fn cpu_time_is_waited_for_once_and_the_longer_wait_counts() {
        let mut pace = Pace::new(None, Some(10));
        pace.put(SECOND, 3_000, SECOND / 10);
        assert_eq!(pace.next, SECOND * 2);
        pace.put(SECOND * 2, 0, SECOND / 10 * 3);
        assert_eq!(pace.next, SECOND * 4);
        let mut pace = Pace::new(Some(1), Some(50));
        pace.put(Duration::ZERO, 3, SECOND);
        assert_eq!(pace.next, SECOND * 3);
        pace.put(SECOND * 3, 1, SECOND * 3);
        assert_eq!(pace.next, SECOND * 7);
    }

    #[test]
    fn nothing_is_waited_for_without_limits() {
        let mut pace = Pace::default();
        pace.put(SECOND, 1 << 40, SECOND * 99);
        assert_eq!(pace.next, SECOND);
    }
}
