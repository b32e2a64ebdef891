//! The one definition of the commands: the program, its help, the man pages and the completions of shells are made of it.

use super::{examples, list};
use crate::base::{limits, redact};
use crate::cmd;
use crate::os::terminal::{self, Colours, raw_stdout, stderr, stdout};
use crate::os::{budget, file_mode, output_file};
use crate::show::{paint, width};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand, value_parser};
use std::io::Write;

/// One line a command: its name, its arguments, what it does, what runs it. The options of a command are only put together
/// when it is asked for: those of all take a millisecond, a twentieth of a `map`.
macro_rules! commands {
    ($($name:literal $args:ty, $augment:path, $run:path: $about:literal;)*) => {
        pub fn command() -> Command {
            Command::new("marusa")
                .version(env!("CARGO_PKG_VERSION"))
                .about("Accounts for every byte of a running JVM, from outside")
                .after_help(examples::of_all())
                .max_term_width(100)
                .subcommand_required(true)
                .arg_required_else_help(true)
                .args(for_all())
                $(.subcommand(Command::new($name).about($about).defer(|command| {
                    let command = $augment(command).about($about).after_help(examples::of($name));
                    let is_group = command.has_subcommands();
                    let command = command.mut_subcommands(|sub| {
                        let examples = examples::of(&format!("{} {}", $name, sub.get_name()));
                        sub.after_help(examples)
                    });
                    command.subcommand_required(is_group).arg_required_else_help(is_group)
                })))*
        }

        pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
            apply(matches);
            match matches.subcommand() {
                $(Some(($name, matches)) => {
                    let args = <$args>::from_arg_matches(matches);
                    match args {
                        Ok(args) => {
                            budget::set_limits(limits::of_command($name));
                            $run(&args)
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

const SHOW_ARGUMENTS: &str = "show-arguments";
const FILE_MODE: &str = "file-mode";
const FORCE: &str = "force";
const WIDTH: &str = "width";
const COLOR: &str = "color";

/// The options that every command takes.
fn for_all() -> [Arg; 5] {
    [
        Arg::new(SHOW_ARGUMENTS)
            .long(SHOW_ARGUMENTS)
            .global(true)
            .action(ArgAction::SetTrue)
            .help_heading(PRIVACY)
            .help("Show the values of arguments in output and files: they may contain passwords"),
        Arg::new(FILE_MODE)
            .long(FILE_MODE)
            .global(true)
            .value_name("MODE")
            .value_parser(file_mode::parse)
            .help_heading(PRIVACY)
            .help("Mode of written files, in octal [default: 0600, whatever the umask]"),
        Arg::new(FORCE)
            .long(FORCE)
            .global(true)
            .action(ArgAction::SetTrue)
            .help_heading(OUTPUT)
            .help("Write over a file that exists"),
        Arg::new(WIDTH)
            .long(WIDTH)
            .global(true)
            .value_name("COLUMNS")
            .value_parser(value_parser!(u16).range(1..))
            .help_heading(OUTPUT)
            .help("Columns of tables, from 40 to 100 [default: COLUMNS, the terminal, or 100]"),
        Arg::new(COLOR)
            .long(COLOR)
            .global(true)
            .value_name("WHEN")
            .value_parser(["auto", "always", "never"])
            .help_heading(OUTPUT)
            .help("Colours: auto is on a terminal, unless NO_COLOR is set or TERM is dumb; always also for less -R"),
    ]
}

const PRIVACY: &str = "Privacy";
const OUTPUT: &str = "Output";

fn apply(matches: &ArgMatches) {
    if matches.get_flag(SHOW_ARGUMENTS) {
        redact::show_arguments();
    }
    if let Some(mode) = matches.get_one::<u32>(FILE_MODE) {
        file_mode::set(*mode);
    }
    if matches.get_flag(FORCE) {
        output_file::overwrite();
    }
    if let Some(columns) = matches.get_one::<u16>(WIDTH) {
        width::set(usize::from(*columns));
    }
    terminal::choose_colours(colours_of(matches.get_one::<String>(COLOR).map(String::as_str)));
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
    "why" cmd::why::WhyArgs, cmd::why::WhyArgs::augment_args, cmd::why::run:
        "What fills the memory of a JVM: what grows and what is large, each with its owner and the next command; start here";
    "list" cmd::list::ListArgs, cmd::list::ListArgs::augment_args, cmd::list::run:
        "The JVMs of this host";
    "map" cmd::map::MapArgs, cmd::map::MapArgs::augment_args, cmd::map::run:
        "The account: the owner of each byte, and whether it is resident";
    "container" cmd::container::ContainerArgs, cmd::container::ContainerArgs::augment_args, cmd::container::run:
        "What fills a container: processes, page cache, tmpfs, kernel memory and a remainder, which sum to the cgroup's figure";
    "heap" cmd::heap::HeapArgs, cmd::heap::HeapArgs::augment_args, cmd::heap::run:
        "The objects of the Java heap by class, counted from outside: no stop, no collection, no attach";
    "top" cmd::top::TopArgs, cmd::top::TopArgs::augment_args, cmd::top::run:
        "The account as it changes, in a terminal: all JVMs, or one";
    "report" cmd::report::ReportArgs, cmd::report::ReportArgs::augment_args, cmd::report::run:
        "One offline page of a recording, or of a frozen file or core dump: charts, page grid, treemap, tables, findings";
    "diff" cmd::diff::DiffArgs, cmd::diff::DiffArgs::augment_args, cmd::diff::run:
        "What grew between two moments: by area, part, arena, library and thread";
    "record" cmd::record::RecordArgs, cmd::record::RecordArgs::augment_args, cmd::record::run:
        "The account over time, of one JVM or of all, in a file that survives a crash of the recorder";
    "serve" cmd::serve::ServeArgs, cmd::serve::ServeArgs::augment_args, cmd::serve::run:
        "A service for this node: all its JVMs as Prometheus metrics, JSON and a page";
    "advise" cmd::advise::AdviseArgs, cmd::advise::AdviseArgs::augment_args, cmd::advise::run:
        "The container limit, -Xmx and malloc options that a workload needs, from what it needed over time";
    "leak" cmd::leak::LeakArgs, cmd::leak::LeakArgs::augment_args, cmd::leak::run:
        "Whether recorded memory grows without bound, levels off, or cannot be judged yet";
    "export" cmd::export::ExportArgs, cmd::export::ExportArgs::augment_args, cmd::export::run:
        "A recording as Parquet, CSV or JSON lines";
    "fleet" cmd::fleet::FleetCommand, cmd::fleet::FleetCommand::augment_subcommands, cmd::fleet::run:
        "Questions to the store of a fleet, as SQL for DuckDB, ClickHouse, Trino or Spark";
    "audit" cmd::audit::AuditArgs, cmd::audit::AuditArgs::augment_args, cmd::audit::run:
        "The account compared with the JVM's own figures; attaches, so the JVM gets one more thread";
    "trim" cmd::trim::TrimArgs, cmd::trim::TrimArgs::augment_args, cmd::trim::run:
        "Return freed memory that malloc keeps to the system; predicts the amount first";
    "tlb" cmd::tlb::TlbArgs, cmd::tlb::TlbArgs::augment_args, cmd::tlb::run:
        "Address translation: the cost of page-table walks";
    "doctor" cmd::doctor::DoctorArgs, cmd::doctor::DoctorArgs::augment_args, cmd::doctor::run:
        "What is wrong with the memory of a JVM, of all of them, or of their host: each finding with evidence, cost and remedy";
    "stalls" cmd::stalls::StallsArgs, cmd::stalls::StallsArgs::augment_args, cmd::stalls::run:
        "Time that processes lost to compaction, reclaim and huge pages";
    "pages" cmd::pages::PagesCommand, cmd::pages::PagesCommand::augment_subcommands, cmd::pages::run:
        "Large pages: plan, apply, verify, undo; and on a running JVM collapse, split, prove";
    "bench" cmd::bench::BenchCommand, cmd::bench::BenchCommand::augment_subcommands, cmd::bench::run:
        "The published experiments, repeatable";
    "compare" cmd::compare::CompareArgs, cmd::compare::CompareArgs::augment_args, cmd::compare::run:
        "Compare ways of running your program: randomized blocks, confidence intervals, verified pages";
    "freeze" cmd::freeze::FreezeArgs, cmd::freeze::FreezeArgs::augment_args, cmd::freeze::run:
        "Save an anonymised snapshot with the bytes it was read from, for bug reports and tests";
    "schema" cmd::schema::SchemaArgs, cmd::schema::SchemaArgs::augment_args, cmd::schema::run:
        "The JSON Schema of a document that --json prints";
    "man" cmd::man::ManArgs, cmd::man::ManArgs::augment_args, cmd::man::run:
        "The manual: pages for man(1), with the texts of --help";
    "completions" cmd::completions::CompletionsArgs, cmd::completions::CompletionsArgs::augment_args, cmd::completions::run:
        "Shell completions of commands and options";
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
            assert!(matches.get_flag(SHOW_ARGUMENTS), "{line}");
            assert_eq!(matches.get_one::<u32>(FILE_MODE), Some(&0o640), "{line}");
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
