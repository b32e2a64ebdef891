//! The log of collections of each run: the option that has the JVM write one, and what it says when the run is over.

use super::ready::Ready;
use crate::base::limits::GC_LOG_BYTES_MAX;
use crate::base::{Gap, Known, Why};
use crate::experiment::trial_record::{GC_PAUSE_MAX, GC_PAUSE_P99, GC_PAUSE_TIME, GC_PAUSES, Trial};
use crate::measure::gc_log;
use crate::os::input_file;
use std::path::{Path, PathBuf};

const WHAT: &str = "stops of the garbage collector";

/// The log of one run.
pub struct GcLog {
    pub options: Vec<String>,
    /// `Err`: none is written.
    path: Known<PathBuf>,
}

impl GcLog {
    /// `feature`: the release of the JVM, which decides the words of the option; `None`: not known yet.
    pub fn new(ready: &Ready, feature: Option<u32>, wanted: PathBuf) -> GcLog {
        let none =
            |hint: &str| GcLog { options: Vec::new(), path: Err(Gap::new(WHAT, Why::NotRead).hint(hint)) };
        let Some(feature) = feature else {
            return none("the command is not `java`: which release it starts is known after its first run");
        };
        if feature <= 8 && ready.has_own_gc_log {
            return none("JDK 8 writes one log, and it has one of yours (-Xloggc)");
        }
        let path = if is_plain(&wanted) { wanted } else { elsewhere(&wanted) };
        GcLog { options: gc_log::options(feature, &path.display().to_string()), path: Ok(path) }
    }

    /// Into the figures of the run.
    pub fn take(&self, trial: &mut Trial) {
        let summary = self.path.clone().and_then(|path| {
            let bytes = read(&path)?;
            gc_log::parse(&bytes).map(|log| log.summary())
        });
        match summary {
            Ok(summary) => {
                // A program that never stopped had no long stop.
                let (p99, longest) =
                    summary.quantiles.map_or((0.0, 0.0), |quantiles| (quantiles.p99_ms, quantiles.max_ms));
                trial.figures.insert(GC_PAUSES.to_string(), summary.pauses as f64);
                trial.figures.insert(GC_PAUSE_TIME.to_string(), summary.pause_ms);
                trial.figures.insert(GC_PAUSE_P99.to_string(), p99);
                trial.figures.insert(GC_PAUSE_MAX.to_string(), longest);
            }
            Err(gap) => trial.gaps.push(gap),
        }
    }
}

/// A colon parts the option, a percent sign stands for a number.
fn is_plain(path: &Path) -> bool {
    let text = path.to_str();
    text.is_some_and(|text| {
        text.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-+".contains(letter))
    })
}

fn elsewhere(wanted: &Path) -> PathBuf {
    let name = wanted.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    std::env::temp_dir().join(format!("marusa-{}-{name}", std::process::id()))
}

fn read(path: &Path) -> Known<Vec<u8>> {
    input_file::start(path, GC_LOG_BYTES_MAX).map_err(|error| {
        let hint = format!("the JVM was to write {}: {error}", path.display());
        Gap::new(WHAT, Why::NotMeasured).hint(hint)
    })
}
