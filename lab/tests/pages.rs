//! `tools/check-pages.sh`: every page of figures names the commit that was
//! measured.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A repository with a page of results, a page about it, and a README.
struct Pages(tempfile::TempDir);

impl Pages {
    fn new() -> Self {
        let pages = Self(tempfile::tempdir().unwrap());
        for directory in ["bench/results", "docs/bench", "tape/src"] {
            fs::create_dir_all(pages.0.path().join(directory)).unwrap();
        }
        pages.git(&["init", "-q"]);
        pages.write("tape/src/lib.rs", "1");
        pages.write("docs/bench/a.md", "[figures](../../bench/results/a.md)\n");
        pages.commit("first");
        let measured = pages.head();
        pages.write(
            "bench/results/a.md",
            &format!("- date: x, commit {measured}\n\n| a |\n"),
        );
        let row = "| a day | [1 s](bench/results/a.md) | 2 s | `bench/a.sh` |\n";
        pages.write("README.md", row);
        pages
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.path().join(file), text).unwrap();
    }

    fn git(&self, words: &[&str]) -> String {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut git = Command::new("git");
        git.current_dir(self.0.path()).args(who).args(words);
        let output = git.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, subject: &str) {
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", subject]);
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "--short=7", "HEAD"])
    }

    /// Exit code, list and complaints of the check.
    fn check(&self) -> (i32, String, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/check-pages.sh");
        let mut check = Command::new(script);
        let check = check.arg("-l").env("PAGES_ROOT", self.0.path());
        let Output {
            status,
            stdout,
            stderr,
        } = check.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }
}

#[test]
fn every_page_and_row_has_its_commit_and_the_changes_since() {
    let pages = Pages::new();
    let commit = pages.head();
    pages.write("tape/src/lib.rs", "2");
    pages.commit("second");
    let (code, list, said) = pages.check();
    let names = list.lines().map(|line| line.split('\t').next().unwrap());
    let names: Vec<&str> = names.collect();
    let expected = ["bench/results/a.md", "docs/bench/a.md", "README.md: a day"];
    assert_eq!((code, names, said.as_str()), (0, expected.to_vec(), ""));
    let row = list.lines().last().unwrap();
    assert!(
        row.contains(&format!("\t{commit}\t")) && row.ends_with("\t1 since"),
        "{row}"
    );
}

#[test]
fn a_page_without_a_commit_fails_and_a_row_without_a_page() {
    let pages = Pages::new();
    pages.write("bench/results/a.md", "- date: x\n\n| commit 1234567 |\n");
    pages.write("docs/bench/a.md", "no figures\n");
    pages.write("README.md", "| a day | 1 s | 2 s | `bench/a.sh` |\n");
    let (code, _, said) = pages.check();
    assert_eq!(code, 1);
    assert_eq!(
        said,
        "bench/results/a.md: no commit before the first table; write \"commit HASH\" of the \
         measured tree\n\
         docs/bench/a.md: neither a commit nor a link to a page of bench/results\n\
         README.md: row \"a day\" links to no page of bench/results\n"
    );
}

#[test]
fn a_commit_of_another_history_fails() {
    let pages = Pages::new();
    pages.write("bench/results/a.md", "- commit 1234567\n");
    let (code, _, said) = pages.check();
    let expected = "bench/results/a.md: commit 1234567 is not in this history\n";
    assert_eq!((code, said.as_str()), (1, expected));
}

#[test]
fn figures_older_than_a_release_fail_only_if_that_release_changed_code() {
    let pages = Pages::new();
    pages.commit("figures");
    pages.git(&["tag", "v1"]);
    assert_eq!(pages.check().0, 0, "nothing changed before v1");
    let commit = pages.git(&["rev-parse", "--short=7", "HEAD^"]);
    pages.write("tape/src/lib.rs", "2");
    pages.commit("code");
    assert_eq!(pages.check().0, 0, "not released");
    pages.git(&["tag", "v2"]);
    let (code, _, said) = pages.check();
    let expected = format!(
        "bench/results/a.md: commit {commit} is older than v2, which changed extension/src tape/src\n"
    );
    assert_eq!((code, said), (1, expected));
}
