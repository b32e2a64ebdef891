//! `marusa man`: the manual, made of the one definition of the commands, so that it cannot say anything else than `--help`.

use super::{Failure, commands, examples};
use crate::os::output_file;
use crate::os::terminal::raw_stdout;
use clap::Command;
use clap_mangen::Man;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// The command whose page is wanted: "map", "pages plan"; without it the page of all
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    command: Vec<String>,
    /// Write every page into this directory, as marusa.1, marusa-map.1, marusa-pages-plan.1
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub fn run(args: &ManArgs) -> anyhow::Result<u8> {
    let mut root = commands::command();
    root.build();
    match &args.output {
        Some(directory) => {
            std::fs::create_dir_all(directory).map_err(|error| Failure::unwritable(directory, error))?;
            all(&root, &[], directory)?;
        }
        None => {
            let mut out = BufWriter::new(raw_stdout());
            out.write_all(&page(find(&root, &args.command)?, &args.command)?)?;
            out.flush()?;
        }
    }
    Ok(0)
}

fn name_of(words: &[String]) -> String {
    std::iter::once("marusa").chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join("-")
}

fn find<'a>(root: &'a Command, words: &[String]) -> anyhow::Result<&'a Command> {
    let mut at = root;
    for word in words {
        at = at.find_subcommand(word).ok_or_else(|| {
            let names: Vec<&str> = at.get_subcommands().map(Command::get_name).collect();
            Failure::usage(format!(
                "'{word}' is not a command of {}; these are: {}",
                at.get_name(),
                names.join(", ")
            ))
        })?;
    }
    Ok(at)
}

/// A manual is readable for all users.
const MODE: u32 = 0o644;

/// Pages of the commands that have pages of their own too.
fn all(command: &Command, words: &[String], directory: &Path) -> anyhow::Result<()> {
    let path = directory.join(format!("{}.1", name_of(words)));
    output_file::write(&path, MODE, &page(command, words)?)
        .map_err(|error| Failure::unwritable(&path, error))?;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        all(sub, &[words, &[sub.get_name().to_string()]].concat(), directory)?;
    }
    Ok(())
}

fn page(command: &Command, words: &[String]) -> std::io::Result<Vec<u8>> {
    let name = name_of(words);
    let version = concat!("marusa ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).title(name.to_uppercase()).source(version).manual("Marusa");
    let mut bytes = Vec::new();
    man.render_title(&mut bytes)?;
    man.render_name_section(&mut bytes)?;
    man.render_synopsis_section(&mut bytes)?;
    man.render_description_section(&mut bytes)?;
    man.render_options_section(&mut bytes)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut bytes)?;
    }
    let examples = match words {
        [] => examples::FIRST,
        words => examples::text(&words.join(" ")).unwrap_or_default(),
    };
    bytes.extend(section("EXAMPLES", examples.trim_start_matches("Examples:\n")).bytes());
    bytes.extend(section("EXIT STATUS", examples::EXIT_STATUS).bytes());
    if !words.is_empty() {
        bytes.extend(b".SH SEE ALSO\n\\fBmarusa\\fR(1)\n");
    }
    Ok(bytes)
}

/// Lines as they are: what acts in roff (a backslash, a hyphen that may be broken at, a dot at the start) does not.
fn section(title: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let line =
        |line: &str| format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq"));
    let lines: String = text.lines().map(line).collect();
    format!(".SH \"{title}\"\n.nf\n{lines}.fi\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options_and_examples() {
        let mut root = commands::command();
        root.build();
        let words = ["map".to_string()];
        let text = String::from_utf8(page(find(&root, &words).expect("there"), &words).expect("made"))
            .expect("UTF-8");
        assert!(text.contains("page\\-size") || text.contains("page-size"), "{text}");
        for heading in
            [".TH MARUSA-MAP 1", ".SH \"EXAMPLES\"", "marusa map 4711", ".SH \"EXIT STATUS\"", ".SH SEE ALSO"]
        {
            assert!(text.contains(heading), "{heading}: {text}");
        }
        assert!(find(&root, &["nothing".to_string()]).is_err());
        let buffers = ["bench".to_string(), "direct-buffers".to_string()];
        let text = page(find(&root, &buffers).expect("there"), &buffers).expect("made");
        assert!(
            String::from_utf8_lossy(&text).contains("direct\\-buffers \\-\\-page\\-aligned"),
            "its own examples"
        );
        let plan = ["pages".to_string(), "plan".to_string()];
        assert!(find(&root, &plan).is_ok(), "the options of groups are put together too");
    }
}
