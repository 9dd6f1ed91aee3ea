//! A report, independent of its output: Markdown, or one self-contained HTML
//! page.

use std::fmt::Write;
use tacho_source::escape;

/// A piece of a report.
#[derive(Debug, Clone)]
pub enum Block {
    /// A heading of this level, from 1.
    Heading(usize, String),
    /// A paragraph.
    Text(String),
    /// A list.
    List(Vec<String>),
    /// A table.
    Table(Table),
    /// A picture (SVG) with a description in words; in HTML only.
    Picture(String),
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Head, and whether the column holds numbers.
    pub head: Vec<(String, bool)>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with columns of words and of numbers.
    pub fn new(words: &[&str], numbers: &[&str]) -> Self {
        let named = |names: &[&str], number| -> Vec<(String, bool)> {
            names.iter().map(|n| ((*n).to_owned(), number)).collect()
        };
        let mut head = named(words, false);
        head.extend(named(numbers, true));
        Self {
            head,
            rows: Vec::new(),
        }
    }
}

/// As Markdown.
pub fn markdown(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        let _ = match block {
            Block::Heading(level, text) => writeln!(out, "{} {text}\n", "#".repeat(*level)),
            Block::Text(text) => writeln!(out, "{text}\n"),
            Block::List(items) => items
                .iter()
                .try_for_each(|item| writeln!(out, "- {item}"))
                .and_then(|()| writeln!(out)),
            Block::Table(table) => markdown_table(&mut out, table),
            Block::Picture(_) => Ok(()),
        };
    }
    out.trim_end().to_owned() + "\n"
}

fn markdown_table(out: &mut String, table: &Table) -> std::fmt::Result {
    let escape = |text: &str| text.replace('|', "\\|");
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    writeln!(
        out,
        "{}",
        line(table.head.iter().map(|(n, _)| escape(n)).collect())
    )?;
    let rule = |number: &bool| if *number { "--:" } else { "---" }.to_owned();
    writeln!(
        out,
        "{}",
        line(table.head.iter().map(|(_, n)| rule(n)).collect())
    )?;
    for row in &table.rows {
        writeln!(out, "{}", line(row.iter().map(|c| escape(c)).collect()))?;
    }
    writeln!(out)
}

/// As one HTML page.
pub fn html(title: &str, blocks: &[Block]) -> String {
    let mut body = String::new();
    for block in blocks {
        let _ = match block {
            Block::Heading(level, text) => writeln!(body, "<h{level}>{}</h{level}>", escape(text)),
            Block::Text(text) => writeln!(body, "<p>{}</p>", escape(text)),
            Block::List(items) => {
                let items: String = items
                    .iter()
                    .map(|i| format!("<li>{}</li>", escape(i)))
                    .collect();
                writeln!(body, "<ul>{items}</ul>")
            }
            Block::Table(table) => writeln!(body, "{}", html_table(table)),
            Block::Picture(svg) => writeln!(body, "<figure>{svg}</figure>"),
        };
    }
    let style = include_str!("report.css");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

fn html_table(table: &Table) -> String {
    let class = |number: bool| if number { " class=\"number\"" } else { "" };
    let mut out = "<div class=\"wide\"><table><thead><tr>".to_owned();
    for (name, number) in &table.head {
        let _ = write!(out, "<th{}>{}</th>", class(*number), escape(name));
    }
    out.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        out.push_str("<tr>");
        for (cell, (_, number)) in row.iter().zip(&table.head) {
            let _ = write!(out, "<td{}>{}</td>", class(*number), escape(cell));
        }
        out.push_str("</tr>");
    }
    out + "</tbody></table></div>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_document_is_printed_in_two_ways() {
        let mut table = Table::new(&["name"], &["tps"]);
        table.rows.push(vec!["a|b <c>".into(), "1".into()]);
        let blocks = [Block::Heading(1, "T".into()), Block::Table(table)];
        assert_eq!(
            markdown(&blocks),
            "# T\n\n| name | tps |\n| --- | --: |\n| a\\|b <c> | 1 |\n"
        );
        let page = html("T", &blocks);
        assert!(page.contains("<td>a|b &lt;c&gt;</td><td class=\"number\">1</td>"));
        assert!(!page.contains("<script"));
    }
}
