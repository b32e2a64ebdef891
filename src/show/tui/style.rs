//! Colours of areas, or, where there shall be none (NO_COLOR, no-color.org) or a terminal has none, letters in their place: bars
//! then are made of the letters of their areas, so that nothing depends on colour alone.

use crate::map::Area;
use ratatui::style::{Color, Modifier};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub has_colour: bool,
}

impl Style {
    pub fn of(self, area: Area) -> ratatui::style::Style {
        match self.has_colour {
            true => ratatui::style::Style::new().fg(colour(area)),
            false => ratatui::style::Style::new(),
        }
    }

    pub fn dim(self) -> ratatui::style::Style {
        ratatui::style::Style::new().add_modifier(Modifier::DIM)
    }

    pub fn strong(self) -> ratatui::style::Style {
        ratatui::style::Style::new().add_modifier(Modifier::BOLD)
    }

    /// Turned around: seen on every terminal.
    pub fn selected(self) -> ratatui::style::Style {
        ratatui::style::Style::new().add_modifier(Modifier::REVERSED)
    }

    /// From the least to the most of a line of small levels.
    pub fn levels(self) -> &'static [char] {
        if self.has_colour {
            &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        } else {
            &['_', '.', '-', '=', '*', '#']
        }
    }

    /// One cell of a bar.
    pub fn cell(self, area: Area) -> char {
        if self.has_colour { '█' } else { letter(area) }
    }
}

/// The colours that every terminal has, bright ones next to dark ones so that neighbours differ in brightness too, and one of
/// the 256 colours.
fn colour(area: Area) -> Color {
    match area {
        Area::JavaHeap => Color::Blue,
        Area::Gc => Color::LightBlue,
        Area::ClassMetadata => Color::Green,
        Area::CdsArchive => Color::LightGreen,
        Area::JitCode => Color::Yellow,
        Area::JitWork => Color::LightYellow,
        Area::Stack => Color::Magenta,
        Area::DirectBuffers => Color::LightMagenta,
        Area::JvmWork => Color::Cyan,
        Area::NativeLibrary => Color::LightCyan,
        Area::Code => Color::Gray,
        Area::MappedFile => Color::DarkGray,
        // Orange: all the colours that every terminal has, except black, are taken.
        Area::MallocUnknown => Color::Indexed(208),
        Area::MallocFreed => Color::Red,
        Area::Overhead => Color::LightRed,
        Area::Unattributed => Color::White,
    }
}

/// Its letter, in the bar and in the legend.
pub fn letter(area: Area) -> char {
    match area {
        Area::JavaHeap => 'H',
        Area::Gc => 'G',
        Area::ClassMetadata => 'M',
        Area::CdsArchive => 'A',
        Area::JitCode => 'J',
        Area::JitWork => 'j',
        Area::Stack => 'S',
        Area::DirectBuffers => 'D',
        Area::JvmWork => 'V',
        Area::NativeLibrary => 'N',
        Area::Code => 'C',
        Area::MappedFile => 'f',
        Area::MallocUnknown => 'U',
        Area::MallocFreed => 'F',
        Area::Overhead => 'o',
        Area::Unattributed => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_areas_have_the_same_letter_or_colour() {
        let letters: HashSet<char> = Area::ALL.iter().map(|area| letter(*area)).collect();
        let colours: HashSet<String> = Area::ALL.iter().map(|area| format!("{:?}", colour(*area))).collect();
        assert_eq!((letters.len(), colours.len()), (Area::ALL.len(), Area::ALL.len()));
    }
}
