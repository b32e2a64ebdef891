//! Whether the options that a JVM was started with forbid attachment. A JVM with -XX:+DisableAttachMechanism would answer
//! SIGQUIT with a thread dump on its standard output, so it is better not asked.
//!
//! Options in a file (@arguments, -XX:Flags, JDK_JAVA_OPTIONS with a file) are not seen here. A caller that read the
//! VM's flags out of its memory knows better and need not come this far.

use crate::base::redact::takes_value;

/// The variables that HotSpot and the launcher read, in the order in which later ones win over earlier ones.
const BEFORE: [&str; 2] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"];
const AFTER: &str = "_JAVA_OPTIONS";

const ON: &str = "-XX:+DisableAttachMechanism";
const OFF: &str = "-XX:-DisableAttachMechanism";

/// Whether attachment is forbidden, by the contents of /proc/PID/cmdline and /proc/PID/environ.
pub fn forbid_attachment(command_line: &[u8], environment: &[u8]) -> bool {
    let variable = |name: &str| {
        environment.split(|byte| *byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(value).into_owned())
        })
    };
    let mut words: Vec<String> = Vec::new();
    let mut add =
        |text: Option<String>| words.extend(text.iter().flat_map(|t| t.split_whitespace()).map(String::from));
    BEFORE.iter().for_each(|name| add(variable(name)));
    add(Some(vm_options(command_line).join(" ")));
    add(variable(AFTER));
    words.iter().rev().find(|word| *word == ON || *word == OFF).is_some_and(|word| word == ON)
}

/// The words before the main class or `-jar`; what comes after is for the program.
fn vm_options(command_line: &[u8]) -> Vec<String> {
    let mut words = command_line.split(|byte| *byte == 0).map(String::from_utf8_lossy).skip(1);
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        if word == "-jar"
            || word == "-m"
            || word == "--module"
            || !(word.starts_with('-') || word.starts_with('@'))
        {
            break;
        }
        if takes_value(&word) {
            words.next();
        } else {
            options.push(word.into_owned());
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_wins_and_the_programs_own_words_do_not_count() {
        let line = b"java\0-cp\0a b\0-XX:+DisableAttachMechanism\0Main\0x\0";
        assert!(forbid_attachment(line, b""));
        let limited =
            b"java\0--limit-modules\0java.base\0--add-reads\0a=b\0-XX:+DisableAttachMechanism\0Main\0";
        assert!(forbid_attachment(limited, b""));
        assert!(!forbid_attachment(b"java\0-cp\0a\0Main\0-XX:+DisableAttachMechanism\0", b""));
        assert!(!forbid_attachment(line, b"A=b\0_JAVA_OPTIONS=-Xmx1g -XX:-DisableAttachMechanism\0"));
        assert!(forbid_attachment(
            b"java\0-jar\0a.jar\0",
            b"JAVA_TOOL_OPTIONS=-XX:+DisableAttachMechanism\0"
        ));
        assert!(!forbid_attachment(b"", b""));
    }
}
