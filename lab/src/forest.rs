//! Charts of ratios: one row for each variant at each point, with the interval
//! around its ratio. The axis is logarithmic, so 0.5 and 2 are equally far
//! from 1.

use super::plot::{LETTER, WIDTH, color, label, mark, picture, units};
use super::stats::Estimate;
use maud::{Markup, html};

const TOP: f64 = 40.0;
const ROW: f64 = 22.0;
/// Width of the room for the numbers at the right, in units of the view box.
const NUMBERS: f64 = 150.0;

/// A row: its name, the number of its variant, and the ratio.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name of the row.
    pub name: String,
    /// Number of the variant, for colour and shape.
    pub variant: usize,
    /// The ratio.
    pub ratio: Estimate,
}

/// The chart. With `margin` a dashed line stands at this ratio.
pub fn ratios(title: &str, rows: &[Row], margin: Option<f64>) -> Markup {
    let bottom = TOP + ROW * rows.len() as f64;
    let widest = rows.iter().map(|row| row.name.chars().count()).max();
    let left = (widest.unwrap_or(0) as f64 * LETTER + 20.0).min(WIDTH / 2.0);
    let scale = Scale::of(rows, margin, left);
    let drawing = html! {
        @for tick in scale.ticks() {
            @let x = scale.x(tick);
            (rule("grid", x, bottom))
            text class="soft" x=(units(x)) y=(units(bottom + 16.0)) text-anchor="middle" { (tick) }
        }
        (rule("one", scale.x(1.0), bottom))
        @if let Some(margin) = margin {
            (rule("margin", scale.x(margin), bottom))
        }
        @for (at, row) in rows.iter().enumerate() {
            (draw(row, TOP + ROW * at as f64, left, &scale))
        }
    };
    picture(title, bottom + 24.0, &drawing)
}

fn rule(class: &str, x: f64, bottom: f64) -> Markup {
    html! {
        line class=(class) x1=(units(x)) x2=(units(x)) y1=(TOP) y2=(units(bottom)) {}
    }
}

fn draw(row: &Row, top: f64, left: f64, scale: &Scale) -> Markup {
    let Estimate {
        median, low, high, ..
    } = row.ratio;
    let y = top + ROW / 2.0;
    html! {
        (label(left, top, &row.name))
        line class="whisker" stroke=(color(row.variant)) x1=(units(scale.x(low)))
            x2=(units(scale.x(high))) y1=(units(y)) y2=(units(y)) {}
        (mark(row.variant, scale.x(median), y, &row.name))
        text class="soft" x=(units(WIDTH - NUMBERS + 8.0)) y=(units(y + 4.0)) {
            (format!("{median:.3} ({low:.3}–{high:.3})"))
        }
    }
}

/// The logarithmic axis, from the least to the greatest end of an interval.
struct Scale {
    low: f64,
    high: f64,
    left: f64,
}

impl Scale {
    fn of(rows: &[Row], margin: Option<f64>, left: f64) -> Self {
        let ends = rows.iter().flat_map(|row| [row.ratio.low, row.ratio.high]);
        let ends = ends.chain(margin).chain([1.0]).filter(|end| *end > 0.0);
        let (low, high) = ends.fold((1.0_f64, 1.0_f64), |(low, high), end| {
            (low.min(end), high.max(end))
        });
        // A twentieth of the width stays free at each end.
        let free = ((high / low).ln() / 20.0).max(0.001).exp();
        Self {
            low: low / free,
            high: high * free,
            left,
        }
    }

    /// Position of a ratio.
    fn x(&self, ratio: f64) -> f64 {
        let share = (ratio.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.left + (WIDTH - NUMBERS - self.left) * share
    }

    /// Ratios on the axis: at most nine, equal steps if the axis is short,
    /// otherwise 1, 2 and 5 or powers of ten.
    fn ticks(&self) -> Vec<f64> {
        let within = |tick: &f64| (self.low..=self.high).contains(tick);
        if self.high / self.low < 4.0 {
            let steps = [1000, 500, 200, 100, 50, 20, 10, 5, 2, 1];
            let parts = steps.iter().map(|n| f64::from(*n));
            let fits = |parts: &f64| (self.high - self.low) * parts <= 9.0;
            let parts = parts.into_iter().find(fits).unwrap_or(1.0);
            let (first, last) = ((self.low * parts).ceil(), (self.high * parts).floor());
            let numbers = (first as i64..=last as i64).map(|n| n as f64 / parts);
            return numbers.filter(within).collect();
        }
        let factors: &[f64] = match self.high / self.low < 200.0 {
            true => &[1.0, 2.0, 5.0],
            false => &[1.0],
        };
        let powers = (-9..=9).map(|power| 10_f64.powi(power));
        let all = powers.flat_map(|power| factors.iter().map(move |f| f * power));
        all.filter(within).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(low: f64, high: f64) -> Row {
        Row {
            name: "w · a<b".into(),
            variant: 0,
            ratio: Estimate {
                median: (low * high).sqrt(),
                low,
                high,
                confidence: 0.97,
            },
        }
    }

    fn ticks(low: f64, high: f64) -> Vec<f64> {
        Scale::of(&[row(low, high)], None, 100.0).ticks()
    }

    #[test]
    fn an_axis_has_few_round_ratios() {
        assert_eq!(
            ticks(0.95, 1.03),
            [0.95, 0.96, 0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03]
        );
        assert_eq!(ticks(0.5, 1.5), [0.6, 0.8, 1.0, 1.2, 1.4]);
        assert_eq!(ticks(1.0, 60.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(ticks(0.9, 1_200.0), [1.0, 10.0, 100.0, 1_000.0]);
    }

    #[test]
    fn a_half_and_a_double_are_equally_far_from_one() {
        let scale = Scale::of(&[row(0.5, 2.0)], None, 100.0);
        let (half, one, double) = (scale.x(0.5), scale.x(1.0), scale.x(2.0));
        assert!(((one - half) - (double - one)).abs() < 1e-9);
        assert!(half > 100.0 && double < WIDTH - NUMBERS);
    }

    #[test]
    fn every_row_has_its_name_its_interval_and_its_numbers() {
        let svg = ratios("T", &[row(0.9, 1.1), row(1.2, 1.3)], Some(1.01)).0;
        assert_eq!(svg.matches("class=\"whisker\"").count(), 2);
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b"));
        assert!(svg.contains("0.995 (0.900–1.100)"), "{svg}");
        assert_eq!(svg.matches("class=\"one\"").count(), 1);
        assert_eq!(svg.matches("class=\"margin\"").count(), 1);
        assert_eq!(
            ratios("T", &[], None).0.matches("class=\"margin\"").count(),
            0
        );
    }
}
