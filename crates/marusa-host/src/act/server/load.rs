//! The clients of the server: wrk with a script of ours, one thread a client, each with a session of its own. It asks as
//! fast as it is answered, so its rate is the server's own pace, and its latencies are those of a server that is as busy as
//! it can be; or at a fixed rate, where a late answer makes no request later.

use super::{Server, ServerError};
use crate::act::trial::{self, Running, Start, TrialError, Turn};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("load.lua");
/// An answer that takes longer counts as an error: no collector pause is that long here.
const TIMEOUT: &str = "30s";
/// How much longer than it should the generator may run.
const LATE_MAX: Duration = Duration::from_secs(60);

/// Clients at work.
pub struct Load {
    running: Running,
    output: PathBuf,
}

impl Load {
    /// Load for `length`, rounded up to whole seconds. `rate`: requests a second of all clients.
    pub fn start(
        server: &Server,
        clients: u32,
        rate: Option<f64>,
        length: Duration,
    ) -> Result<Load, ServerError> {
        let failed = |path: &PathBuf, error| ServerError::File { path: path.clone(), error };
        let script = server.directory().join("load.lua");
        fs::write(&script, SCRIPT).map_err(|error| failed(&script, error))?;
        let output = server.directory().join("load.out");
        let seconds = length.as_secs_f64().ceil().max(1.0);
        let between = rate.map(|rate| (1e6 * f64::from(clients) / rate).round().to_string());
        let clients = clients.to_string();
        let mut command = vec![
            "wrk".to_string(),
            format!("-t{clients}"),
            format!("-c{clients}"),
            format!("-d{seconds}s"),
            "--timeout".to_string(),
            TIMEOUT.to_string(),
            "-s".to_string(),
            script.display().to_string(),
            server.url("scenario"),
        ];
        command.extend(between.into_iter().flat_map(|between| ["--".to_string(), between]));
        let limit = Duration::from_secs_f64(seconds) + LATE_MAX;
        let running = trial::start(&Start::new(command, output.clone(), output.clone(), limit));
        let running = running.map_err(|error| match error {
            TrialError::Missing { .. } => ServerError::NoLoad(
                "the load generator wrk is missing: install it (Debian: apt-get install wrk)".to_string(),
            ),
            error => error.into(),
        })?;
        Ok(Load { running, output })
    }

    /// Waits until a moment, or until the clients have ended, or until a signal.
    pub fn until(&mut self, deadline: Instant) -> Turn {
        self.running.until(deadline)
    }

    /// Waits for its end and gives what it printed.
    pub fn wait(mut self) -> Result<String, ServerError> {
        loop {
            match self.running.until(Instant::now() + Duration::from_secs(1)) {
                Turn::Time => {}
                Turn::Ended => return self.printed(),
                Turn::Signal => return Err(ServerError::Signal),
                Turn::Limit | Turn::Output => {
                    return Err(ServerError::NoLoad("wrk does not end".to_string()));
                }
            }
        }
    }

    fn printed(self) -> Result<String, ServerError> {
        let ended = self.running.end();
        let bytes = fs::read(&self.output).map_err(|error| ServerError::File { path: self.output, error })?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match ended.is_good() {
            true => Ok(text),
            false => Err(ServerError::NoLoad(format!("wrk: {}: {}", ended.words(), text.trim()))),
        }
    }
}
