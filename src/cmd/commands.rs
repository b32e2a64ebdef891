//! The one definition of the commands: the program, its help, the man pages and the completions of shells are made of it.

use super::{examples, list};
use crate::base::{limits, redact};
use crate::cmd;
use crate::os::terminal::{self, Colours, raw_stdout, stderr, stdout};
use crate::os::{budget, file_mode, output_file};
use crate::show::{paint, width};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand, value_parser};
use std::io::Write;

/// Adds the options of a command, or its own commands.
macro_rules! augment {
    ($args:ty) => {
        <$args as Args>::augment_args
    };
    ($args:ty, group) => {
        <$args as Subcommand>::augment_subcommands
    };
}

/// One line a command: its name, which is that of its module, its arguments, and what it does. The options of a command are only
/// put together when it is asked for: those of all take a millisecond, a twentieth of a `map`.
macro_rules! commands {
    ($($name:ident $args:ident $($group:ident)?: $about:literal;)*) => {
        pub fn command() -> Command {
            let command = Command::new("marusa")
                .version(env!("CARGO_PKG_VERSION"))
                .about("Accounts for every byte of a running JVM, from outside")
                .after_help(examples::of_all())
                .max_term_width(100)
                .subcommand_required(true)
                .arg_required_else_help(true);
            Common::augment_args(command)
                $(.subcommand(Command::new(stringify!($name)).about($about).defer(|command| {
                    let command = augment!(cmd::$name::$args $(, $group)?)(command);
                    let command = command.about($about).after_help(examples::of(stringify!($name)));
                    let is_group = command.has_subcommands();
                    let command = command.mut_subcommands(|sub| {
                        let examples = examples::of(&format!("{} {}", stringify!($name), sub.get_name()));
                        sub.after_help(examples)
                    });
                    command.subcommand_required(is_group).arg_required_else_help(is_group)
                })))*
        }

        pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
            apply(&Common::from_arg_matches(matches)?);
            match matches.subcommand() {
                $(Some((name, matches)) if name == stringify!($name) => {
                    let args = cmd::$name::$args::from_arg_matches(matches);
                    match args {
                        Ok(args) => {
                            budget::set_limits(limits::of_command(stringify!($name)));
                            cmd::$name::run(&args)
                        }
                        Err(error) => Ok(answer(&error.format(&mut command()))),
                    }
                })*
                _ => unreachable!("clap knows no other command"),
            }
        }
    };
}

/// Prints clap's answer instead of a command: help, in its colours, or the error in the arguments, which are escaped. Returns the
/// exit status.
pub fn answer(said: &clap::Error) -> u8 {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion, MissingRequiredArgument};
    let text = said.render();
    // A failed write has no reader.
    let _ = match (said.use_stderr(), said.kind()) {
        (true, _) => stderr().write_all(text.to_string().as_bytes()),
        (false, DisplayHelp | DisplayVersion) if stdout().has_colours() => {
            raw_stdout().write_all(text.ansi().to_string().as_bytes())
        }
        (false, _) => stdout().write_all(text.to_string().as_bytes()),
    };
    if said.kind() == MissingRequiredArgument && text.to_string().contains("TARGET") {
        list::choices();
    }
    said.exit_code().try_into().unwrap_or(2)
}

const PRIVACY: &str = "Privacy";
const OUTPUT: &str = "Output";

// The options that every command takes. A doc comment would be what `marusa --help` says of itself.
#[derive(clap::Args)]
#[group(skip)]
struct Common {
    /// Show the values of arguments in output and files: they may contain passwords
    #[arg(long, global = true, help_heading = PRIVACY)]
    show_arguments: bool,
    /// Mode of written files, in octal [default: 0600, whatever the umask]
    #[arg(long, global = true, value_name = "MODE", value_parser = file_mode::parse, help_heading = PRIVACY)]
    file_mode: Option<u32>,
    /// Write over a file that exists
    #[arg(long, global = true, help_heading = OUTPUT)]
    force: bool,
    /// Columns of tables, from 40 to 100 [default: COLUMNS, the terminal, or 100]
    #[arg(
        long, global = true, value_name = "COLUMNS", value_parser = value_parser!(u16).range(1..), help_heading = OUTPUT
    )]
    width: Option<u16>,
    /// Colours: auto is on a terminal, unless NO_COLOR is set or TERM is dumb; always also for less -R
    #[arg(
        long, global = true, value_name = "WHEN", value_parser = ["auto", "always", "never"], help_heading = OUTPUT
    )]
    color: Option<String>,
}

fn apply(common: &Common) {
    if common.show_arguments {
        redact::show_arguments();
    }
    common.file_mode.into_iter().for_each(file_mode::set);
    if common.force {
        output_file::overwrite();
    }
    common.width.into_iter().for_each(|columns| width::set(columns.into()));
    terminal::choose_colours(colours_of(common.color.as_deref()));
    let out = stdout();
    paint::set(out.has_colours(), out.is_terminal());
}

fn colours_of(word: Option<&str>) -> Colours {
    match word {
        Some("always") => Colours::Always,
        Some("never") => Colours::Never,
        _ => Colours::Auto,
    }
}

/// Applies `--color` to help, for which clap returns no matches.
pub fn choose_colours_of_help(words: impl Iterator<Item = String>) {
    terminal::choose_colours(colours_of(colour_word(words).as_deref()));
}

/// The last value of `--color` before the words of another program.
fn colour_word(words: impl Iterator<Item = String>) -> Option<String> {
    let mut words = words.take_while(|word| word != "--");
    let mut last = None;
    while let Some(word) = words.next() {
        match word.strip_prefix("--color") {
            Some("") => last = words.next(),
            Some(value) => last = value.strip_prefix('=').map(str::to_string).or(last),
            None => {}
        }
    }
    last
}

commands! {
    why WhyArgs:
        "What fills the memory of a JVM: what grows and what is large, each with its owner and the next command; start here";
    list ListArgs: "The JVMs of this host";
    map MapArgs: "The account: the owner of each byte, and whether it is resident";
    container ContainerArgs:
        "What fills a container: processes, page cache, tmpfs, kernel memory and a remainder, which sum to the cgroup's figure";
    heap HeapArgs: "The objects of the Java heap by class, counted from outside: no stop, no collection, no attach";
    top TopArgs: "The account as it changes, in a terminal: all JVMs, or one";
    report ReportArgs:
        "One offline page of a recording, or of a frozen file or core dump: charts, page grid, treemap, tables, findings";
    diff DiffArgs: "What grew between two moments: by area, part, arena, library and thread";
    record RecordArgs: "The account over time, of one JVM or of all, in a file that survives a crash of the recorder";
    serve ServeArgs: "A service for this node: all its JVMs as Prometheus metrics, JSON and a page";
    advise AdviseArgs: "The container limit, -Xmx and malloc options that a workload needs, from what it needed over time";
    leak LeakArgs: "Whether recorded memory grows without bound, levels off, or cannot be judged yet";
    export ExportArgs: "A recording as Parquet, CSV or JSON lines";
    fleet FleetCommand group: "Questions to the store of a fleet, as SQL for DuckDB, ClickHouse, Trino or Spark";
    audit AuditArgs: "The account compared with the JVM's own figures; attaches, so the JVM gets one more thread";
    trim TrimArgs: "Return freed memory that malloc keeps to the system; predicts the amount first";
    tlb TlbArgs: "Address translation: the cost of page-table walks";
    doctor DoctorArgs:
        "What is wrong with the memory of a JVM, of all of them, or of their host: each finding with evidence, cost and remedy";
    stalls StallsArgs: "Time that processes lost to compaction, reclaim and huge pages";
    pages PagesCommand group: "Large pages: plan, apply, verify, undo; and on a running JVM collapse, split, prove";
    bench BenchCommand group: "The published experiments, repeatable";
    compare CompareArgs: "Compare ways of running your program: randomized blocks, confidence intervals, verified pages";
    freeze FreezeArgs: "Save an anonymised snapshot with the bytes it was read from, for bug reports and tests";
    schema SchemaArgs: "The JSON Schema of a document that --json prints";
    man ManArgs: "The manual: pages for man(1), with the texts of --help";
    completions CompletionsArgs: "Shell completions of commands and options";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands among the examples, up to where a shell takes over.
    fn lines(name: &str) -> impl Iterator<Item = &'static str> {
        let commands = examples::text(name)
            .unwrap_or_default()
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("marusa "));
        commands
            .map(|line| line.split(" | ").next().unwrap_or(line))
            .map(|line| line.split(" > ").next().unwrap_or(line))
    }

    #[test]
    fn the_commands_are_sound_and_each_has_an_example_that_parses() {
        command().debug_assert();
        let mut root = command();
        root.build();
        let mut paths = Vec::new();
        for one in root.get_subcommands().filter(|one| one.get_name() != "help") {
            let within = one.get_subcommands().filter(|sub| sub.get_name() != "help");
            paths.push(vec![one.get_name().to_string()]);
            paths.extend(within.map(|sub| vec![one.get_name().to_string(), sub.get_name().to_string()]));
        }
        assert!(paths.len() > 30, "bench and pages have commands of their own: {paths:?}");
        for path in paths {
            let name = path.join(" ");
            let lines: Vec<&str> = lines(&name).collect();
            assert!(!lines.is_empty(), "{name} has no example");
            for line in lines {
                let words = shlex::split(line).unwrap_or_else(|| panic!("{line}: quotation marks"));
                assert!(words[1..].starts_with(&path), "{line} is not an example of {name}");
                let parsed = command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.map(|_| ()).unwrap_err());
            }
        }
    }

    #[test]
    fn the_options_of_all_commands_stand_before_or_behind_a_command_and_one_within_a_group() {
        for line in [
            "--show-arguments --file-mode 0640 map 1",
            "map 1 --show-arguments --file-mode 640",
            "pages plan 1 --file-mode 0640 --show-arguments",
        ] {
            let words = ["marusa"].into_iter().chain(line.split(' '));
            let matches = command().try_get_matches_from(words).expect(line);
            assert!(matches.get_flag("show_arguments"), "{line}");
            assert_eq!(matches.get_one::<u32>("file_mode"), Some(&0o640), "{line}");
        }
        assert!(command().try_get_matches_from(["marusa", "list", "--file-mode", "0044"]).is_err());
    }

    #[test]
    fn colours_of_help_by_the_last_option_before_another_program() {
        let of = |line: &str| colour_word(line.split(' ').map(str::to_string));
        assert_eq!(of("marusa --color never map --help").as_deref(), Some("never"));
        assert_eq!(of("marusa map --color=auto --help --color always").as_deref(), Some("always"));
        assert_eq!((of("marusa --help -- --color never"), of("marusa --colors x")), (None, None));
    }

    #[test]
    fn help_of_a_command_within_a_group_has_its_examples() {
        let shown = command().try_get_matches_from(["marusa", "bench", "fork", "--help"]).expect_err("help");
        assert!(shown.to_string().contains("marusa bench fork --dry-run"), "{shown}");
    }
}
