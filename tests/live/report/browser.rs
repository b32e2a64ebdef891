//! A headless browser that opens a page, runs a probe in it and gives what the probe found and what was said on the console.

use crate::common::skip;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

pub struct Browser {
    name: &'static str,
}

pub struct Facts {
    /// What the probe gave.
    pub value: Value,
    /// Every line, errors or not.
    pub console: Vec<String>,
}

impl Browser {
    pub fn find() -> Option<Browser> {
        let works = |name: &&&str| {
            Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
        };
        let found = NAMES.iter().find(works).copied().map(|name| Browser { name });
        if found.is_none() {
            skip("no Chromium; scripts/setup installs it");
        }
        found
    }

    /// `probe`: the body of an async function that returns what is to be known.
    pub fn facts(&self, name: &str, html: &str, nonce: &str, probe: &str) -> Facts {
        let directory =
            std::env::temp_dir().join(format!("marusa-test-browser-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let page = directory.join("page.html");
        let script = format!(
            "<pre id=\"facts\"></pre><script nonce=\"{nonce}\">(async () => {{ const tick = () => new Promise(done => \
             setTimeout(done, 100)); const until = async is => {{ for (let left = 100; left > 0 && !is(); left--) await tick(); }};\n\
             const work = async () => {{ {probe} }};\n\
             let found; try {{ found = await work(); }} catch (error) {{ found = {{ error: String(error.stack) }}; }}\n\
             document.getElementById('facts').textContent = 'FACTS' + JSON.stringify(found) + 'END'; }})();</script></body>"
        );
        let (before, after) = html.rsplit_once("</body>").expect("a page");
        std::fs::write(&page, format!("{before}{script}{after}")).expect("written");
        let output = Command::new(self.name)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-extensions",
            ])
            .args([
                "--window-size=1280,900",
                "--virtual-time-budget=30000",
                "--enable-logging=stderr",
                "--dump-dom",
            ])
            .arg(format!("--user-data-dir={}", directory.join("profile").display()))
            .arg(format!("file://{}", page.display()))
            .output()
            .expect("the browser starts");
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        self.tidy(directory);
        let found =
            dom.split_once("<pre id=\"facts\">FACTS").and_then(|(_, rest)| rest.split_once("END</pre>"));
        let (json, _) =
            found.unwrap_or_else(|| panic!("the probe did not end; {} bytes of page\n{errors}", dom.len()));
        // The dump is markup: what JSON has of it is escaped.
        let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        let value: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
        assert_eq!(value["error"], Value::Null, "the probe failed");
        // The advice to whoever reads pixels is for the probe.
        let is_said = |line: &&str| line.contains(":CONSOLE") && !line.contains("willReadFrequently");
        let console = errors.lines().filter(is_said).map(str::to_string).collect();
        Facts { value, console }
    }

    fn tidy(&self, directory: PathBuf) {
        // Helpers of the browser may still write there.
        let _ = std::fs::remove_dir_all(directory);
    }
}
