//! HTTP load by a generator that the user has and names: `--load 'wrk -t1 -c8 -d30s http://localhost:8080/'`. Which
//! generator it is, which URL must answer before it starts, what is added so that it tells all it knows, and what its
//! output says. Nothing here runs it.

pub mod output;

pub use output::parse;

use crate::base::Refused;
use serde::Serialize;
use std::path::Path;
use std::str::FromStr;

/// The generators whose output is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Generator {
    Wrk,
    Hey,
    Oha,
    /// ApacheBench.
    Ab,
}

impl Generator {
    const ALL: [(&'static str, Generator); 4] =
        [("wrk", Generator::Wrk), ("hey", Generator::Hey), ("oha", Generator::Oha), ("ab", Generator::Ab)];

    pub fn name(self) -> &'static str {
        Generator::ALL.iter().find(|(_, other)| *other == self).map_or("", |(name, _)| name)
    }

    /// Where it comes from on Debian and Ubuntu.
    pub fn install(self) -> &'static str {
        match self {
            Generator::Wrk => "apt-get install wrk",
            Generator::Hey => "apt-get install hey",
            Generator::Oha => "cargo install oha",
            Generator::Ab => "apt-get install apache2-utils",
        }
    }
}

/// A load that is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    pub generator: Generator,
    /// The program and its arguments, as the user has them.
    pub arguments: Vec<String>,
    pub url: String,
}

/// What one run of a load came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Served {
    pub requests_per_second: f64,
    pub requests: Option<u64>,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
    pub max_ms: Option<f64>,
    /// Answers that were none, or were not of 2xx and 3xx. A server that refuses quickly is not fast.
    pub errors: u64,
}

impl Served {
    /// The share of requests that failed.
    pub fn error_share(&self) -> Option<f64> {
        let requests = self.requests.filter(|requests| *requests > 0)?;
        Some(self.errors as f64 / requests as f64)
    }
}

impl FromStr for Load {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Load, Refused> {
        let arguments =
            shlex::split(text).ok_or_else(|| format!("the quotation marks of '{text}' are not closed"))?;
        let program =
            arguments.first().ok_or("a command is needed, as 'wrk -t1 -c8 -d30s http://localhost:8080/'")?;
        let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let known = Generator::ALL.iter().find(|(known, _)| *known == name);
        let (_, generator) = known
            .ok_or_else(|| format!("'{name}' is none of wrk, hey, oha and ab, whose output is known"))?;
        let url = arguments[1..]
            .iter()
            .rev()
            .find(|argument| argument.starts_with("http://") || argument.starts_with("https://"));
        let url = url.ok_or_else(|| format!("'{text}' names no http:// URL"))?.clone();
        Ok(Load { generator: *generator, arguments, url })
    }
}

/// What wrk is given with `-s`, for it prints no quantile above the 99th of its own, and prints times rounded.
pub const WRK_SCRIPT: &str = "\
done = function(summary, latency, requests)
  io.write(string.format('marusa p50=%.0f p99=%.0f p999=%.0f max=%.0f requests=%d us=%d errors=%d\\n',
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max, summary.requests, summary.duration,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status + summary.errors.timeout))
end
";

impl Load {
    /// Whether wrk can be given a script: the user has none of his own.
    pub fn takes_script(&self) -> bool {
        self.generator == Generator::Wrk && !self.has(&["-s", "--script"])
    }

    /// The command, with what makes it tell all it knows. `script`: where `WRK_SCRIPT` lies.
    pub fn command(&self, script: Option<&str>) -> Vec<String> {
        let mut words = self.arguments.clone();
        let add: Vec<&str> = match self.generator {
            Generator::Wrk => {
                let latency: &[&str] = if self.has(&["--latency", "-L"]) { &[] } else { &["--latency"] };
                let script = script.filter(|_| self.takes_script());
                latency.iter().copied().chain(script.into_iter().flat_map(|script| ["-s", script])).collect()
            }
            Generator::Hey if !self.has(&["-o"]) => vec!["-o", "csv"],
            Generator::Oha if !self.has(&["--output-format", "-j", "--json"]) => {
                vec!["--no-tui", "--output-format", "json"]
            }
            _ => Vec::new(),
        };
        words.splice(1..1, add.into_iter().map(str::to_string));
        words
    }

    fn has(&self, names: &[&str]) -> bool {
        self.arguments.iter().any(|word| {
            names
                .iter()
                .any(|name| word == name || word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Load {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn generators_are_known_by_their_name() {
        let wrk = load("/opt/bin/wrk -t1 -c8 -d 30s -H 'Accept: text/html, */*' http://localhost:8080/a?b=c");
        assert_eq!((wrk.generator, wrk.url.as_str()), (Generator::Wrk, "http://localhost:8080/a?b=c"));
        assert_eq!(wrk.arguments[6], "Accept: text/html, */*");
        for (bad, why) in [
            ("", "a command is needed"),
            ("curl http://h/", "none of wrk"),
            ("wrk -c8", "no http:// URL"),
            ("wrk 'x", "not closed"),
        ] {
            let error = bad.parse::<Load>().expect_err(bad);
            assert!(error.0.contains(why), "{error}");
        }
    }

    #[test]
    fn what_is_added() {
        let line = |text: &str, script| load(text).command(script).join(" ");
        assert_eq!(
            line("wrk -t1 -d30s http://h/", Some("/s.lua")),
            "wrk --latency -s /s.lua -t1 -d30s http://h/"
        );
        assert_eq!(
            line("wrk -d 5s --latency -s my.lua http://h/", Some("/s.lua")),
            "wrk -d 5s --latency -s my.lua http://h/"
        );
        assert_eq!(line("hey -z 2s http://h/", None), "hey -o csv -z 2s http://h/");
        assert_eq!(line("oha -z 2s -j http://h/", None), "oha -z 2s -j http://h/");
        assert_eq!(line("ab -t 2 -c 4 http://h/", None), "ab -t 2 -c 4 http://h/");
    }
}
