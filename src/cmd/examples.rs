//! Examples below the help of each command and in its man page. Lines that begin with `marusa` are parsed by a test, so that
//! none of them can be out of date.

/// Below `marusa --help`: where to begin.
pub const FIRST: &str = "\
Examples:
  What runs here, and what fills the memory of one of them:
    marusa list
    marusa why 4711
  TARGET is a pid, or a part of the main class, jar or container name:
    marusa map catalina --by page-size
  The account of all of its memory:
    marusa map 4711
  Something is wrong, but what:
    marusa doctor 4711
  As it changes:
    marusa top
  Over time, and a page of it that opens in any browser:
    marusa record 4711 -o orders.marusa
    marusa report orders.marusa -o orders.html";

/// The exit status of every command.
pub const EXIT_STATUS: &str = "\
0  done
1  the answer is \"no\": a check failed, something was found
2  usage
3  the target cannot be read, or is gone
4  rights are missing";

/// Behind "# " the words of a command, and below them its examples.
const EXAMPLES: &str = include_str!("examples.txt");

/// The text below the help of a command: "map", "pages plan".
pub fn of(name: &str) -> String {
    text(name).map_or(String::new(), |text| format!("Examples:\n{text}"))
}

pub fn text(name: &str) -> Option<&'static str> {
    let mut sections = EXAMPLES.trim_start_matches("# ").split("\n# ").filter_map(|one| one.split_once('\n'));
    sections.find(|(of, _)| *of == name).map(|(_, text)| text.trim_end())
}

/// Below the help of the program itself.
pub fn of_all() -> String {
    let status: String = EXIT_STATUS.lines().map(|line| format!("  {line}\n")).collect();
    format!("{FIRST}\n\nExit status:\n{}", status.trim_end())
}
