//! The contents of a `java` command's arguments: the main class, jar or module, as `jcmd` names it, and the options that
//! stand in for the VM's own flags when its memory may not be read. Options of JAVA_TOOL_OPTIONS and of @files are not
//! seen.

use crate::base::redact::{self, takes_value};
use crate::base::{Bytes, bytes_of};

/// The collectors by the option that chooses them.
const COLLECTORS: &[(&str, &str)] = &[
    ("-XX:+UseG1GC", "g1"),
    ("-XX:+UseParallelGC", "parallel"),
    ("-XX:+UseParallelOldGC", "parallel"),
    ("-XX:+UseSerialGC", "serial"),
    ("-XX:+UseConcMarkSweepGC", "cms"),
    ("-XX:+UseZGC", "zgc"),
    ("-XX:+UseShenandoahGC", "shenandoah"),
    ("-XX:+UseEpsilonGC", "epsilon"),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// "com.example.Main", "/opt/app.jar", "module/com.example.Main".
    pub main: Option<String>,
    /// An @file comes before it, which may name the true main class: then `main` is an argument of the program.
    pub may_be_in_file: bool,
    pub max_heap_bytes: Option<Bytes>,
    pub gc: Option<String>,
    pub transparent_huge_pages: bool,
    /// "FORK", "VFORK", "POSIX_SPAWN": how the JVM starts processes, if an option says it. Any letter case will do
    /// (src/java.base/unix/classes/java/lang/ProcessImpl.java).
    pub launch_mechanism: Option<String>,
}

/// Whether the command is a Java launcher, so that its arguments are a launcher's.
pub fn is_launcher(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|word| redact::is_java(word))
}

/// Reads the arguments, the command's own name first.
pub fn parse(arguments: &[String]) -> CommandLine {
    let mut line = CommandLine::default();
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-m" | "--module" => {
                line.main = rest.next().cloned();
                break;
            }
            option if takes_value(option) => {
                rest.next();
            }
            option if option.starts_with("--module=") => {
                line.main = option.strip_prefix("--module=").map(str::to_string);
                break;
            }
            option if option.starts_with('-') => line.add(option),
            file if file.starts_with('@') => line.may_be_in_file = true,
            main => {
                line.main = Some(main.to_string());
                break;
            }
        }
    }
    line
}

/// Where the program begins: `-jar`, `-m`, the main class, or an @file, which may name it. `None`: there is none.
pub fn program_at(arguments: &[String]) -> Option<usize> {
    let mut at = 1;
    loop {
        match arguments.get(at)?.as_str() {
            "-jar" | "-m" | "--module" => return Some(at),
            option if option.starts_with("--module=") => return Some(at),
            option if takes_value(option) => at += 2,
            option if option.starts_with('-') => at += 1,
            _ => return Some(at),
        }
    }
}

impl CommandLine {
    /// The last one of an option counts.
    fn add(&mut self, option: &str) {
        let max_heap = option.strip_prefix("-Xmx").or(option.strip_prefix("-XX:MaxHeapSize="));
        if let Some(bytes) = max_heap.and_then(bytes_of) {
            self.max_heap_bytes = Some(bytes);
        }
        if let Some((_, name)) = COLLECTORS.iter().find(|(chooses, _)| *chooses == option) {
            self.gc = Some(name.to_string());
        }
        if let Some(policy) = option.strip_prefix("-Xgcpolicy:") {
            self.gc = Some(policy.to_string());
        }
        if let Some(name) = option.strip_prefix("-Djdk.lang.Process.launchMechanism=") {
            self.launch_mechanism = Some(name.to_ascii_uppercase());
        }
        self.transparent_huge_pages |= option == "-XX:+UseTransparentHugePages";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> CommandLine {
        parse(&text.split(' ').map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn the_main_class_is_the_first_word_that_is_no_option_and_no_value_of_one() {
        let main = |text| of(text).main.unwrap_or_default();
        assert_eq!(main("java -cp a:b -Xmx1g com.example.Main -jar x"), "com.example.Main");
        assert_eq!(main("java -jar -Xmx1g /opt/app.jar start"), "/opt/app.jar");
        assert_eq!(main("java --module-path mods -m app/com.example.Main x"), "app/com.example.Main");
        assert_eq!(main("java --module=app/com.example.Main"), "app/com.example.Main");
        assert_eq!(main("java --add-opens java.base/java.lang=ALL-UNNAMED @opts Main"), "Main");
        assert_eq!(main("java -version"), "");
    }

    #[test]
    fn the_last_option_counts_and_nonsense_does_not() {
        let line = of("java -Xmx512m -XX:MaxHeapSize=2g -Xmxlots -XX:+UseZGC -XX:+UseSerialGC Main -Xmx9g");
        assert_eq!((line.max_heap_bytes, line.gc.as_deref()), (Some(2 << 30), Some("serial")));
        assert_eq!(of("java -Xmx99999999999t Main").max_heap_bytes, None);
        assert!(of("java -XX:+UseTransparentHugePages Main").transparent_huge_pages);
        let line =
            of("java -Djdk.lang.Process.launchMechanism=fork Main -Djdk.lang.Process.launchMechanism=x");
        assert_eq!(line.launch_mechanism.as_deref(), Some("FORK"));
    }

    #[test]
    fn the_program_begins_after_the_options_of_the_vm() {
        let at = |text: &str| program_at(&text.split(' ').map(str::to_string).collect::<Vec<_>>());
        assert_eq!((at("java -cp a Main -x"), at("java -ea -jar a.jar")), (Some(3), Some(2)));
        assert_eq!(
            (at("java --module=a/b"), at("java -ea @all"), at("java -version")),
            (Some(1), Some(2), None)
        );
        assert_eq!(at("java -cp"), None);
    }

    #[test]
    fn a_launcher_is_known_by_its_name() {
        assert!(is_launcher(&["/usr/lib/jvm/bin/java".to_string()]));
        assert!(!is_launcher(&["/usr/bin/jsvc".to_string()]) && !is_launcher(&[]));
    }
}
