//! Plots as SVG. Series differ by colour, shape of the points and name. Colours
//! come from the page's style sheet, so they suit light and dark.

use super::stats::Estimate;
use super::waits::Profile;
use maud::{Markup, html};

/// Width of a picture, in units of its view box.
pub const WIDTH: f64 = 800.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 276.0;
const COLORS: usize = 8;
/// Approximate width of a letter, in the same units.
pub const LETTER: f64 = 7.0;

/// A line of a plot, with values at some of the positions.
#[derive(Debug, Clone)]
pub struct Series {
    /// Name of the series.
    pub name: String,
    /// Values by position.
    pub values: Vec<Option<Estimate>>,
}

/// A distance with one decimal.
pub fn units(distance: f64) -> String {
    format!("{distance:.1}")
}

/// Lines over named positions, with the interval of each value.
pub fn lines(title: &str, axis: &[String], series: &[Series]) -> Markup {
    let values = series.iter().flat_map(|s| s.values.iter().flatten());
    let top = round_up(values.map(|e| e.high).fold(0.0, f64::max));
    let (legend, bottom) = legend(series.iter().map(|s| s.name.as_str()), BOTTOM + 60.0);
    // With one position the series stand side by side, otherwise close to their position.
    let apart = match axis.len() {
        1 => (WIDTH - LEFT) / (series.len() + 1) as f64,
        _ => 3.0,
    };
    let shift = |number: usize| (number as f64 - (series.len() as f64 - 1.0) / 2.0) * apart;
    let drawing = html! {
        (grid(top))
        (named_positions(axis))
        @for (number, one) in series.iter().enumerate() {
            (line(number, one, |at| position(at, axis.len()) + shift(number), top))
        }
        (legend)
    };
    picture(title, bottom, &drawing)
}

/// The horizontal lines of a plot, each with its value.
fn grid(top: f64) -> Markup {
    html! {
        @for step in 0..=4 {
            @let value = top * f64::from(step) / 4.0;
            @let y = height(value, top);
            line class="grid" x1=(LEFT) x2=(WIDTH) y1=(units(y)) y2=(units(y)) {}
            text class="soft" x=(units(LEFT - 8.0)) y=(units(y + 4.0)) text-anchor="end" {
                (tick(value, top / 4.0))
            }
        }
    }
}

/// The names of the positions. If they are too long for one row, they stand in two.
fn named_positions(axis: &[String]) -> Markup {
    let second = if crowded(axis) { 16.0 } else { 0.0 };
    let y = |at: usize| BOTTOM + 18.0 + if at % 2 == 1 { second } else { 0.0 };
    html! {
        @for (at, name) in axis.iter().enumerate() {
            text class="soft" x=(units(position(at, axis.len()))) y=(units(y(at)))
                text-anchor="middle" { (name) }
        }
    }
}

fn line(number: usize, series: &Series, position: impl Fn(usize) -> f64, top: f64) -> Markup {
    let values = series.values.iter().enumerate();
    let values = values.filter_map(|(at, value)| Some((position(at), (*value)?)));
    let values: Vec<(f64, Estimate)> = values.collect();
    let color = color(number);
    let points = values
        .iter()
        .map(|(x, e)| format!("{x:.1} {:.1}", height(e.median, top)));
    let path = match points.collect::<Vec<_>>().join("L") {
        path if path.is_empty() => path,
        path => format!("M{path}"),
    };
    html! {
        path class="line" stroke=(color) d=(path) {}
        @for (x, e) in &values {
            line class="whisker" stroke=(color) x1=(units(*x)) x2=(units(*x))
                y1=(units(height(e.low, top))) y2=(units(height(e.high, top))) {}
            (mark(number, *x, height(e.median, top), &format!("{}: {}", series.name, short(e.median))))
        }
    }
}

/// A point. Its shape identifies the series without colour.
pub fn mark(number: usize, x: f64, y: f64, title: &str) -> Markup {
    let corners: &[(f64, f64)] = match number % 4 {
        0 => &[],
        1 => &[(-5.0, -5.0), (5.0, -5.0), (5.0, 5.0), (-5.0, 5.0)],
        2 => &[(0.0, -6.0), (6.0, 5.0), (-6.0, 5.0)],
        _ => &[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)],
    };
    let points = corners
        .iter()
        .map(|(dx, dy)| format!("{:.1},{:.1} ", x + dx, y + dy));
    let points: String = points.collect();
    html! {
        @if corners.is_empty() {
            circle cx=(units(x)) cy=(units(y)) r="5" fill=(color(number)) { title { (title) } }
        } @else {
            polygon points=(points) fill=(color(number)) { title { (title) } }
        }
    }
}

/// Draws an SVG with a bar for each name: the load (average active sessions) of
/// each wait event. The largest `COLORS` - 1 events have a color each; the rest
/// are shown as "(other)".
pub fn waits(title: &str, bars: &[(String, Profile)]) -> Markup {
    let mut total = Profile::new();
    for (wait, load) in bars.iter().flat_map(|(_, profile)| profile) {
        *total.entry(wait.clone()).or_default() += load;
    }
    let mut names: Vec<&String> = total.keys().collect();
    names.sort_by(|a, b| total[*b].total_cmp(&total[*a]));
    names.truncate(COLORS - 1);
    let longest = bars
        .iter()
        .map(|(_, p)| p.values().sum::<f64>())
        .fold(0.0, f64::max);
    let rest = (total.len() > names.len()).then_some("(other)");
    let named = names.iter().map(|n| n.as_str()).chain(rest);
    let (legend, bottom) = legend(named, TOP + 30.0 * bars.len() as f64 + 20.0);
    let widest = bars.iter().map(|(name, _)| name.chars().count()).max();
    let left = (widest.unwrap_or(0) as f64 * LETTER + 20.0).min(WIDTH / 2.0);
    let scale = (WIDTH - left - 60.0) / longest.max(f64::MIN_POSITIVE);
    let drawing = html! {
        @for (row, (name, profile)) in bars.iter().enumerate() {
            @let y = TOP + 30.0 * row as f64;
            (label(left, y, name))
            (bar((left, y), scale, profile, &names))
        }
        (legend)
    };
    picture(title, bottom, &drawing)
}

/// The name of a bar; a name that is too long ends with dots.
pub fn label(left: f64, y: f64, name: &str) -> Markup {
    let room = ((left - 20.0) / LETTER) as usize;
    let shown: String = match name.chars().count() > room {
        true => name
            .chars()
            .take(room.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => name.to_owned(),
    };
    html! {
        text x=(units(left - 8.0)) y=(units(y + 15.0)) text-anchor="end" {
            title { (name) }
            (shown)
        }
    }
}

fn bar((left, y): (f64, f64), scale: f64, profile: &Profile, waits: &[&String]) -> Markup {
    let whole = profile.values().fold(0.0, |sum, load| sum + load);
    let named = waits
        .iter()
        .map(|w| (w.as_str(), profile.get(*w).copied().unwrap_or(0.0)));
    let named: Vec<(&str, f64)> = named.collect();
    let rest = whole - named.iter().map(|(_, load)| load).sum::<f64>();
    let mut x = left;
    let mut parts = Vec::new();
    for (number, (wait, load)) in named.into_iter().chain([("(other)", rest)]).enumerate() {
        let width = load.max(0.0) * scale;
        parts.push((number, wait, load, x, width));
        x += width;
    }
    html! {
        @for (number, wait, load, x, width) in parts.iter().filter(|part| part.4 > 0.0) {
            rect x=(units(*x)) y=(units(y)) width=(units(*width)) height="20" fill=(color(*number)) {
                title { (wait) ": " (format!("{load:.2}")) }
            }
        }
        text class="soft" x=(units(x + 6.0)) y=(units(y + 15.0)) { (format!("{whole:.2}")) }
    }
}

/// A picture with its title.
pub fn picture(title: &str, height: f64, drawing: &Markup) -> Markup {
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (format!("{height:.0}")) } role="img" {
            title { (title) }
            text class="title" x="0" y="16" { (title) }
            (drawing)
        }
    }
}

/// Names of the series from left to right in as many rows as necessary, and the
/// bottom of the picture.
fn legend<'a>(names: impl Iterator<Item = &'a str>, top: f64) -> (Markup, f64) {
    let (mut x, mut y) = (6.0, top);
    let mut places = Vec::new();
    for name in names {
        let width = 30.0 + LETTER * name.chars().count() as f64;
        if x > 6.0 && x + width > WIDTH {
            (x, y) = (6.0, y + 20.0);
        }
        places.push((name, x, y));
        x += width;
    }
    let names = html! {
        @for (number, (name, x, y)) in places.into_iter().enumerate() {
            (mark(number, x, y - 4.0, name))
            text x=(units(x + 10.0)) y=(units(y)) { (name) }
        }
    };
    (names, y + 12.0)
}

/// Colour of a series.
pub fn color(number: usize) -> String {
    format!("var(--c{})", number % COLORS)
}

/// True if the names are too long for one row.
fn crowded(axis: &[String]) -> bool {
    let longest = axis.iter().map(|name| name.chars().count()).max();
    let room = (WIDTH - LEFT) / axis.len().max(1) as f64;
    longest.unwrap_or(0) as f64 * LETTER > room
}

fn position(at: usize, of: usize) -> f64 {
    LEFT + (WIDTH - LEFT) * (at as f64 + 0.5) / of.max(1) as f64
}

fn height(value: f64, top: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * value / top.max(f64::MIN_POSITIVE)
}

/// The smallest number of the form 1, 2, 4, 5 or 8 × 10ⁿ that is not less than `value`.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let unit = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0];
    steps
        .iter()
        .map(|s| s * unit)
        .find(|s| *s >= value * 0.999_999)
        .unwrap_or(10.0 * unit)
}

/// A number of an axis, with the precision of its steps.
fn tick(value: f64, step: f64) -> String {
    let (unit, name) = match step {
        s if s >= 1e6 => (1e6, "M"),
        s if s >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let exact = |decimals: &usize| {
        let shown: f64 = format!("{:.decimals$}", step / unit).parse().unwrap_or(0.0);
        (shown - step / unit).abs() < step / unit * 1e-6
    };
    let decimals = (0..9).find(exact).unwrap_or(9);
    match value == 0.0 {
        true => "0".to_owned(),
        false => format!("{:.decimals$}{name}", value / unit),
    }
}

/// A number as a short text.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{:.1}M", value / 1e6),
        v if v >= 1e4 => format!("{:.0}k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.1}"),
        v if v > 0.0 => format!("{value:.3}"),
        _ => "0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(round_up(0.0), 1.0);
        assert_eq!(round_up(31_200.0), 40_000.0);
        assert_eq!(round_up(8.1), 10.0);
        assert_eq!(round_up(0.03), 0.04);
    }

    #[test]
    fn numbers_of_an_axis_are_as_exact_as_its_steps() {
        let axis = |top: f64| [1.0, 2.0, 4.0].map(|n| tick(top * n / 4.0, top / 4.0));
        assert_eq!(axis(200.0), ["50", "100", "200"]);
        assert_eq!(axis(5.0), ["1.25", "2.50", "5.00"]);
        assert_eq!(axis(10_000.0), ["2.5k", "5.0k", "10.0k"]);
        assert_eq!(axis(0.008), ["0.002", "0.004", "0.008"]);
        assert_eq!(tick(0.0, 1.0), "0");
    }

    #[test]
    fn series_at_one_position_stand_side_by_side() {
        let one = Estimate {
            median: 1.0,
            low: 1.0,
            high: 1.0,
            confidence: 0.9,
        };
        let series = ["a", "b", "c"].map(|name| Series {
            name: name.into(),
            values: vec![Some(one)],
        });
        let svg = lines("T", &["8".into()], &series).0;
        let places = svg.split("class=\"whisker\"").skip(1);
        let places = places.filter_map(|s| s.split("x1=\"").nth(1)?.split('"').next());
        assert_eq!(places.collect::<Vec<_>>(), ["252.5", "435.0", "617.5"]);
    }

    #[test]
    fn long_names_of_an_axis_stand_in_two_rows() {
        let heights = |names: [&str; 9]| {
            let svg = lines("T", &names.map(str::to_owned), &[]).0;
            let rows = [18.0, 34.0].map(|y| format!("y=\"{:.1}\"", BOTTOM + y));
            rows.map(|row| svg.matches(row.as_str()).count())
        };
        assert_eq!(heights(["1 day"; 9]), [9, 0]);
        assert_eq!(heights(["1 day, rounded to 0"; 9]), [5, 4]);
    }

    #[test]
    fn a_value_that_is_missing_leaves_a_hole() {
        let e = Estimate {
            median: 5.0,
            low: 4.0,
            high: 6.0,
            confidence: 0.9,
        };
        let series = Series {
            name: "a<b".into(),
            values: vec![Some(e), None, Some(e)],
        };
        let svg = lines("T", &["1".into(), "2".into(), "3".into()], &[series]).0;
        assert_eq!(svg.matches("class=\"whisker\"").count(), 2);
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b"));
    }

    #[test]
    fn names_of_series_stay_within_the_picture() {
        let names = ["LWLock:pg_stat_statements"; 7];
        let (svg, bottom) = legend(names.into_iter(), 100.0);
        let places = svg.0.split("<text x=\"").skip(1);
        let places = places.filter_map(|s| s.split('"').next()?.parse::<f64>().ok());
        let ends: Vec<f64> = places.map(|x| x + LETTER * 25.0).collect();
        assert_eq!(ends.len(), 7);
        assert!(ends.iter().all(|end| *end <= WIDTH), "{ends:?}");
        assert_eq!(bottom, 100.0 + 2.0 * 20.0 + 12.0);
    }

    #[test]
    fn bars_of_long_names_begin_within_the_picture_and_nothing_is_not_negative() {
        let name = "a question that is asked in very many words · SQL edition of them all";
        let svg = waits("T", &[(name.into(), Profile::new())]).0;
        assert!(svg.contains("…</text>") && svg.contains(&format!("<title>{name}</title>")));
        assert!(svg.contains(">0.00</text>"), "{svg}");
    }

    #[test]
    fn small_waits_are_drawn_together() {
        let profile: Profile = (1..=9).map(|n| (format!("w{n}"), f64::from(n))).collect();
        let svg = waits("T", &[("a".into(), profile)]).0;
        assert_eq!(svg.matches("<rect").count(), 8);
        assert!(svg.contains("(other): 3.00"));
    }
}
