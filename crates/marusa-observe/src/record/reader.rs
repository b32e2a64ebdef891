//! Reads the files of a recording, whatever moment they end at. A file is as hostile as the target: every number is checked,
//! and from the first record on that makes no sense the rest of its file is dropped, and that is reported. Memory is in proportion
//! to the files (`limits::INPUT_FACTOR`), and no record costs more time than its bytes: a file that asks for more is refused.

use super::frame::{self, FormError, Kind, Next};
use super::history::{History, Recording, Torn};
use super::key::{Key, Measure};
use super::moment::Moment;
use super::note::Note;
use super::writer::{Ending, JvmFacts, Session};
use crate::base::Allowance;
use crate::base::limits::{RECORDING_FIGURES_FREE, RECORDING_FIGURES_PER_BYTE};
use crate::base::varint;
use crate::os::budget;
use std::collections::HashMap;

/// What is kept next to the bytes of a record, in tables and lists: of a JVM, a series, a moment, a change, a text.
const JVM_BYTES: u64 = 768;
const KEY_BYTES: u64 = 320;
const MOMENT_BYTES: u64 = 16;
const CHANGE_BYTES: u64 = 24;
const TEXT_BYTES: u64 = 256;

/// Bytes of a file up to the end of its last whole record: who goes on with it begins there.
pub fn whole_bytes(file: &[u8]) -> Result<usize, FormError> {
    let mut body = frame::body(file)?;
    let mut allowance = Allowance::of(file.len() as u64);
    loop {
        match frame::next(&mut body, &mut allowance) {
            Next::Record(..) => {}
            Next::TooLarge => return Err(FormError::Packed),
            Next::End | Next::Torn(_) => return Ok(file.len() - body.len()),
        }
    }
}

/// All files of a recording, in their order.
pub fn read(files: &[&[u8]]) -> Result<Recording, FormError> {
    let mut reader = Reader::default();
    files.iter().try_for_each(|file| reader.file(file))?;
    reader.finish()
}

/// Reads one file after the other, so that they need not all be in memory.
pub struct Reader {
    recording: Recording,
    /// For what is kept, of all files.
    allowance: Allowance,
    /// By pid and start.
    known: HashMap<(i32, u64), usize>,
    /// The latest moment of all JVMs, on the recording's steady clock.
    latest_ms: u64,
    /// For each recording, how far its steady clock is behind the first one's.
    offsets: HashMap<String, u64>,
    now: Clock,
    /// By the number that the file gives them.
    jvms: HashMap<u64, Local>,
}

/// The clocks as the file has them, and what is added to the steady one.
#[derive(Clone, Copy, Default)]
struct Clock {
    file: Moment,
    offset: u64,
}

/// A JVM as this file names it.
struct Local {
    history: usize,
    /// Where each of its series is in the history; `None`: a key that this version does not know.
    places: Vec<Option<usize>>,
    values: Vec<Option<u64>>,
    /// No sample has come since it was named: what the sample does not name is gone.
    is_new: bool,
    /// For each, whether it counts on the file's clock.
    is_clock: Vec<bool>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            recording: Recording::default(),
            allowance: Allowance::of(0),
            known: HashMap::new(),
            latest_ms: 0,
            offsets: HashMap::new(),
            now: Clock::default(),
            jvms: HashMap::new(),
        }
    }
}

impl Reader {
    pub fn file(&mut self, file: &[u8]) -> Result<(), FormError> {
        let mut body = frame::body(file)?;
        self.recording.bytes += file.len() as u64;
        self.allowance.grow(file.len() as u64);
        let mut to_unpack = Allowance::of(file.len() as u64);
        loop {
            budget::check_now().map_err(FormError::GivenUp)?;
            let before = body.len();
            let why = match frame::next(&mut body, &mut to_unpack) {
                Next::Record(kind, payload) => match self.record(kind, &payload) {
                    Some(()) => continue,
                    None if self.allowance.is_spent() => return Err(FormError::Large),
                    None => "a record makes no sense",
                },
                Next::TooLarge => return Err(FormError::Packed),
                Next::End => return Ok(()),
                Next::Torn(why) => why,
            };
            let segment = self.recording.sessions.last().map_or(0, |session| session.segment);
            self.recording.torn.push(Torn { segment, dropped_bytes: before as u64, why });
            return Ok(());
        }
    }

    /// What was read; whoever looks at it looks at each series at each moment.
    pub fn finish(self) -> Result<Recording, FormError> {
        let of_bytes = self.recording.bytes.saturating_mul(RECORDING_FIGURES_PER_BYTE);
        let mut left = RECORDING_FIGURES_FREE.saturating_add(of_bytes);
        for history in &self.recording.jvms {
            let (keys, moments) = (history.keys().len(), history.len());
            left = (keys as u64)
                .checked_mul(moments as u64)
                .and_then(|figures| left.checked_sub(figures))
                .ok_or(FormError::Figures { keys, moments })?;
        }
        Ok(self.recording)
    }

    /// `None`: it makes no sense, or the allowance is spent.
    fn record(&mut self, kind: Kind, payload: &[u8]) -> Option<()> {
        self.recording.is_closed = kind == Kind::Close;
        let mut rest = payload;
        match kind {
            Kind::Session => {
                self.allowance.take(TEXT_BYTES + 2 * payload.len() as u64)?;
                self.session(serde_json::from_slice(payload).ok()?);
            }
            Kind::Jvm => {
                let number = varint::take(&mut rest)?;
                self.allowance.take(JVM_BYTES + payload.len() as u64)?;
                self.jvm(number, serde_json::from_slice(rest).ok()?);
            }
            Kind::Keys => self.keys(&mut rest)?,
            Kind::Sample => self.sample(&mut rest)?,
            Kind::End => {
                let number = varint::take(&mut rest)?;
                let at = self.moment(&mut rest)?;
                let ending: Ending = serde_json::from_slice(rest).ok()?;
                let local = self.jvms.remove(&number)?;
                self.recording.jvms[local.history].ending = Some((at, ending));
            }
            Kind::Note => {
                let at = self.moment(&mut rest)?;
                // A byte that is not UTF-8 becomes three.
                self.allowance.take(TEXT_BYTES + 3 * payload.len() as u64)?;
                self.recording.notes.push(Note::read(at, &String::from_utf8_lossy(rest)));
            }
            Kind::Close => {
                self.moment(&mut rest)?;
            }
            Kind::Unknown => {}
        }
        Some(())
    }

    fn session(&mut self, session: Session) {
        let first = self.recording.sessions.first().map_or(session.started_ms, |first| first.started_ms);
        // A recorder that went on with a file comes after all that is there, whatever the clocks say.
        let behind = u64::try_from(session.started_ms.saturating_sub(first)).unwrap_or(0).max(self.latest_ms);
        let offset = *self.offsets.entry(session.recording.clone()).or_insert(behind);
        self.now = Clock { file: Moment { steady_ms: 0, wall_ms: session.started_ms }, offset };
        self.jvms.clear();
        self.recording.sessions.push(session);
    }

    fn jvm(&mut self, number: u64, facts: JvmFacts) {
        let history = *self.known.entry((facts.pid, facts.start_ticks)).or_insert_with(|| {
            self.recording.jvms.push(History::default());
            self.recording.jvms.len() - 1
        });
        let named = &mut self.recording.jvms[history];
        (named.facts, named.ending) = (facts, None);
        let local =
            Local { history, places: Vec::new(), values: Vec::new(), is_new: true, is_clock: Vec::new() };
        self.jvms.insert(number, local);
    }

    fn keys(&mut self, rest: &mut &[u8]) -> Option<()> {
        let local = self.jvms.get_mut(&varint::take(rest)?)?;
        let (first, count) = (varint::take(rest)?, varint::take(rest)?);
        if first != local.places.len() as u64 {
            return None;
        }
        let history = &mut self.recording.jvms[local.history];
        for _ in 0..count {
            let before = rest.len();
            let key = Key::take(rest)?;
            // The name is kept twice.
            self.allowance.take(KEY_BYTES + 2 * 3 * (before - rest.len()) as u64)?;
            let is_clock = key.as_ref().is_some_and(|key| Measure::CLOCKS.contains(&key.measure));
            local.is_clock.push(is_clock);
            local.places.push(key.map(|key| history.place(key)));
            local.values.push(None);
        }
        Some(())
    }

    fn sample(&mut self, rest: &mut &[u8]) -> Option<()> {
        let number = varint::take(rest)?;
        let at = self.moment(rest)?;
        let local = self.jvms.get_mut(&number)?;
        let history = &mut self.recording.jvms[local.history];
        let count = varint::take(rest)?;
        self.allowance.take(MOMENT_BYTES)?;
        let at = history.moment(at);
        self.latest_ms = self.latest_ms.max(history.moments[at].steady_ms);
        if std::mem::take(&mut local.is_new) {
            let named: Vec<usize> = local.places.iter().flatten().copied().collect();
            history.forget_others(&named, at);
        }
        let mut next = 0_usize;
        for _ in 0..count {
            let step = varint::take(rest)?;
            let index = next.checked_add(usize::try_from(step >> 1).ok()?)?;
            let value = local.values.get_mut(index)?;
            *value = match step & 1 {
                1 => None,
                _ => Some(value.unwrap_or(0).wrapping_add(varint::take_signed(rest)? as u64)),
            };
            let offset = if local.is_clock[index] { self.now.offset } else { 0 };
            if let Some(place) = local.places[index] {
                self.allowance.take(CHANGE_BYTES)?;
                history.note(place, at, value.map(|value| value.saturating_add(offset)));
            }
            next = index + 1;
        }
        Some(())
    }

    /// The next moment, on the recording's steady clock.
    fn moment(&mut self, rest: &mut &[u8]) -> Option<Moment> {
        let (step, drift) = (varint::take_signed(rest)?, varint::take_signed(rest)?);
        let file = &mut self.now.file;
        file.steady_ms = file.steady_ms.checked_add_signed(step)?;
        file.wall_ms = file.wall_ms.wrapping_add(step).wrapping_add(drift);
        Some(Moment { steady_ms: file.steady_ms.saturating_add(self.now.offset), wall_ms: file.wall_ms })
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
