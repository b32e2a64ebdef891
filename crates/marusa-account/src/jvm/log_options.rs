//! The files that a JVM's options tell it to log to: -Xlog:what:file=NAME (JDK 9 on) and -Xloggc:NAME. In the names that
//! are given back, `*` stands for what the JVM puts in: %p the pid, %t the time, %hn the host
//! (src/hotspot/share/logging/logFileOutput.cpp, JDK 25).

/// Names of the files, from the arguments of a `java` command.
pub fn log_files(arguments: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    for argument in arguments {
        let name = match (argument.strip_prefix("-Xloggc:"), argument.strip_prefix("-Xlog:")) {
            (Some(name), _) => Some(name.to_string()),
            (_, Some(rest)) => output(rest),
            _ => None,
        };
        let name = name.map(|name| name.replace("%p", "*").replace("%t", "*").replace("%hn", "*"));
        names.extend(name.filter(|name| !name.is_empty()));
    }
    names
}

/// The second of what the colons part; a name in quotation marks may have colons.
fn output(rest: &str) -> Option<String> {
    let mut quoted = false;
    let mut part = 0;
    let mut output = String::new();
    for letter in rest.chars() {
        match letter {
            '"' => quoted = !quoted,
            ':' if !quoted => part += 1,
            _ if part == 1 => output.push(letter),
            _ => {}
        }
    }
    let name = output.strip_prefix("file=").unwrap_or(&output);
    (!matches!(name, "stdout" | "stderr") && !name.starts_with('#')).then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Vec<String> {
        log_files(&arguments.iter().map(|word| word.to_string()).collect::<Vec<String>>())
    }

    #[test]
    fn the_forms_of_an_output() {
        let all = of(&[
            "java",
            "-Xlog:pagesize",
            "-Xlog:gc*:stdout:time",
            "-Xlog:all=warning:stderr",
            "-Xlog:gc*,pagesize:file=/var/log/gc-%p.log:time,uptime:filecount=5",
            "-Xlog:pagesize:plain.log",
            "-Xlog:gc:file=\"C:odd-%t\":time",
            "-Xloggc:/tmp/old.log",
            "-Xlog:::",
            "-Xlog:disable",
        ]);
        assert_eq!(all, ["/var/log/gc-*.log", "plain.log", "C:odd-*", "/tmp/old.log"]);
    }
}
