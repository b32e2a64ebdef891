//! `marusa completions SHELL`: what a shell needs to complete our commands and options, made of their one definition.

use super::commands;
use crate::os::terminal::raw_stdout;
use clap_complete::Shell;
use std::io::Write;

#[derive(clap::Args, Debug)]
pub struct CompletionsArgs {
    /// Which shell's language
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let mut out = raw_stdout();
    out.write_all(&script(args.shell))?;
    out.flush()?;
    Ok(0)
}

fn script(shell: Shell) -> Vec<u8> {
    // In memory first: the generator panics where writing fails, as at the end of a pipe.
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut commands::command(), "marusa", &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_learns_the_options_of_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = String::from_utf8(script(shell)).expect("UTF-8");
            for word in ["page-size", "collapse", "explain", "taxonomy"] {
                assert!(text.contains(word), "{shell} does not know {word}");
            }
        }
    }
}
