//! Plots as SVG. Series differ by colour, shape of the points and name. Colours
//! come from the page's style sheet, so they suit light and dark.

use super::stats::Estimate;
use super::waits::Profile;
use std::fmt::Write;
use tacho_source::escape;

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

/// Lines over named positions, with the interval of each value.
pub fn lines(title: &str, axis: &[String], series: &[Series]) -> String {
    let values = series.iter().flat_map(|s| s.values.iter().flatten());
    let top = round_up(values.map(|e| e.high).fold(0.0, f64::max));
    let (legend, bottom) = legend(series.iter().map(|s| s.name.as_str()), BOTTOM + 60.0);
    let mut svg = open(title, bottom);
    for step in 0..=4 {
        let value = top * f64::from(step) / 4.0;
        let y = height(value, top);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            tick(value, top / 4.0)
        );
    }
    for (at, name) in axis.iter().enumerate() {
        let row = if at % 2 == 1 && crowded(axis) {
            1.0
        } else {
            0.0
        };
        let _ = write!(
            svg,
            "<text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            position(at, axis.len()),
            BOTTOM + 18.0 + 16.0 * row,
            escape(name)
        );
    }
    for (number, one) in series.iter().enumerate() {
        // With one position they stand side by side, otherwise close to their
        // position.
        let apart = match axis.len() {
            1 => (WIDTH - LEFT) / (series.len() + 1) as f64,
            _ => 3.0,
        };
        let shift = (number as f64 - (series.len() as f64 - 1.0) / 2.0) * apart;
        line(
            &mut svg,
            number,
            one,
            |at| position(at, axis.len()) + shift,
            top,
        );
    }
    svg + &legend + "</svg>"
}

fn line(
    svg: &mut String,
    number: usize,
    series: &Series,
    position: impl Fn(usize) -> f64,
    top: f64,
) {
    let color = color(number);
    let mut path = String::new();
    let mut marks = String::new();
    for (at, value) in series.values.iter().enumerate() {
        let Some(e) = value else { continue };
        let x = position(at);
        let (y, low, high) = (
            height(e.median, top),
            height(e.low, top),
            height(e.high, top),
        );
        let _ = write!(
            path,
            "{}{x:.1} {y:.1}",
            if path.is_empty() { "M" } else { "L" }
        );
        let _ = write!(
            marks,
            "<line class=\"whisker\" stroke=\"{color}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" \
             y2=\"{high:.1}\"/>{}",
            mark(
                number,
                x,
                y,
                &format!("{}: {}", series.name, short(e.median))
            )
        );
    }
    let _ = write!(
        svg,
        "<path class=\"line\" stroke=\"{color}\" d=\"{path}\"/>{marks}"
    );
}

/// A point. Its shape identifies the series without colour.
pub fn mark(number: usize, x: f64, y: f64, title: &str) -> String {
    let points = match number % 4 {
        0 => None,
        1 => Some([(-5.0, -5.0), (5.0, -5.0), (5.0, 5.0), (-5.0, 5.0)].to_vec()),
        2 => Some([(0.0, -6.0), (6.0, 5.0), (-6.0, 5.0)].to_vec()),
        _ => Some([(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)].to_vec()),
    };
    let (color, title) = (color(number), escape(title));
    match points {
        None => format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{color}\"><title>{title}</title></circle>"
        ),
        Some(points) => {
            let points = points
                .iter()
                .map(|(dx, dy)| format!("{:.1},{:.1} ", x + dx, y + dy));
            let points: String = points.collect();
            format!(
                "<polygon points=\"{points}\" fill=\"{color}\"><title>{title}</title></polygon>"
            )
        }
    }
}

/// Draws an SVG with a bar for each name: the load (average active sessions) of
/// each wait event. The largest `COLORS` - 1 events have a color each; the rest
/// are shown as "(other)".
pub fn waits(title: &str, bars: &[(String, Profile)]) -> String {
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
    let mut svg = open(title, bottom);
    let widest = bars.iter().map(|(name, _)| name.chars().count()).max();
    let left = (widest.unwrap_or(0) as f64 * LETTER + 20.0).min(WIDTH / 2.0);
    let scale = (WIDTH - left - 60.0) / longest.max(f64::MIN_POSITIVE);
    for (row, (name, profile)) in bars.iter().enumerate() {
        let y = TOP + 30.0 * row as f64;
        label(&mut svg, left, y, name);
        bar(&mut svg, (left, y), scale, profile, &names);
    }
    svg + &legend + "</svg>"
}

/// The name of a bar; a name that is too long ends with dots.
pub fn label(svg: &mut String, left: f64, y: f64, name: &str) {
    let room = ((left - 20.0) / LETTER) as usize;
    let shown: String = match name.chars().count() > room {
        true => name
            .chars()
            .take(room.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => name.to_owned(),
    };
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\"><title>{}</title>{}</text>",
        left - 8.0,
        y + 15.0,
        escape(name),
        escape(&shown)
    );
}

fn bar(svg: &mut String, (left, y): (f64, f64), scale: f64, profile: &Profile, waits: &[&String]) {
    let whole = profile.values().fold(0.0, |sum, load| sum + load);
    let named = waits
        .iter()
        .map(|w| (w.as_str(), profile.get(*w).copied().unwrap_or(0.0)));
    let named: Vec<(&str, f64)> = named.collect();
    let rest = whole - named.iter().map(|(_, load)| load).sum::<f64>();
    let mut x = left;
    for (number, (wait, load)) in named.into_iter().chain([("(other)", rest)]).enumerate() {
        let width = load.max(0.0) * scale;
        if width > 0.0 {
            let _ = write!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"20\" fill=\"{}\">\
                 <title>{}: {load:.2}</title></rect>",
                color(number),
                escape(wait)
            );
        }
        x += width;
    }
    let _ = write!(
        svg,
        "<text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\">{whole:.2}</text>",
        x + 6.0,
        y + 15.0
    );
}

/// Begin of a picture with its title.
pub fn open(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\"><title>{0}</title>\
         <text class=\"title\" x=\"0\" y=\"16\">{0}</text>",
        escape(title)
    )
}

/// Names of the series from left to right in as many rows as necessary, and the
/// bottom of the picture.
fn legend<'a>(names: impl Iterator<Item = &'a str>, top: f64) -> (String, f64) {
    let mut svg = String::new();
    let (mut x, mut y) = (6.0, top);
    for (number, name) in names.enumerate() {
        let width = 30.0 + LETTER * name.chars().count() as f64;
        if x > 6.0 && x + width > WIDTH {
            (x, y) = (6.0, y + 20.0);
        }
        svg.push_str(&mark(number, x, y - 4.0, name));
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            x + 10.0,
            escape(name)
        );
        x += width;
    }
    (svg, y + 12.0)
}

/// Colour of a series.
pub fn color(number: usize) -> String {
    format!("var(--c{})", number % COLORS)
}

/// Whether the names are too long for one row.
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

/// The next number of the form 1, 2, 4, 5 or 8 × 10ⁿ.
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

/// A number in a few characters.
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
        let svg = lines("T", &["8".into()], &series);
        let places = svg.split("class=\"whisker\"").skip(1);
        let places = places.filter_map(|s| s.split("x1=\"").nth(1)?.split('"').next());
        assert_eq!(places.collect::<Vec<_>>(), ["252.5", "435.0", "617.5"]);
    }

    #[test]
    fn long_names_of_an_axis_stand_in_two_rows() {
        let heights = |names: [&str; 9]| {
            let svg = lines("T", &names.map(str::to_owned), &[]);
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
        let svg = lines("T", &["1".into(), "2".into(), "3".into()], &[series]);
        assert_eq!(svg.matches("class=\"whisker\"").count(), 2);
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b"));
    }

    #[test]
    fn names_of_series_stay_within_the_picture() {
        let names = ["LWLock:pg_stat_statements"; 7];
        let (svg, bottom) = legend(names.into_iter(), 100.0);
        let places = svg.split("<text x=\"").skip(1);
        let places = places.filter_map(|s| s.split('"').next()?.parse::<f64>().ok());
        let ends: Vec<f64> = places.map(|x| x + LETTER * 25.0).collect();
        assert_eq!(ends.len(), 7);
        assert!(ends.iter().all(|end| *end <= WIDTH), "{ends:?}");
        assert_eq!(bottom, 100.0 + 2.0 * 20.0 + 12.0);
    }

    #[test]
    fn bars_of_long_names_begin_within_the_picture_and_nothing_is_not_negative() {
        let name = "a question that is asked in very many words · SQL edition of them all";
        let svg = waits("T", &[(name.into(), Profile::new())]);
        assert!(svg.contains("…</text>") && svg.contains(&format!("<title>{name}</title>")));
        assert!(svg.contains(">0.00</text>"), "{svg}");
    }

    #[test]
    fn small_waits_are_drawn_together() {
        let profile: Profile = (1..=9).map(|n| (format!("w{n}"), f64::from(n))).collect();
        let svg = waits("T", &[("a".into(), profile)]);
        assert_eq!(svg.matches("<rect").count(), 8);
        assert!(svg.contains("(other): 3.00"));
    }
}
