use marusa::cmd::{commands, status_of};
use std::process::ExitCode;

fn main() -> ExitCode {
    std::sync::LazyLock::force(&marusa::show::json::STARTED);
    marusa::os::terminal::escape_panics();
    marusa::os::host::keep_freed_memory();
    marusa::os::terminal::choose_letters();
    if let Some(columns) = marusa::os::terminal::columns() {
        marusa::show::width::set(columns);
    }
    let outcome = match commands::command().try_get_matches() {
        Ok(matches) => commands::run(&matches),
        Err(answer) => {
            let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
            commands::choose_colours_of_help(words);
            Ok(commands::answer(&answer))
        }
    };
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            marusa::say!("marusa: {error:#}");
            ExitCode::from(status_of(&error))
        }
    }
}

/// `marusa map 1 | head` is not a failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(|error| error.kind());
    kind == Some(std::io::ErrorKind::BrokenPipe)
        || error
            .downcast_ref::<serde_json::Error>()
            .is_some_and(|error| error.io_error_kind() == Some(std::io::ErrorKind::BrokenPipe))
}
