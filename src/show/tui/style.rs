//! Colours of areas, or, where there shall be none (NO_COLOR, no-color.org) or a terminal has none, letters in their place: bars
//! then are made of the letters of their areas, so that nothing depends on colour alone.

use crate::map::Area;
use ratatui::style::Color;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub has_colour: bool,
}

impl Style {
    pub fn of(self, area: Area) -> ratatui::style::Style {
        match self.has_colour {
            true => ratatui::style::Style::new().fg(shade(area).0),
            false => ratatui::style::Style::new(),
        }
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
        if self.has_colour { '█' } else { shade(area).1 }
    }
}

/// The colours that every terminal has, bright ones next to dark ones so that neighbours differ in brightness too, and one of
/// the 256 colours; and the letters in the bar and in the legend.
fn shade(area: Area) -> (Color, char) {
    match area {
        Area::JavaHeap => (Color::Blue, 'H'),
        Area::Gc => (Color::LightBlue, 'G'),
        Area::ClassMetadata => (Color::Green, 'M'),
        Area::CdsArchive => (Color::LightGreen, 'A'),
        Area::JitCode => (Color::Yellow, 'J'),
        Area::JitWork => (Color::LightYellow, 'j'),
        Area::Stack => (Color::Magenta, 'S'),
        Area::DirectBuffers => (Color::LightMagenta, 'D'),
        Area::JvmWork => (Color::Cyan, 'V'),
        Area::NativeLibrary => (Color::LightCyan, 'N'),
        Area::Code => (Color::Gray, 'C'),
        Area::MappedFile => (Color::DarkGray, 'f'),
        // Orange: all the colours that every terminal has, except black, are taken.
        Area::MallocUnknown => (Color::Indexed(208), 'U'),
        Area::MallocFreed => (Color::Red, 'F'),
        Area::Overhead => (Color::LightRed, 'o'),
        Area::Unattributed => (Color::White, '?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_areas_have_the_same_letter_or_colour() {
        let letters: HashSet<char> = Area::ALL.iter().map(|area| shade(*area).1).collect();
        let colours: HashSet<String> = Area::ALL.iter().map(|area| format!("{:?}", shade(*area).0)).collect();
        assert_eq!((letters.len(), colours.len()), (Area::ALL.len(), Area::ALL.len()));
    }
}
