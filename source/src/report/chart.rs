//! The load as a picture: bars stacked by wait class, a line for the vCPUs,
//! hatching for gaps, a line on the ground for idle time. Classes differ in
//! colour and pattern.

use super::{Report, named, tick_label, two};
use crate::time::{Calendar, offset_text};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use tacho_tape::query::Numeric;
use tacho_tape::query::bucket::Buckets;
use tacho_tape::query::report::{Bucket, Text, Time};

// Units of the view box of the drawing.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 14.0;
const GROUND: f64 = 268.0;

/// Classes with a look of their own, in the order of their patterns.
const CLASSES: [&str; 9] = [
    "CPU",
    "IO",
    "Lock",
    "LWLock",
    "IPC",
    "Client",
    "Timeout",
    "Buffer",
    "Extension",
];

/// Name of the colour and pattern of a wait class, such as `lwlock`.
fn look(key: &str) -> String {
    let class = if key == "BufferPin" { "Buffer" } else { key };
    let known = CLASSES.contains(&class);
    if known {
        class.to_lowercase()
    } else {
        "other".to_string()
    }
}

/// The patterns, once per page. Each has a colour and lines.
fn patterns() -> Markup {
    let lines = [
        ("cpu", ""),
        ("io", "M0 8L8 0M-2 2L2 -2M6 10L10 6"),
        ("lock", "M0 0L8 8M0 8L8 0"),
        ("lwlock", "M2 2h2v2h-2zM6 6h2v2h-2z"),
        ("ipc", "M0 2H8M0 6H8"),
        ("client", "M2 0V8M6 0V8"),
        ("timeout", "M0 0L8 8M-2 6L2 10M6 -2L10 2"),
        ("buffer", "M0 4H8M4 0V8"),
        ("extension", "M4 1v1M1 5v1"),
        ("other", "M0 7H8"),
    ];
    html! {
        defs {
            @for (name, path) in lines {
                pattern id={ "p-" (name) } width="8" height="8" patternUnits="userSpaceOnUse" {
                    rect width="8" height="8" class={ "c-" (name) } {}
                    path d=(path) class="ink" {}
                }
            }
            pattern id="p-gap" width="6" height="6" patternUnits="userSpaceOnUse" {
                path d="M0 6L6 0M-1 1L1 -1M5 7L7 5" class="gap" {}
            }
        }
    }
}

/// The fill of a class: a reference to its pattern.
pub fn fill(key: &str) -> String {
    format!("url(#p-{})", look(key))
}

/// A swatch with the colour and pattern of a wait class, for a legend.
pub fn swatch(key: &str) -> Markup {
    html! {
        svg class="swatch" width="14" height="14" aria-hidden="true" {
            rect width="14" height="14" fill=(fill(key)) {}
        }
    }
}

/// A distance with one decimal.
fn units(distance: f64) -> String {
    format!("{distance:.1}")
}

struct Scale {
    begin: i64,
    end: i64,
    most: f64,
}

impl Scale {
    fn x(&self, us: i64) -> f64 {
        let share = (us - self.begin) as f64 / (self.end - self.begin).max(1) as f64;
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, load: f64) -> f64 {
        GROUND - load / self.most * (GROUND - TOP)
    }
}

/// The picture, as SVG.
pub fn chart(report: &Report) -> Markup {
    let document = &report.document;
    let (period, timeline) = (&document.period, &document.timeline);
    let us = |time: Option<Time>| time.map_or(0, |time| time.0);
    let width = timeline
        .bucket_seconds
        .unwrap_or(60)
        .saturating_mul(1_000_000);
    let vcpus = document.load.vcpus.map(Numeric::to_f64);
    let loads = timeline.buckets.iter().filter_map(|bucket| bucket.avg_aas);
    let loads = loads.map(Numeric::to_f64);
    let scale = Scale {
        begin: us(period.period_start),
        end: us(period.period_end),
        most: loads.chain(vcpus).fold(1.0, f64::max) * 1.08,
    };
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-labelledby="chart-title chart-desc" {
            title id="chart-title" { "Average active sessions over time" }
            desc id="chart-desc" { (describe(report)) }
            (patterns())
            (grid(&scale))
            @for bucket in &timeline.buckets {
                @if let Some(Time(start)) = bucket.bucket_start {
                    @let begin = start.max(scale.begin);
                    @let end = start.saturating_add(width).min(scale.end);
                    (bar(bucket, &timeline.keys, &scale, (scale.x(begin), scale.x(end))))
                }
            }
            (times(report, &scale))
            @if let Some(vcpus) = vcpus {
                (limit(vcpus, scale.y(vcpus)))
            }
            @if let Some(at) = period.at {
                (moment(&report.clock(period.at, period.at), scale.x(at.0)))
            }
        }
    }
}

/// The line of the vCPUs.
fn limit(vcpus: f64, y: f64) -> Markup {
    let right = WIDTH - RIGHT;
    html! {
        path d=(format!("M{LEFT} {y:.1}H{right:.1}")) class="vcpus" {}
        text x=(units(right - 2.0)) y=(units(y - 4.0)) text-anchor="end" class="strong" {
            (vcpus.to_string()) " vCPUs"
        }
    }
}

/// The line of the moment that the report is about.
fn moment(clock: &str, x: f64) -> Markup {
    html! {
        path d=(format!("M{x:.1} {TOP}V{GROUND}")) class="at" {}
        text x=(units(x + 4.0)) y=(units(TOP + 10.0)) class="strong" { (clock) }
    }
}

fn describe(report: &Report) -> String {
    let document = &report.document;
    let buckets = document.timeline.buckets.iter().rev();
    let mut text = format!("Average {} sessions", two(document.load.avg_aas));
    if let Some(peak) = buckets.max_by_key(|bucket| bucket.avg_aas) {
        text.push_str(&format!(
            ", highest {} at {}",
            two(peak.avg_aas),
            report.clock(peak.bucket_start, document.period.period_start)
        ));
    }
    text + ". The same figures are in the tables below."
}

fn bar(bucket: &Bucket, keys: &[Option<Text>], scale: &Scale, (x, end): (f64, f64)) -> Markup {
    if bucket.avg_aas.is_none() {
        let (width, height) = (units(end - x), units(GROUND - TOP));
        return html! {
            rect x=(units(x)) y=(TOP.to_string()) width=(width) height=(height) fill="url(#p-gap)" {}
        };
    }
    // A bar keeps a narrow gap to the next one.
    let width = (end - x - if end - x > 4.0 { 1.0 } else { 0.0 }).max(0.5);
    html! {
        @for (key, (low, high)) in keys.iter().zip(layers(bucket, scale)) {
            @if low - high >= 0.05 {
                rect x=(units(x)) y=(units(high)) width=(units(width)) height=(units(low - high)) fill=(fill(named(key))) {}
            }
        }
        path d=(format!("M{x:.1} {GROUND}H{end:.1}")) class="ground" {}
    }
}

/// Lower and upper edge of the keys of a bar, which stand on each other.
fn layers(bucket: &Bucket, scale: &Scale) -> Vec<(f64, f64)> {
    let mut sum = 0.0;
    let layer = |load: &Option<Numeric>| {
        let low = scale.y(sum);
        sum += load.map_or(0.0, Numeric::to_f64);
        (low, scale.y(sum))
    };
    bucket.by.iter().map(layer).collect()
}

/// Grid lines at round loads.
fn grid(scale: &Scale) -> Markup {
    let rough = scale.most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let step = steps
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let loads = std::iter::successors(Some(0.0), |load| Some(load + step));
    let right = WIDTH - RIGHT;
    html! {
        @for load in loads.take_while(|load| *load <= scale.most) {
            @let y = scale.y(load);
            path d=(format!("M{LEFT} {y:.1}H{right:.1}")) class="grid" {}
            text x=(units(LEFT - 6.0)) y=(units(y + 4.0)) text-anchor="end" {
                (((load * 100.0).round() / 100.0).to_string())
            }
        }
    }
}

/// Times in µs that are multiples of `step` on the clock of a zone.
fn round_times(scale: &Scale, step: i64, zone: &TimeZone) -> Vec<i64> {
    let calendar = Calendar(zone.clone());
    let buckets = Buckets::new(scale.begin, scale.end + 1, step, Some(&calendar), 10_000);
    let starts = buckets
        .iter()
        .flat_map(|b| (0..b.len()).map(|i| b.start(i)));
    starts.filter(|at| *at >= scale.begin).collect()
}

/// Time labels at round distances.
fn times(report: &Report, scale: &Scale) -> Markup {
    let steps = [
        1, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
    ];
    let length = (scale.end - scale.begin) / 1_000_000;
    let step = steps
        .into_iter()
        .find(|step| length / step <= 8)
        .unwrap_or(7 * 86400)
        * 1_000_000;
    let zone = &report.zone;
    let offsets = offset_text(scale.begin, zone) != offset_text(scale.end, zone);
    html! {
        @for at in round_times(scale, step, zone) {
            @let x = units(scale.x(at));
            path d={ "M" (x) " " (GROUND.to_string()) "v4" } class="grid" {}
            text x=(x) y=(units(GROUND + 18.0)) text-anchor="middle" {
                (tick_label(at, zone, length > 86400, offsets))
            }
        }
    }
}
