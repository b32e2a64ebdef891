//! The command of a JVM, where its arguments do not tell: another program loaded the VM, or wrote a title over its arguments.

use crate::jvm::command_line;
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::launch::{self, Launch};
use crate::os::target::ProcessFacts;

/// What the VM itself was started with; `None` where the arguments tell it.
pub fn read(process: &ProcessFacts, vm: &Hotspot) -> Option<Launch> {
    if has_arguments(&process.arguments) { None } else { launch::read(vm.memory(), vm.structs) }
}

/// The main class, jar or module, where the arguments name it.
pub fn main(process: &ProcessFacts) -> Option<String> {
    let line = command_line::parse(&process.arguments);
    line.main.filter(|main| !main.is_empty() && !line.may_be_in_file)
}

/// Whether these are the arguments of the launcher of Java, with all that it was given.
fn has_arguments(arguments: &[String]) -> bool {
    let line = command_line::parse(arguments);
    let has_main = line.main.is_some_and(|main| !main.is_empty());
    command_line::is_launcher(arguments) && (has_main || line.may_be_in_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_launcher_was_given_is_reported() {
        let of = |text: &str| has_arguments(&text.split(' ').map(str::to_string).collect::<Vec<_>>());
        assert!(of("/jdk/bin/java -Xmx1g com.example.Main a") && of("java @options"));
        assert!(!of("/opt/app/server --port 80") && !of("java") && !of("java  ") && !of("orders: idle"));
        assert!(!has_arguments(&[]), "kept or overwritten");
    }
}
