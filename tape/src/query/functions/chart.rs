//! `chart`: stacked load as text, one line for each bucket, newest last. The first row is the
//! legend. Gaps are hatched; an idle bucket is a thin line.

use super::common_columns::{Ranked, numeric};
use super::timeline::{Lines, Series, check_width, for_each_bucket};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::pass::read::Scanned;
use crate::query::rows::parse::{Window, limit, samples};
use crate::query::rows::ticks::Coverage;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::number::Ratio;
use crate::query::value::plain::plain_text;
use crate::query::value::vocabulary as pg;
use std::borrow::Cow;
use std::collections::BTreeSet;

row! {
    /// A row of `chart`.
    ChartRow of "chart": FIELDS {
        bucket_start: Time,
        aas: Numeric,
        detail: Text,
        chart: Text,
    }
}

request! {
    /// Stacked load as text
    Chart of chart: ChartRow {
        node,
        since,
        until,
        bucket,
        by,
        n("Keys with a bar of their own", Some("3")),
        width,
        color,
        ascii,
        scope,
        by_leader,
        filters,
    }
}

const DEFAULT_N: i64 = 3;
const DEFAULT_WIDTH: i64 = 40;
const WIDTHS: (i64, i64) = (1, 500);

/// Characters of a chart.
struct Glyphs {
    ranks: &'static [char],
    other: char,
    gap: char,
    idle: char,
    vcpus: char,
}

const BLOCKS: Glyphs = Glyphs {
    ranks: &['█', '▓', '░', '▒'],
    other: '·',
    gap: '/',
    idle: '─',
    vcpus: '|',
};

const ASCII: Glyphs = Glyphs {
    ranks: &['#', '=', '+', 'o', '*', '%', '@', 'x'],
    other: '.',
    gap: '/',
    idle: '-',
    vcpus: '|',
};

const RESET: &str = "\x1b[0m";

/// Character and colour of a key.
struct Style {
    glyph: char,
    color: Option<(u8, u8, u8)>,
}

fn answer(asked: &Chart, run: Run, emit: Emit<ChartRow>) -> QueryResult<()> {
    let lines = Lines {
        samples: samples!(asked),
        window: Window::of(run.context, asked.since, asked.until)?,
        bucket: asked.bucket,
        by: Some(asked.by.as_deref().unwrap_or(pg::WAIT_TYPE)),
    };
    let n = limit(Some(asked.n.unwrap_or(DEFAULT_N)))?;
    let width = asked.width.unwrap_or(DEFAULT_WIDTH);
    if width < WIDTHS.0 || width > WIDTHS.1 {
        return Err(QueryError::invalid(format!(
            "width must be between {} and {}",
            WIDTHS.0, WIDTHS.1
        ))
        .detail(format!("The value is {width}.")));
    }
    let (scanned, lines) = lines.read(run, |ranked| choose(ranked, n))?;
    check_width(asked.bucket, &scanned)?;
    let chart = Picture::new(asked, &scanned, &lines, width as usize);
    emit(chart.legend())?;
    for_each_bucket(&scanned, |bucket, covered, _| {
        emit(chart.row(bucket, covered))
    })
}

/// Gives a bar to the `n` largest keys and to each key that is the largest of some bucket.
fn choose(ranked: Ranked, n: usize) -> (Ranked, Ranked) {
    let mut best: std::collections::HashMap<u32, (i64, usize)> = std::collections::HashMap::new();
    for (rank, (_, cells)) in ranked.iter().enumerate() {
        for cell in &cells.rows {
            let entry = best.entry(cell.bucket).or_insert((cell.sum_ms, rank));
            if cell.sum_ms > entry.0 {
                *entry = (cell.sum_ms, rank);
            }
        }
    }
    let leaders: BTreeSet<usize> = best.values().map(|b| b.1).collect();
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    for (rank, line) in ranked.into_iter().enumerate() {
        if rank < n || leaders.contains(&rank) {
            own.push(line);
        } else {
            rest.push(line);
        }
    }
    (own, rest)
}

struct Picture<'a> {
    scanned: &'a Scanned,
    lines: &'a [Series],
    styles: Vec<Style>,
    glyphs: &'static Glyphs,
    width: usize,
    color: bool,
    /// AAS of a full bar.
    scale: Ratio,
    vcpus: Option<Ratio>,
}

impl<'a> Picture<'a> {
    fn new(asked: &Chart, scanned: &'a Scanned, lines: &'a [Series], width: usize) -> Self {
        let glyphs = if asked.ascii { &ASCII } else { &BLOCKS };
        let mut chart = Picture {
            scanned,
            lines,
            styles: styles(lines, glyphs),
            glyphs,
            width,
            color: asked.color,
            scale: Ratio::ZERO,
            vcpus: scanned.observed.total().vcpus(),
        };
        for (bucket, covered) in scanned.observed.buckets() {
            chart.scale = chart.scale.max(chart.load(*bucket as usize, covered));
        }
        chart
    }

    /// Sum of the weights of each line in a bucket, in ms.
    fn sums(&self, bucket: usize) -> impl Iterator<Item = i64> {
        let cells = self
            .lines
            .iter()
            .map(move |l| l.cells.bucket(bucket as u32));
        cells.map(|cell| cell.map_or(0, |c| c.sum_ms))
    }

    fn load(&self, bucket: usize, covered: &Coverage) -> Ratio {
        let sum: i64 = self.sums(bucket).sum();
        Ratio::new(sum.into(), covered.observed_ms.into()).unwrap_or(Ratio::ZERO)
    }

    fn legend(&self) -> ChartRow {
        let mut words: Vec<String> = Vec::new();
        for (line, style) in self.lines.iter().zip(&self.styles) {
            words.push(format!("{} {}", self.paint(style, 1), name(line)));
        }
        if let Some(vcpus) = self.vcpus {
            words.push(format!("{} {} vCPUs", self.glyphs.vcpus, short(vcpus)));
        }
        let detail = format!("full width = {} AAS", short(self.scale));
        ChartRow {
            detail: Some(detail.into()),
            chart: Some(words.join("  ").into()),
            ..ChartRow::default()
        }
    }

    fn row(&self, bucket: usize, covered: &Coverage) -> ChartRow {
        let start = Some(self.scanned.buckets.start(bucket));
        let full = |glyph: char| Some(glyph.to_string().repeat(self.width).into());
        if covered.observed_ms == 0 {
            return ChartRow {
                bucket_start: start,
                aas: None,
                detail: Some("not observed".into()),
                chart: full(self.glyphs.gap),
            };
        }
        let load = self.load(bucket, covered);
        let is_idle = load == Ratio::ZERO;
        let detail = || self.detail(bucket, covered).into();
        ChartRow {
            bucket_start: start,
            aas: numeric(Some(load)),
            detail: Some(if is_idle { "idle".into() } else { detail() }),
            chart: match is_idle {
                true => full(self.glyphs.idle),
                false => Some(self.bar(bucket, covered).into()),
            },
        }
    }

    /// Writes the AAS of each line that has load in the bucket: `Lock=1.25 IO=0.50`.
    fn detail(&self, bucket: usize, covered: &Coverage) -> String {
        let parts = self.lines.iter().zip(self.sums(bucket));
        let detail = parts.filter(|(_, sum)| *sum > 0).map(|(line, sum)| {
            let aas = Ratio::new(sum.into(), covered.observed_ms.into());
            format!("{}={}", name(line), short(aas.unwrap_or(Ratio::ZERO)))
        });
        detail.collect::<Vec<String>>().join(" ")
    }

    /// The bar of a bucket. Each boundary is rounded, so that lengths add up.
    fn bar(&self, bucket: usize, covered: &Coverage) -> String {
        let (mut bar, mut drawn, mut sum) = (String::new(), 0, 0);
        for (style, part) in self.styles.iter().zip(self.sums(bucket)) {
            sum += part;
            let end = self.position(Ratio::new(sum.into(), covered.observed_ms.into()));
            if end > drawn {
                bar.push_str(&self.paint(style, end - drawn));
                drawn = end;
            }
        }
        if let Some(mark) = self.vcpus.filter(|v| *v <= self.scale) {
            let mark = self.position(Some(mark));
            if mark > drawn {
                bar.push_str(&" ".repeat(mark - drawn - 1));
                bar.push(self.glyphs.vcpus);
            }
        }
        bar
    }

    fn position(&self, load: Option<Ratio>) -> usize {
        let load = load.unwrap_or(Ratio::ZERO).round4();
        let full = self.scale.round4().max(1);
        let position = (2 * load * self.width as i128 + full) / (2 * full);
        (position as usize).min(self.width)
    }

    fn paint(&self, style: &Style, count: usize) -> String {
        let text = style.glyph.to_string().repeat(count);
        match style.color.filter(|_| self.color) {
            Some((r, g, b)) => format!("\x1b[38;2;{r:03};{g:03};{b:03}m{text}{RESET}"),
            None => text,
        }
    }
}

fn styles(lines: &[Series], glyphs: &Glyphs) -> Vec<Style> {
    let mut styles = Vec::new();
    for (rank, line) in lines.iter().enumerate() {
        let other = !line.sessions;
        let last = glyphs.ranks.len() - 1;
        styles.push(Style {
            glyph: if other {
                glyphs.other
            } else {
                glyphs.ranks[rank.min(last)]
            },
            color: Some(pg::color(match &line.key {
                Some(key) if !other => key,
                _ => "",
            })),
        });
    }
    styles
}

/// The key as text. The only control sequences in a chart are its own colours.
fn name(line: &Series) -> Cow<'_, str> {
    match &line.key {
        Some(text) => plain_text(text),
        None => Cow::Borrowed("(null)"),
    }
}

/// The number with two decimals.
fn short(ratio: Ratio) -> String {
    let hundredths = (ratio.round4() + 50) / 100;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
