//! The pages that people read: each is in the table of contents, no link leads nowhere, each command of the README and of the
//! playbooks parses.

use crate::ratchets::{root, sources};
use marusa::cmd::commands;
use std::fs;
use std::path::{Path, PathBuf};

pub fn pages() -> Vec<PathBuf> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("docs").flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => walk(&path, found),
                false if path.extension().is_some_and(|ending| ending == "md") => found.push(path),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("docs"), &mut found);
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "SUPPORT.md"];
    found.extend(others.map(|name| root().join(name)));
    found
}

/// What stands in the round brackets of links, outside of code.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let starts = prose.flat_map(|part| part.split("](").skip(1));
    starts.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link).collect()
}

/// As GitHub and mdbook make it of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[test]
fn no_link_leads_nowhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (path, part) = link.split_once('#').unwrap_or((link, ""));
            let to =
                if path.is_empty() { page.clone() } else { page.parent().expect("a directory").join(path) };
            let text = fs::read_to_string(&to).unwrap_or_default();
            let has_part = || text.lines().any(|line| line.starts_with('#') && anchor(line) == part);
            if !to.exists() || !part.is_empty() && !has_part() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let docs = root().join("docs");
    let contents = fs::read_to_string(docs.join("SUMMARY.md")).expect("the contents");
    let listed = links(&contents);
    let missing: Vec<String> = pages()
        .iter()
        .filter_map(|page| Some(page.strip_prefix(&docs).ok()?.display().to_string()))
        .filter(|page| page != "SUMMARY.md" && !listed.contains(&page.as_str()))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

/// Lines of code and code within lines that begin with `marusa` or `sudo marusa`.
fn written_commands(text: &str) -> Vec<String> {
    let spans = text.split('`').skip(1).step_by(2).chain(text.lines());
    let words = |span: &str| {
        let span = span.trim().trim_start_matches("sudo ");
        let is_command = span.starts_with("marusa ") && !span.contains('\n');
        // What a column of an overview says, and where output goes.
        let ends = [" > ", "  "].iter().filter_map(|end| span.find(end)).min().unwrap_or(span.len());
        is_command.then(|| span[..ends].replace("NEW_PID", "1").replace("PID", "1"))
    };
    spans.filter_map(words).collect()
}

#[test]
fn commands_of_the_readme_and_the_playbooks_parse() {
    let is_walked = |page: &&PathBuf| {
        page.parent().is_some_and(|directory| directory.ends_with("playbooks"))
            || page.ends_with("docs/start.md")
            || page.ends_with("README.md")
    };
    let (mut found, mut wrong) = (0, Vec::new());
    for page in pages().iter().filter(is_walked) {
        let text = fs::read_to_string(page).expect("a page");
        // Prose names commands, too: "marusa map: ...".
        for line in written_commands(&text).iter().filter(|line| !line.contains(':') && !line.contains('…'))
        {
            let words = shlex::split(line).expect(line);
            if words.len() == 2 && commands::command().find_subcommand(&words[1]).is_some() {
                continue;
            }
            found += 1;
            if let Err(error) = commands::command().try_get_matches_from(&words) {
                wrong.push(format!("{}: {line}: {error}", page.display()));
            }
        }
    }
    assert!(found > 60, "{found} commands");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The column names of a table's first line, which are in capitals and two spaces apart.
pub fn columns(line: &str) -> Option<Vec<&str>> {
    let columns: Vec<&str> = line.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect();
    let is_name = |column: &&str| {
        column.starts_with(char::is_alphabetic)
            && !column.chars().any(|letter| letter.is_lowercase() || letter == '-')
    };
    (columns.len() >= 3 && columns.iter().all(is_name)).then_some(columns)
}

#[test]
fn tables_in_the_pages_have_the_columns_that_are_printed_today() {
    let sources = sources();
    let is_printed = |column: &str| {
        let literals = [format!("\"{column}\""), format!("\">{column}\"")];
        sources.iter().any(|(_, text)| literals.iter().any(|literal| text.contains(literal)))
    };
    let (mut found, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for line in text.split("```").skip(1).step_by(2).flat_map(str::lines) {
            for column in columns(line).unwrap_or_default() {
                found += 1;
                if !is_printed(column) {
                    wrong.push(format!("{}: {column}", page.display()));
                }
            }
        }
    }
    assert!(found > 40, "{found} columns");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
