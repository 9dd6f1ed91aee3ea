//! A report, independent of its output: Markdown, or one self-contained HTML
//! page.

use maud::{Markup, PreEscaped, html as markup};
use std::fmt::Write;
use tacho_tape::query::plain_lines;

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
    Picture(Markup),
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Heading of each column, and true if the column holds numbers.
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

/// The report as Markdown.
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

/// The report as one HTML page.
pub fn html(title: &str, blocks: &[Block]) -> String {
    let page = markup! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(include_str!("report.css"))) }
            }
            body {
                main {
                    @for block in blocks { (html_block(block)) "\n" }
                }
            }
        }
    };
    // Escaped texts may still have control characters, which are removed here.
    plain_lines(&page.into_string()) + "\n"
}

fn html_block(block: &Block) -> Markup {
    markup! {
        @match block {
            Block::Heading(1, text) => { h1 { (text) } }
            Block::Heading(2, text) => { h2 { (text) } }
            Block::Heading(_, text) => { h3 { (text) } }
            Block::Text(text) => { p { (text) } }
            Block::List(items) => { ul { @for item in items { li { (item) } } } }
            Block::Table(table) => { (html_table(table)) }
            Block::Picture(svg) => { figure { (svg) } }
        }
    }
}

fn html_table(table: &Table) -> Markup {
    let class = |number: bool| number.then_some("number");
    markup! {
        div class="wide" {
            table {
                thead {
                    tr { @for (name, number) in &table.head { th class=[class(*number)] { (name) } } }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (cell, (_, number)) in row.iter().zip(&table.head) {
                                td class=[class(*number)] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
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

    #[test]
    fn control_characters_do_not_reach_the_page() {
        let page = html("T", &[Block::Text("a\u{1b}[31mb\u{202e}c".into())]);
        assert!(page.contains("<p>a"), "{page}");
        assert!(!page.contains(['\u{1b}', '\u{202e}']), "{page}");
    }
}
