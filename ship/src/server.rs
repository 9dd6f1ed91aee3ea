//! Readings of the server and its objects, a row per value. A new measurement
//! therefore needs no new column.

use crate::fault::Fault;
use crate::field::Names;
use crate::hours::{self, hour_of};
use crate::redact::Redaction;
use crate::table::{Column, Kind, Object};
use tacho_tape::Part;
use tacho_tape::format::schema::{Role, TableDef};

/// The columns of table `server`.
pub fn columns() -> Vec<Column> {
    vec![
        Column::new(10, "metric", Kind::Text),
        Column::new(11, "object", Kind::Text),
        Column::new(12, "time", Kind::Time),
        Column::new(13, "kind", Kind::Text),
        Column::new(14, "unit", Kind::Text),
        Column::new(15, "value", Kind::Number),
        Column::new(16, "elapsed_ms", Kind::Number),
    ]
}

/// Adds the readings of an hour in a part, metric by metric.
///
/// # Errors
/// A column is damaged.
pub fn write(
    part: &Part,
    hour: i64,
    redaction: &Redaction,
    object: &mut Object,
) -> Result<(), Fault> {
    let tables = part.schema().tables.iter();
    let measured = tables.filter(|table| table.columns.iter().any(|c| is_measured(c.role)));
    for table in measured {
        let range = hours::range(part, &table.name)?;
        let meets = range.is_some_and(|r| hour_of(r.0) <= hour && hour <= hour_of(r.1));
        if part.rows(&table.name) > 0 && meets {
            write_table(part, table, hour, redaction, object)?;
        }
    }
    Ok(())
}

fn is_measured(role: Role) -> bool {
    matches!(role, Role::Counter | Role::Gauge)
}

fn write_table(
    part: &Part,
    table: &TableDef,
    hour: i64,
    redaction: &Redaction,
    object: &mut Object,
) -> Result<(), Fault> {
    let name = &table.name;
    let times = part.ints(name, "time")?;
    let rows = (0..times.len()).filter(|row| hour_of(times[*row]) == hour);
    let rows: Vec<usize> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    let names = Names::read(part)?;
    let objects = part.ints(name, "object")?;
    let elapsed = table
        .column("elapsed_ms")
        .map(|_| part.ints(name, "elapsed_ms"));
    let elapsed = elapsed.transpose()?;
    let hidden = redaction.hides(name, "object");
    for column in table.columns.iter().filter(|c| is_measured(c.role)) {
        let values = part.ints(name, &column.name)?;
        let role = if column.role == Role::Counter {
            "counter"
        } else {
            "gauge"
        };
        for row in rows.iter().copied().filter(|row| values[*row] != 0) {
            let [metric, of, time, kind, unit, value, length] = &mut object.values[..] else {
                return Ok(());
            };
            let owner = names.get(objects[row]);
            let owner = owner
                .as_deref()
                .and_then(|owner| redaction.redacted_or_plain(hidden, owner));
            metric.text(Some(
                column.name.strip_suffix("_x100").unwrap_or(&column.name),
            ));
            of.text(owner.as_deref());
            time.number(Some(times[row].saturating_mul(1_000)));
            kind.text(Some(role));
            unit.text(Some(&column.target));
            value.number(Some(values[row] - 1));
            length.number(elapsed.as_ref().map(|elapsed| elapsed[row]));
            object.flush_full()?;
        }
    }
    Ok(())
}
