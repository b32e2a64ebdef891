//! What the live view shows, and what each key and each reading of a JVM does to it.

use super::history::{Kept, Trail};
use crate::measure::look::{Look, MemoryLimit};
pub use ratatui::crossterm::event::KeyCode as Key;
use std::collections::BTreeMap;

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    #[default]
    All,
    One(i32),
}

/// What of one JVM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    #[default]
    Areas,
    PageSizes,
    Arenas,
    Threads,
    Holders,
}

impl Tab {
    pub const ALL: [Tab; 5] = [Tab::Areas, Tab::PageSizes, Tab::Arenas, Tab::Threads, Tab::Holders];
    pub fn title(self) -> &'static str {
        match self {
            Tab::Areas => "areas",
            Tab::PageSizes => "page sizes",
            Tab::Arenas => "arenas",
            Tab::Threads => "threads",
            Tab::Holders => "holders",
        }
    }
}

/// By what rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Resident,
    Rate,
    SinceMark,
    Name,
}

impl Sort {
    pub const ALL: [Sort; 4] = [Sort::Resident, Sort::Rate, Sort::SinceMark, Sort::Name];
    pub fn title(self) -> &'static str {
        match self {
            Sort::Resident => "in memory",
            Sort::Rate => "rate",
            Sort::SinceMark => "since mark",
            Sort::Name => "name",
        }
    }
}

/// Messages of the thread that reads JVMs.
#[derive(Clone, Debug)]
pub enum News {
    /// A round begins: these run, and this much memory the host has.
    Begun {
        pids: Vec<i32>,
        host: Option<MemoryLimit>,
    },
    Looked(Box<Look>),
    /// A round is over: these run.
    Round {
        pids: Vec<i32>,
        took_ms: f64,
    },
    /// What went wrong, in a sentence.
    Failed(String),
}

/// Requests to the program that runs the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Quit,
    /// Take a sample now, without waiting for the interval.
    Look,
    /// Read who holds malloc's blocks of this JVM.
    Holders(i32),
    Pause(bool),
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub view: View,
    pub tab: Tab,
    pub jvms: BTreeMap<i32, Kept>,
    pub sort: Sort,
    pub is_reversed: bool,
    pub filter: String,
    pub is_filtering: bool,
    pub is_help: bool,
    pub is_paused: bool,
    /// The index among the rows that are shown.
    pub selected: usize,
    /// The first row on the screen.
    pub top: usize,
    /// Areas whose parts are shown.
    pub open: Vec<&'static str>,
    /// When the mark was set, in seconds of the samples; `None`: there is no mark.
    pub marked_at: Option<f64>,
    /// Seconds of the last sample.
    pub at: f64,
    pub round_ms: Option<f64>,
    /// The JVMs that the round under way reads; empty between rounds.
    pub round: Vec<i32>,
    pub host: Option<MemoryLimit>,
    pub message: Option<String>,
    /// The JVM whose holders were asked for and are not there yet.
    pub awaited: Option<i32>,
    /// Whether all JVMs are looked at, so that there is a way back from one.
    pub has_all: bool,
    /// Rows that the screen had room for when it was last drawn.
    pub page: usize,
}

impl Model {
    pub fn new(view: View) -> Model {
        Model { view, has_all: view == View::All, page: 10, ..Model::default() }
    }

    /// A sample, the end of a round, a failure.
    pub fn learn(&mut self, news: News) {
        match news {
            News::Begun { pids, host } => {
                self.round = pids;
                self.host = host;
            }
            News::Looked(look) => self.looked(*look),
            News::Round { pids, took_ms } => {
                self.jvms.retain(|pid, _| pids.contains(pid));
                self.awaited = self.awaited.filter(|pid| pids.contains(pid));
                self.round_ms = Some(took_ms);
                self.round.clear();
                self.message = None;
                if let View::One(pid) = self.view
                    && !self.jvms.contains_key(&pid)
                {
                    self.message = Some(format!("pid {pid} has ended"));
                    if self.has_all {
                        self.go(View::All);
                    }
                }
            }
            News::Failed(message) => self.message = Some(message),
        }
        self.keep_in_bounds();
    }

    fn looked(&mut self, mut look: Look) {
        self.at = look.at;
        let marks_all = self.marked_at.is_some();
        let (pid, at, holders) = (look.pid, look.at, look.holders.take());
        match self.jvms.get_mut(&look.pid).filter(|kept| kept.now.is_of(&look)) {
            Some(kept) => {
                kept.trail.add(&look);
                kept.before = Some(std::mem::replace(&mut kept.now, look));
            }
            None => {
                // One that started after the mark had nothing then; its growth counts from its first sample.
                let mark = marks_all.then(|| look.clone());
                let mut trail = Trail::default();
                trail.add(&look);
                self.jvms.insert(look.pid, Kept { now: look, before: None, mark, held: None, trail });
            }
        }
        if let Some(holders) = holders {
            self.learn_holders(pid, at, holders);
        }
    }

    /// What a key does.
    pub fn press(&mut self, key: Key) -> Option<Action> {
        if self.is_filtering {
            self.edit_filter(key);
            self.keep_in_bounds();
            return None;
        }
        if self.is_help {
            self.is_help = false;
            return (key == Key::Char('q')).then_some(Action::Quit);
        }
        let action = match key {
            Key::Char(letter) => self.letter(letter),
            Key::Esc => self.back(),
            Key::Enter => self.enter(),
            _ => {
                self.walk(key);
                None
            }
        };
        self.keep_in_bounds();
        action.or_else(|| self.read_holders())
    }

    fn letter(&mut self, letter: char) -> Option<Action> {
        match letter {
            'q' => return Some(Action::Quit),
            'r' => return self.read_holders_again().or(Some(Action::Look)),
            '?' | 'h' => self.is_help = true,
            '/' => self.is_filtering = true,
            'm' => self.mark(),
            'M' => self.unmark(),
            's' => self.sort = next(&Sort::ALL, self.sort, 1),
            'S' => self.is_reversed = !self.is_reversed,
            'j' => self.walk(Key::Down),
            'k' => self.walk(Key::Up),
            'g' => self.walk(Key::Home),
            'G' => self.walk(Key::End),
            '1'..='5' if self.view != View::All => self.show(Tab::ALL[letter as usize - '1' as usize]),
            ' ' => {
                self.is_paused = !self.is_paused;
                return Some(Action::Pause(self.is_paused));
            }
            _ => {}
        }
        None
    }

    fn mark(&mut self) {
        self.marked_at = Some(self.at);
        self.jvms.values_mut().for_each(|kept| kept.mark = Some(kept.now.clone()));
    }

    fn unmark(&mut self) {
        self.marked_at = None;
        self.jvms.values_mut().for_each(|kept| kept.mark = None);
    }

    fn edit_filter(&mut self, key: Key) {
        match key {
            Key::Char(letter) if !letter.is_control() => self.filter.push(letter),
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Esc => {
                self.filter.clear();
                self.is_filtering = false;
            }
            Key::Enter => self.is_filtering = false,
            _ => {}
        }
        self.selected = 0;
    }

    /// The filter first, then the one JVM, then all.
    fn back(&mut self) -> Option<Action> {
        match self.view {
            _ if !self.filter.is_empty() => self.filter.clear(),
            View::One(_) if self.has_all => self.go(View::All),
            _ => return Some(Action::Quit),
        }
        None
    }

    fn enter(&mut self) -> Option<Action> {
        match self.view {
            View::All => {
                let pid = self.rows().get(self.selected).and_then(|row| row.pid);
                pid.into_iter().for_each(|pid| self.go(View::One(pid)));
            }
            View::One(_) => self.fold(None),
        }
        None
    }

    /// Opens or closes the area of the selected row; `wanted`: only that.
    fn fold(&mut self, wanted: Option<bool>) {
        let Some(area) = self.rows().get(self.selected).and_then(|row| row.area) else { return };
        let is_open = self.open.contains(&area);
        match wanted.unwrap_or(!is_open) {
            true if !is_open => self.open.push(area),
            false => self.open.retain(|open| *open != area),
            true => {}
        }
    }

    fn go(&mut self, view: View) {
        let left = self.pid();
        self.view = view;
        self.filter.clear();
        // Back among all, the one that was shown is selected.
        self.selected = self.rows().iter().position(|row| left.is_some() && row.pid == left).unwrap_or(0);
        self.top = 0;
    }

    fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.selected = 0;
        self.top = 0;
    }

    fn walk(&mut self, key: Key) {
        let is_one = self.view != View::All;
        match key {
            Key::Up => self.selected = self.selected.saturating_sub(1),
            Key::Down => self.selected = self.selected.saturating_add(1),
            Key::PageUp => self.selected = self.selected.saturating_sub(self.page.max(1)),
            Key::PageDown => self.selected = self.selected.saturating_add(self.page.max(1)),
            Key::Home => self.selected = 0,
            Key::End => self.selected = usize::MAX,
            Key::Tab if is_one => self.show(next(&Tab::ALL, self.tab, 1)),
            Key::BackTab if is_one => self.show(next(&Tab::ALL, self.tab, Tab::ALL.len() - 1)),
            Key::Right if is_one => self.fold(Some(true)),
            Key::Left if is_one => self.fold(Some(false)),
            _ => {}
        }
    }

    /// The selected row is there, and on the screen.
    pub fn keep_in_bounds(&mut self) {
        let count = self.rows().len();
        self.selected = self.selected.min(count.saturating_sub(1));
        let page = self.page.max(1);
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(page));
        self.top = self.top.min(count.saturating_sub(page));
    }

    /// How many JVMs of the round under way are known by now, and how many it reads; `None`: all are known, so that sums are whole.
    pub fn reading(&self) -> Option<(usize, usize)> {
        let known = self.round.iter().filter(|pid| self.jvms.contains_key(pid)).count();
        (known < self.round.len()).then_some((known, self.round.len()))
    }

    /// The JVM that is shown alone.
    pub fn pid(&self) -> Option<i32> {
        match self.view {
            View::One(pid) => Some(pid),
            View::All => None,
        }
    }

    pub fn one(&self) -> Option<&Kept> {
        self.jvms.get(&self.pid()?)
    }
}

/// The one after it, around the end.
fn next<T: Copy + PartialEq>(all: &[T], at: T, by: usize) -> T {
    let index = all.iter().position(|one| *one == at).unwrap_or(0);
    all[(index + by) % all.len()]
}

#[cfg(test)]
#[path = "model_tests.rs"]
pub mod tests;
