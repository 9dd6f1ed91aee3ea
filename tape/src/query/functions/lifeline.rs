//! The life of a session as spans, and the time between them. Times are in ms. A span ends at the
//! end of its last tick's slot.

/// Start and end of a time in which nothing was observed, in ms.
pub type Gap = (i64, i64);

/// Consecutive ticks with the same activity of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivitySpan {
    /// Start of its first tick.
    pub begin: i64,
    /// End of its last tick.
    pub end: i64,
    /// Number of ticks.
    pub ticks: i64,
    /// Number of the activity.
    pub activity: usize,
    /// Kinds of on-CPU activity by number, each with its number of ticks.
    pub cpu: Vec<(usize, i64)>,
    /// Start of query and transaction at the first tick; 0 if there is none.
    pub starts: [i64; 2],
}

impl ActivitySpan {
    /// Adds a span that continues this one.
    fn join(&mut self, next: ActivitySpan) {
        self.end = self.end.max(next.end);
        self.ticks += next.ticks;
        for (kind, ticks) in next.cpu {
            match self.cpu.iter_mut().find(|known| known.0 == kind) {
                Some(known) => known.1 += ticks,
                None => self.cpu.push((kind, ticks)),
            }
        }
    }
}

/// A piece of a life.
#[derive(Debug, PartialEq, Eq)]
pub enum SpanOrGap {
    /// The session was seen.
    Seen(ActivitySpan),
    /// The session was not seen, but ticks were observed.
    Unseen(i64, i64),
    /// No tick was observed.
    Gap(i64, i64),
}

/// Finds times without observation from ticks in ascending order of their numbers.
#[derive(Default)]
pub struct Clock {
    observed: Vec<(i64, i64)>,
}

impl Clock {
    /// Adds an observed tick; returns true if it continues the one before.
    pub fn tick(&mut self, begin: i64, end: i64) -> bool {
        let last = self.observed.last_mut();
        match last.filter(|last| (last.0..=last.1).contains(&begin)) {
            Some(last) => {
                last.1 = last.1.max(end);
                true
            }
            None => {
                self.observed.push((begin, end));
                false
            }
        }
    }

    /// The times without observation between the first and the last tick, in ascending order. Ticks
    /// are sorted by time here: if the clock was set back, a later tick has an earlier time.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut observed = self.observed.clone();
        observed.sort_unstable();
        let mut gaps = Vec::new();
        let mut at = observed.first().map_or(0, |first| first.1);
        for (begin, end) in observed {
            if begin > at {
                gaps.push((at, begin));
            }
            at = at.max(end);
        }
        gaps
    }
}

/// Makes the life of a session from its spans, which are in order of time. It joins spans that
/// continue each other and adds the time between spans.
pub fn life(spans: Vec<ActivitySpan>, gaps: &[Gap]) -> Vec<SpanOrGap> {
    let mut joined: Vec<ActivitySpan> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.activity == span.activity && last.end >= span.begin => {
                last.join(span)
            }
            _ => joined.push(span),
        }
    }
    let mut life = Vec::new();
    let mut at = None;
    for span in joined {
        if let Some(end) = at {
            between(end, span.begin, gaps, &mut life);
        }
        at = at.max(Some(span.end));
        life.push(SpanOrGap::Seen(span));
    }
    life
}

fn between(mut begin: i64, end: i64, gaps: &[Gap], life: &mut Vec<SpanOrGap>) {
    let first = gaps.partition_point(|gap| gap.1 <= begin);
    for gap in gaps[first..].iter().take_while(|gap| gap.0 < end) {
        let (since, until) = (gap.0.max(begin), gap.1.min(end));
        if begin < since {
            life.push(SpanOrGap::Unseen(begin, since));
        }
        life.push(SpanOrGap::Gap(since, until));
        begin = until;
    }
    if begin < end {
        life.push(SpanOrGap::Unseen(begin, end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin: i64, end: i64, activity: usize) -> ActivitySpan {
        ActivitySpan {
            begin,
            end,
            ticks: (end - begin) / 10,
            activity,
            cpu: Vec::new(),
            starts: [0, 0],
        }
    }

    #[test]
    fn kinds_of_cpu_activity_are_added_up_within_a_span() {
        let on_cpu = |begin, end, kind| ActivitySpan {
            cpu: vec![(kind, (end - begin) / 10)],
            ..span(begin, end, 1)
        };
        let spans = vec![on_cpu(0, 10, 1), on_cpu(10, 30, 0), on_cpu(30, 40, 1)];
        let joined = ActivitySpan {
            cpu: vec![(1, 2), (0, 2)],
            ..span(0, 40, 1)
        };
        assert_eq!(life(spans, &[]), [SpanOrGap::Seen(joined)]);
    }

    #[test]
    fn continued_runs_are_one_span_with_the_gaps_between() {
        let spans = vec![
            span(0, 20, 1),
            span(20, 30, 1),
            span(30, 40, 2),
            span(60, 70, 2),
            span(100, 110, 2),
        ];
        let pieces = life(spans, &[(80, 90)]);
        let seen = |begin, end, activity| SpanOrGap::Seen(span(begin, end, activity));
        assert_eq!(
            pieces,
            [
                seen(0, 30, 1),
                seen(30, 40, 2),
                SpanOrGap::Unseen(40, 60),
                seen(60, 70, 2),
                SpanOrGap::Unseen(70, 80),
                SpanOrGap::Gap(80, 90),
                SpanOrGap::Unseen(90, 100),
                seen(100, 110, 2),
            ]
        );
    }

    #[test]
    fn the_clock_finds_unobserved_time() {
        let mut clock = Clock::default();
        let ticks = [(0, 10), (10, 20), (40, 50), (45, 50), (50, 60)];
        let continues = ticks.map(|(begin, end)| clock.tick(begin, end));
        assert_eq!(continues, [false, true, false, true, true]);
        assert_eq!(clock.gaps(), [(20, 40)]);
    }

    #[test]
    fn a_clock_set_back_leaves_gaps_in_order_of_time() {
        let mut clock = Clock::default();
        let ticks = [(100, 110), (110, 120), (20, 30), (30, 40), (200, 210)];
        let continues = ticks.map(|(begin, end)| clock.tick(begin, end));
        assert_eq!(continues, [false, true, false, true, false]);
        assert_eq!(clock.gaps(), [(40, 100), (120, 200)]);
    }
}
