//! The load as a picture: bars stacked by wait class, a line for the vCPUs,
//! hatching for gaps, a line on the ground for idle time. Classes differ in
//! colour and pattern.

use super::{Report, named, tick_label, two};
use crate::escape;
use crate::time::{Calendar, offset_text};
use jiff::tz::TimeZone;
use std::fmt::Write as _;
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
pub fn look(key: &str) -> String {
    let class = if key == "BufferPin" { "Buffer" } else { key };
    let known = CLASSES.contains(&class);
    if known {
        class.to_lowercase()
    } else {
        "other".to_string()
    }
}

/// The patterns, once per page. Each has a colour and lines.
pub fn patterns() -> String {
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
    let mut text = String::from("<defs>");
    for (name, path) in lines {
        let _ = write!(
            text,
            "<pattern id=\"p-{name}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">\
             <rect width=\"8\" height=\"8\" class=\"c-{name}\"/><path d=\"{path}\" class=\"ink\"/></pattern>"
        );
    }
    text.push_str(
        "<pattern id=\"p-gap\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
         <path d=\"M0 6L6 0M-1 1L1 -1M5 7L7 5\" class=\"gap\"/></pattern></defs>",
    );
    text
}

/// A swatch with the colour and pattern of a wait class, for a legend.
pub fn swatch(key: &str) -> String {
    format!(
        "<svg class=\"swatch\" width=\"14\" height=\"14\" aria-hidden=\"true\"><rect width=\"14\" height=\"14\" fill=\"url(#p-{})\"/></svg>",
        look(key)
    )
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
pub fn chart(report: &Report) -> String {
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
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"chart-title chart-desc\">\
         <title id=\"chart-title\">Average active sessions over time</title>\
         <desc id=\"chart-desc\">{}</desc>{}",
        escape(&describe(report)),
        patterns()
    );
    grid(&scale, &mut svg);
    for bucket in &timeline.buckets {
        let Some(Time(start)) = bucket.bucket_start else {
            continue;
        };
        let begin = start.max(scale.begin);
        let end = start.saturating_add(width).min(scale.end);
        let across = (scale.x(begin), scale.x(end));
        bar(bucket, &timeline.keys, &scale, across, &mut svg);
    }
    times(report, &scale, &mut svg);
    if let Some(vcpus) = vcpus {
        let y = scale.y(vcpus);
        let _ = write!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{:.1}\" class=\"vcpus\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" class=\"strong\">{vcpus} vCPUs</text>",
            WIDTH - RIGHT,
            WIDTH - RIGHT - 2.0,
            y - 4.0
        );
    }
    if let Some(at) = period.at {
        let x = scale.x(at.0);
        let _ = write!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{GROUND}\" class=\"at\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"strong\">{}</text>",
            x + 4.0,
            TOP + 10.0,
            escape(&report.clock(period.at, period.at))
        );
    }
    svg.push_str("</svg>");
    svg
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

fn bar(
    bucket: &Bucket,
    keys: &[Option<Text>],
    scale: &Scale,
    (x, end): (f64, f64),
    svg: &mut String,
) {
    // A bar keeps a narrow gap to the next one.
    let width = (end - x - if end - x > 4.0 { 1.0 } else { 0.0 }).max(0.5);
    if bucket.avg_aas.is_none() {
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"url(#p-gap)\"/>",
            end - x,
            GROUND - TOP
        );
        return;
    }
    let mut sum = 0.0;
    for (key, load) in keys.iter().zip(&bucket.by) {
        let load = load.map_or(0.0, Numeric::to_f64);
        let (low, high) = (scale.y(sum), scale.y(sum + load));
        sum += load;
        if low - high >= 0.05 {
            let _ = write!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{high:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"url(#p-{})\"/>",
                low - high,
                look(named(key))
            );
        }
    }
    let _ = write!(
        svg,
        "<path d=\"M{x:.1} {GROUND}H{end:.1}\" class=\"ground\"/>"
    );
}

/// Grid lines at round loads.
fn grid(scale: &Scale, svg: &mut String) {
    let rough = scale.most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let step = steps
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let mut load = 0.0;
    while load <= scale.most {
        let y = scale.y(load);
        let _ = write!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{:.1}\" class=\"grid\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            (load * 100.0).round() / 100.0
        );
        load += step;
    }
}

/// Times that are round on the clock of a zone.
fn round_times(scale: &Scale, step: i64, zone: &TimeZone) -> Vec<i64> {
    let calendar = Calendar(zone.clone());
    let buckets = Buckets::new(scale.begin, scale.end + 1, step, Some(&calendar), 10_000);
    let starts = buckets
        .iter()
        .flat_map(|b| (0..b.len()).map(|i| b.start(i)));
    starts.filter(|at| *at >= scale.begin).collect()
}

/// Time labels at round distances.
fn times(report: &Report, scale: &Scale, svg: &mut String) {
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
    for at in round_times(scale, step, zone) {
        let x = scale.x(at);
        let label = tick_label(at, zone, length > 86400, offsets);
        let _ = write!(
            svg,
            "<path d=\"M{x:.1} {GROUND}v4\" class=\"grid\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            GROUND + 18.0
        );
    }
}
