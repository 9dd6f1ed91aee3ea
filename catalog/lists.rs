//! Reads `samples.h`, `counters.h` and `derived.h` for the build of `tape/`, which generates code from them. No
//! program reads them when it runs.

/// A table.
pub struct Table<'a> {
    pub id: u8,
    pub name: &'a str,
}

/// A column of a table.
pub struct Column<'a> {
    pub table: &'a str,
    pub id: u8,
    pub name: String,
    /// The next three are words as `samples.h` writes them. `ty` is `UINT`, `REF` …; `target` an
    /// enumeration, table or unit; `role` is `DIM`, `COUNTER` …
    pub ty: &'a str,
    pub target: &'a str,
    pub role: &'a str,
    /// One line of documentation.
    pub about: &'a str,
    /// True if the column is made from a counter of `counters.h`.
    pub is_counter: bool,
}

/// A label of an enumeration.
pub struct Label<'a> {
    pub enumeration: &'a str,
    pub value: i64,
    pub label: &'a str,
}

/// The declarations of the lists, in order.
#[derive(Default)]
pub struct Lists<'a> {
    pub tables: Vec<Table<'a>>,
    pub columns: Vec<Column<'a>>,
    pub labels: Vec<Label<'a>>,
    /// Name and documentation of each derived dimension.
    pub derived: Vec<(&'a str, &'a str)>,
}

/// The table that has the counters as columns.
const STATS: &str = "statement_stats";
/// Buckets of a histogram; each is a column.
const HISTOGRAM_BUCKETS: u8 = 24;
/// Buckets that divide its last bucket.
const LONG_BUCKETS: u8 = 12;

impl<'a> Lists<'a> {
    /// Reads the text of `samples.h`, followed by the texts of `counters.h` and `derived.h`.
    ///
    /// # Errors
    /// A line that cannot be parsed, or whose id is not greater than the id before it
    /// in its list. Schemas of several versions are merged in the order of ids, so
    /// this must be the order of lines.
    pub fn read(text: &'a str) -> Result<Self, String> {
        let mut lists = Lists::default();
        for line in text.lines() {
            let Some((kind, rest)) = line.split_once('(') else {
                continue;
            };
            let done = match kind {
                "TABLE" => lists.table(rest),
                "COLUMN" => lists.column(rest),
                "COUNTER" => lists.counter(rest),
                "LABEL" => lists.label(rest),
                "DERIVED" => lists.derived(rest),
                _ => continue,
            };
            done.ok_or_else(|| format!("invalid catalog line: {line}"))?;
        }
        Ok(lists)
    }

    fn table(&mut self, rest: &'a str) -> Option<()> {
        let ([id, name], _) = fields(rest)?;
        let id = id.parse().ok()?;
        let last = self.tables.last();
        last.is_none_or(|table| table.id < id).then_some(())?;
        self.tables.push(Table { id, name });
        Some(())
    }

    fn column(&mut self, rest: &'a str) -> Option<()> {
        let ([table, id, name, ty, target, role], about) = fields(rest)?;
        self.append(Column {
            table,
            id: id.parse().ok()?,
            name: name.to_string(),
            ty,
            target: if target == "none" { "" } else { target },
            role,
            about,
            is_counter: false,
        })
    }

    /// MIN and MAX are not stored: a difference of extremes means nothing.
    fn counter(&mut self, rest: &'a str) -> Option<()> {
        let ([id, name, _, unit, kind, _, _], about) = fields(rest)?;
        let first: u8 = id.parse().ok()?;
        let buckets = |n: u8| (0..n).map(|b| format!("{name}_{b}")).collect();
        let names = match kind {
            "MIN" | "MAX" => Vec::new(),
            "HISTOGRAM" => buckets(HISTOGRAM_BUCKETS),
            "LONG" => buckets(LONG_BUCKETS),
            _ => vec![name.to_string()],
        };
        (first..=u8::MAX).zip(names).try_for_each(|(id, name)| {
            self.append(Column {
                table: STATS,
                id,
                name,
                ty: if (kind, unit) == ("SUM", "ms") {
                    "SPAN"
                } else {
                    "UINT"
                },
                target: "",
                role: "NONE",
                about,
                is_counter: true,
            })
        })
    }

    fn label(&mut self, rest: &'a str) -> Option<()> {
        let ([enumeration, value], label) = fields(rest)?;
        let value = value.parse().ok()?;
        let mut own = self.labels.iter().rev();
        let last = own.find(|label| label.enumeration == enumeration);
        last.is_none_or(|label| label.value < value).then_some(())?;
        self.labels.push(Label {
            enumeration,
            value,
            label,
        });
        Some(())
    }

    fn derived(&mut self, rest: &'a str) -> Option<()> {
        let ([name], about) = fields(rest)?;
        self.derived.push((name, about));
        Some(())
    }

    /// Adds a column after the other columns of an existing table.
    fn append(&mut self, column: Column<'a>) -> Option<()> {
        self.tables
            .iter()
            .find(|table| table.name == column.table)?;
        let mut own = self.columns.iter().rev();
        let last = own.find(|other| other.table == column.table);
        last.is_none_or(|last| last.id < column.id).then_some(())?;
        self.columns.push(column);
        Some(())
    }
}

/// Splits a line into `N` words and the text in quotes at its end.
fn fields<const N: usize>(rest: &str) -> Option<([&str; N], &str)> {
    let (words, text) = rest.split_once('"')?;
    let words: Vec<&str> = words.trim_end().strip_suffix(',')?.split(',').collect();
    let words = words.into_iter().map(str::trim_start).collect::<Vec<_>>();
    Some((words.try_into().ok()?, text.strip_suffix("\")")?))
}
