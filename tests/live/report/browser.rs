//! A headless browser that opens a page, runs a probe in it and gives what the probe found and what the console shows.

use crate::common::skip;
use serde_json::Value;
use std::path::{Path, PathBuf};
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
        self.opened(name, &with_probe(html, nonce, probe), None)
    }

    /// On screens of these widths, of people who want dark pages or light ones; the probe's answer on each.
    pub fn facts_on(
        &self,
        screens: &[(u32, bool)],
        name: &str,
        html: &str,
        nonce: &str,
        probe: &str,
    ) -> Facts {
        // A window has a least width, a frame has none. One over another: what is not on the screen is not drawn.
        let frame = |(index, (width, is_dark)): (usize, &(u32, bool))| {
            let scheme = if *is_dark { "dark" } else { "light" };
            format!(
                "<iframe name=\"{index}\" src=\"framed.html\" style=\"position:absolute;top:0;left:0;height:900px;border:0;\
                 width:{width}px;color-scheme:{scheme}\"></iframe>"
            )
        };
        let frames: String = screens.iter().enumerate().map(frame).collect();
        let outer = format!(
            "<!doctype html><html><head><meta name=\"color-scheme\" content=\"light dark\"></head><body>{FACTS}<script>\n\
             const found = []; addEventListener('message', ({{ data }}) => {{ if (!data.isProbe) return; found[data.index] = data.found;\n\
             if (Object.keys(found).length === {}) {SAY} }});</script>{frames}</body></html>",
            screens.len()
        );
        self.opened(name, &outer, Some(&with_probe(html, nonce, probe)))
    }

    fn opened(&self, name: &str, html: &str, framed: Option<&str>) -> Facts {
        let directory =
            std::env::temp_dir().join(format!("marusa-test-browser-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let page = directory.join("page.html");
        std::fs::write(&page, html).expect("written");
        framed.iter().for_each(|text| std::fs::write(directory.join("framed.html"), text).expect("written"));
        let output = self
            .command(&directory)
            .args(["--window-size=1280,900", "--virtual-time-budget=30000"])
            .args(["--enable-logging=stderr", "--dump-dom"])
            .arg(format!("file://{}", page.display()))
            .output()
            .expect("the browser starts");
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        self.tidy(directory);
        let found = dom
            .split_once("<pre id=\"facts\" hidden=\"\">FACTS")
            .and_then(|(_, rest)| rest.split_once("END</pre>"));
        let (json, _) =
            found.unwrap_or_else(|| panic!("the probe did not end; {} bytes of page\n{errors}", dom.len()));
        // The dump is markup: what JSON has of it is escaped.
        let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        let value: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
        for one in value.as_array().unwrap_or(&vec![value.clone()]) {
            assert_eq!(one["error"], Value::Null, "the probe failed");
        }
        // The advice to whoever reads pixels is for the probe.
        let is_said = |line: &&str| line.contains(":CONSOLE") && !line.contains("willReadFrequently");
        let console = errors.lines().filter(is_said).map(str::to_string).collect();
        Facts { value, console }
    }

    /// The page at a URL once its scripts are done, and what was said on the console.
    pub fn visit(&self, name: &str, url: &str) -> (String, Vec<String>) {
        let directory = std::env::temp_dir().join(format!("marusa-test-visit-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let output = self
            .command(&directory)
            .args(["--window-size=1280,900", "--virtual-time-budget=5000"])
            .args(["--enable-logging=stderr", "--dump-dom", url])
            .output()
            .expect("the browser starts");
        self.tidy(directory);
        let said = String::from_utf8_lossy(&output.stderr);
        let console = said.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_string).collect();
        (String::from_utf8_lossy(&output.stdout).into_owned(), console)
    }

    /// How many sheets of paper the page takes; none where nothing is written on them.
    pub fn sheets(&self, name: &str, html: &str) -> usize {
        let directory = std::env::temp_dir().join(format!("marusa-test-paper-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let (page, paper) = (directory.join("page.html"), directory.join("page.pdf"));
        std::fs::write(&page, html).expect("written");
        let mut command = self.command(&directory);
        command.args([
            "--virtual-time-budget=10000",
            "--no-pdf-header-footer",
            &format!("--print-to-pdf={}", paper.display()),
        ]);
        let output = command.arg(format!("file://{}", page.display())).output().expect("the browser starts");
        let pdf =
            std::fs::read(&paper).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        self.tidy(directory);
        let pdf = String::from_utf8_lossy(&pdf);
        if pdf.contains("/Type /Font") { pdf.matches("/Type /Page\n").count() } else { 0 }
    }

    fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(self.name);
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]);
        command.args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-extensions",
        ]);
        command.arg(format!("--user-data-dir={}", directory.join("profile").display()));
        command
    }

    fn tidy(&self, directory: PathBuf) {
        // Helpers of the browser may still write there.
        let _ = std::fs::remove_dir_all(directory);
    }
}

/// Where what was found is put, and what puts it there.
const FACTS: &str = "<pre id=\"facts\" hidden></pre>";
const SAY: &str = "document.getElementById('facts').textContent = 'FACTS' + JSON.stringify(found) + 'END';";

/// The page with a script that runs the probe, and says what it found here or to the page around it.
fn with_probe(html: &str, nonce: &str, probe: &str) -> String {
    let (before, after) = html.rsplit_once("</body>").expect("a page");
    format!(
        "{before}{FACTS}<script nonce=\"{nonce}\">(async () => {{ const tick = () => new Promise(done => \
         setTimeout(done, 100)); const until = async is => {{ for (let left = 100; left > 0 && !is(); left--) await tick(); }};\n\
         const work = async () => {{ {probe} }};\n\
         let found; try {{ found = await work(); }} catch (error) {{ found = {{ error: String(error.stack) }}; }}\n\
         {SAY} if (parent !== window) parent.postMessage({{ isProbe: true, index: Number(window.name), found }}, '*'); }})();\
         </script></body>{after}"
    )
}
