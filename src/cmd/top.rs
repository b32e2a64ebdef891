//! `marusa top [TARGET]`: the account as it changes, in a terminal. One thread looks at JVMs, this one draws and hears keys, so
//! that a JVM that takes long to read delays no other.

mod looks;

use super::{Failure, amount, target};
use crate::act::signals::{self, Blocked};
use crate::base::refuse;
use crate::os::terminal;
use crate::os::terminal::stdout;
use crate::show::json::print_line;
use crate::show::look::TopDocument;
use crate::show::tui::model::View;
use crate::show::tui::{self, Action, Key, Model, News, Style};
use anyhow::Context;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use looks::{Looking, Wish};
use ratatui::{DefaultTerminal, crossterm};
use std::io::{IsTerminal, Write, stdin};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub struct TopArgs {
    /// A pid, or a part of the main class, jar or container name; without it all JVMs
    target: Option<String>,
    /// Sampling interval
    #[arg(long, value_name = "TIME", value_parser = amount::duration, default_value = "2s")]
    every: Duration,
    /// No terminal: one line of JSON for each reading of a JVM, schema marusa/top/2
    #[arg(long)]
    json: bool,
    /// With --json: number of rounds
    #[arg(long, value_name = "COUNT", requires = "json", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// How long a screen may be older than what is known.
const TURN: Duration = Duration::from_millis(100);
/// Between the request to end and the end.
const GRACE: Duration = Duration::from_millis(500);
/// More often would leave the JVM nothing.
const EVERY_MIN: Duration = Duration::from_millis(100);

pub fn run(args: &TopArgs) -> anyhow::Result<u8> {
    if args.every < EVERY_MIN {
        refuse!("--every: at least 100ms");
    }
    let pid = args.target.as_deref().map(target::open).transpose()?.map(|process| process.pid);
    if args.json {
        return json(args, pid);
    }
    if !stdout().is_terminal() || !stdin().is_terminal() {
        refuse!("top needs a terminal; without one take `marusa top --json`, or `marusa map`");
    }
    if !terminal::has_cursor() {
        refuse!(
            "cannot draw on this terminal: TERM is dumb or not set; take `marusa top --json`, or `marusa map`"
        );
    }
    // A signal to end is answered between two turns: else it would leave the terminal as we have made it.
    let blocked = Blocked::start();
    end_on_signal();
    let (heard, wishes) = start(Looking { pid, every: args.every })?;
    let style = Style { has_colour: terminal::has_colours(true) };
    let model = Model::new(pid.map_or(View::All, View::One));
    // Also puts the terminal back when we panic.
    let mut screen = ratatui::try_init()
        .map_err(|error| Failure::usage(format!("the terminal cannot be drawn on: {error}")))?;
    let outcome = watch(&mut screen, model, style, &heard, &wishes);
    ratatui::restore();
    drop(blocked);
    outcome
}

/// Starts the thread that samples.
fn start(looking: Looking) -> anyhow::Result<(Receiver<News>, Sender<Wish>)> {
    let (news, heard) = channel();
    let (wishes, wished) = channel();
    std::thread::Builder::new()
        .spawn(move || looking.run(&news, &wished))
        .context("cannot start the sampling thread")?;
    Ok((heard, wishes))
}

/// Where the terminal goes away, reading keys never returns: crossterm 0.29 reads the end of it again and again
/// (src/event/source/unix/mio.rs). So a thread that was asked to end and does not is ended.
fn end_on_signal() {
    std::thread::spawn(|| {
        while !signals::pending() {
            std::thread::sleep(TURN);
        }
        std::thread::sleep(GRACE);
        let _ = ratatui::try_restore();
        std::process::exit(0);
    });
}

fn watch(
    screen: &mut DefaultTerminal,
    mut model: Model,
    style: Style,
    heard: &Receiver<News>,
    wishes: &Sender<Wish>,
) -> anyhow::Result<u8> {
    let mut is_stale = true;
    loop {
        while let Ok(news) = heard.try_recv() {
            model.learn(news);
            is_stale = true;
        }
        if is_stale {
            screen.draw(|frame| tui::draw(frame, &mut model, style))?;
            is_stale = false;
        }
        if signals::pending() {
            return Ok(0);
        }
        if !event::poll(TURN)? {
            continue;
        }
        is_stale = true;
        let Event::Key(pressed) = event::read()? else { continue };
        let Some(key) = key(pressed) else { continue };
        let is_all = model.view == View::All;
        let action = if key == Key::Char('\u{3}') { Some(Action::Quit) } else { model.press(key) };
        // The sampling thread may be gone only when we end.
        if is_all != (model.view == View::All) {
            let _ = wishes.send(Wish::Only(model.pid()));
        }
        let _ = match action {
            Some(Action::Quit) => return Ok(0),
            Some(Action::Look) => wishes.send(Wish::Look),
            Some(Action::Holders(pid)) => wishes.send(Wish::Holders(pid)),
            Some(Action::Pause(is_paused)) => wishes.send(Wish::Pause(is_paused)),
            None => Ok(()),
        };
    }
}

/// Ctrl-C is the character that it is.
fn key(pressed: KeyEvent) -> Option<Key> {
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = pressed.modifiers.contains(KeyModifiers::CONTROL);
    match pressed.code {
        KeyCode::Char('c') if is_control => Some(Key::Char('\u{3}')),
        KeyCode::Char(_) if is_control => None,
        KeyCode::F(_) | KeyCode::Insert | KeyCode::Delete | KeyCode::Null => None,
        code => Some(code),
    }
}

fn json(args: &TopArgs, pid: Option<i32>) -> anyhow::Result<u8> {
    let (heard, _wishes) = start(Looking { pid, every: args.every })?;
    let mut rounds = 0;
    for one in heard {
        match one {
            News::Looked(look) => {
                let mut out = stdout().lock();
                print_line(&mut out, &TopDocument::of(&look))?;
                out.flush()?;
            }
            News::Begun { .. } => {}
            News::Failed(message) => crate::say!("marusa: {message}"),
            News::Round { pids, .. } => {
                rounds += 1;
                if pids.is_empty() && pid.is_some() {
                    return Err(Failure::target("the JVM has ended"));
                }
                if args.count.is_some_and(|count| rounds >= count) {
                    break;
                }
            }
        }
    }
    Ok(0)
}
