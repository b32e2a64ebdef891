//! Notes of a recording: what people should know that no series says. One that is about a single JVM begins with "pid N: ", by
//! which it is distinguished, so that it stands in the picture of that JVM and in no other.

use super::moment::Moment;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub at: Moment,
    /// The JVM that it is about; `None`: the whole recording.
    pub pid: Option<i32>,
    pub text: String,
}

/// The text of a note about one JVM, as files have it.
pub fn about(pid: i32, text: &str) -> String {
    format!("pid {pid}: {text}")
}

impl Note {
    /// From the text of a file.
    pub fn read(at: Moment, text: &str) -> Note {
        let split = text.strip_prefix("pid ").and_then(|rest| rest.split_once(": "));
        let about = split.and_then(|(pid, rest)| Some((pid.parse().ok()?, rest)));
        match about {
            Some((pid, rest)) => Note { at, pid: Some(pid), text: rest.to_string() },
            None => Note { at, pid: None, text: text.to_string() },
        }
    }

    /// Whether it belongs into the picture of the JVM with this pid.
    pub fn concerns(&self, pid: i32) -> bool {
        self.pid.is_none_or(|about| about == pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_about_one_jvm_comes_back_with_its_pid() {
        let of = |text: &str| Note::read(Moment::default(), text);
        let note = of(&about(7, "near its memory limit"));
        assert_eq!((note.pid, note.text.as_str()), (Some(7), "near its memory limit"));
        assert!(note.concerns(7) && !note.concerns(8));
        for whole in ["the clock was set", "pid x: y", "pid 7 alone", "pid 99999999999: y"] {
            let note = of(whole);
            assert!(note.pid.is_none() && note.text == whole && note.concerns(8), "{whole}");
        }
    }
}
