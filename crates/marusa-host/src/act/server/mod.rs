//! The real server of the experiments, started and put under load: DayTrader 2.1.7, a stock trader's Java EE application with
//! EJB, JPA, JMS and JSP, on TomEE 8 with a Derby database inside. `recipe` brings it.
//!
//! Each start has a base directory of its own (conf, work, logs, the database), so that trials share nothing, the installed
//! server is never written to, and two may run side by side. All listens on 127.0.0.1.

pub mod load;
pub mod recipe;

use super::signals;
use super::trial::{self, Running, Start, TrialError, Turn};
use crate::base::{Bytes, Gap};
use crate::os::http;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to be ready on a busy machine; 7 s on an idle one.
const READY_MAX: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_millis(200);
/// To fill the database takes 4 s on an idle machine.
const BUILD_MAX: Duration = Duration::from_secs(120);
const PAGE_MAX: Duration = Duration::from_secs(30);
/// The part of its log that is shown when it does not get ready.
const LOG_LINES_QUOTED: usize = 5;
/// The ports that the recipe has set; each start has others.
const RECIPE_PORT: &str = "\"28080\"";
const RECIPE_SHUTDOWN_PORT: &str = "\"28005\"";
/// Else the broker would listen on a port of its own, the same for each server.
const BROKER: &str = "<Resource id=\"Default JMS Resource Adapter\" type=\"ActiveMQResourceAdapter\">\n    \
    BrokerXmlConfig = broker:(vm://localhost)?useJmx=false&amp;persistent=false\n    \
    ServerUrl = vm://localhost?async=true\n</Resource>\n</tomee>";

/// Why there is no server, or no answer.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Trial(#[from] TrialError),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// With the end of its log.
    #[error("the server did not get ready: {why}{log}")]
    NotReady { why: String, log: String },
    #[error("the load cannot be made: {0}")]
    NoLoad(String),
    /// Ctrl-C, or another signal to end.
    #[error("interrupted")]
    Signal,
}

/// What is started.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The directory that the recipe made.
    pub installed: &'a Path,
    pub java: &'a Path,
    /// 8, 11, 17, 21.
    pub feature: u32,
    /// Heap, collector, pages, logs.
    pub options: &'a [String],
    /// Data that the JVM keeps alive besides the server's own, and where `bench.KeepAlive` is, which makes it.
    pub alive: Option<(&'a Path, Bytes)>,
    /// It is ended after this, whatever happens.
    pub limit: Duration,
}

/// A server that answers. Dropped, it is ended and its directory is gone.
pub struct Server {
    // Before the directory: it is ended before its files go.
    running: Running,
    base: TempDir,
    /// The JVM.
    pub pid: i32,
    pub port: u16,
    /// From its start until a user could log in, with the database built.
    pub ready_seconds: f64,
}

impl Server {
    /// Comes back when a user can log in.
    pub fn start(wanted: &Wanted) -> Result<Server, ServerError> {
        let base = tempfile::Builder::new().prefix("marusa-server-").tempdir();
        let base = base.map_err(|error| ServerError::File { path: std::env::temp_dir(), error })?;
        let port =
            free_port().map_err(|error| ServerError::NoLoad(format!("there is no free port: {error}")))?;
        lay_out(wanted.installed, base.path(), port)?;
        let log = base.path().join("log");
        let mut start = Start::new(command(wanted, base.path()), log.clone(), log, wanted.limit);
        start.directory = Some(base.path().to_path_buf());
        start.removed = super::launched::OF_THE_SHELL.map(String::from).to_vec();
        let running = trial::start(&start)?;
        let mut server = Server { pid: running.pid(), running, base, port, ready_seconds: 0.0 };
        server.get_ready()?;
        server.ready_seconds = server.running.elapsed().as_secs_f64();
        Ok(server)
    }

    /// What it may write to, as the JVM's own log: `gc.log` here is `gc.log` there.
    pub fn directory(&self) -> &Path {
        self.base.path()
    }

    pub fn elapsed(&self) -> Duration {
        self.running.elapsed()
    }

    pub fn url(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/daytrader/{page}", self.port)
    }

    /// Whether a user can log in still: pages without a database behind them answer too.
    pub fn can_log_in(&self) -> Result<(), Gap> {
        let page = http::get_within(&self.url("app?action=login&uid=uid:0&passwd=xxx"), PAGE_MAX)?;
        match page.contains("Welcome to DayTrader") {
            true => Ok(()),
            false => {
                Err(Gap::new("the login page", crate::base::Why::NotMeasured)
                    .hint("it does not greet the user"))
            }
        }
    }

    /// Ends it: its shutdown hooks run, its logs are complete.
    pub fn end(self) -> (trial::Ended, TempDir) {
        (self.running.end(), self.base)
    }

    fn get_ready(&mut self) -> Result<(), ServerError> {
        let deadline = Instant::now() + READY_MAX;
        self.pid = self.the_jvm(deadline)?;
        while http::get_within(&self.url(""), PAGE_MAX).is_err() {
            self.wait(deadline, "its first page did not come")?;
        }
        // On JDK 25 the pages come without EJB and from another database: no DayTrader.
        if self.log().contains("OpenEJB has encountered a fatal error") {
            return Err(self.not_ready("OpenEJB does not run on this JDK: take 8, 11, 17 or 21"));
        }
        for step in ["config?action=buildDBTables", "config?action=buildDB"] {
            if let Err(gap) = http::get_within(&self.url(step), BUILD_MAX) {
                return Err(self.not_ready(&gap.to_string()));
            }
        }
        self.can_log_in().map_err(|gap| self.not_ready(&gap.to_string()))
    }

    /// The process itself, or the one below it where a wrapper starts it.
    fn the_jvm(&mut self, deadline: Instant) -> Result<i32, ServerError> {
        loop {
            if let Some(pid) = super::dialogue::jvm_below(self.running.pid()) {
                return Ok(pid);
            }
            self.wait(deadline, "it is not a JVM")?;
        }
    }

    fn wait(&mut self, deadline: Instant, what: &str) -> Result<(), ServerError> {
        match self.running.until(Instant::now() + LOOK) {
            Turn::Signal => Err(ServerError::Signal),
            Turn::Ended => Err(self.not_ready("it ended")),
            Turn::Time if Instant::now() < deadline => Ok(()),
            _ => Err(self.not_ready(&format!("{what} within {} s", READY_MAX.as_secs()))),
        }
    }

    fn log(&self) -> String {
        let bytes = fs::read(self.base.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn not_ready(&self, why: &str) -> ServerError {
        if signals::pending() {
            return ServerError::Signal;
        }
        let log = self.log();
        let is_telling = |line: &&str| {
            ["Error", "error", "Exception", "SEVERE", "warning"].iter().any(|word| line.contains(word))
        };
        let mut quoted: Vec<&str> = log.lines().filter(is_telling).take(LOG_LINES_QUOTED).collect();
        if quoted.is_empty() {
            let lines: Vec<&str> = log.lines().collect();
            quoted = lines[lines.len().saturating_sub(LOG_LINES_QUOTED)..].to_vec();
        }
        let log: String = quoted.iter().map(|line| format!("\n  {line}")).collect();
        ServerError::NotReady { why: why.to_string(), log }
    }
}

/// As tomee/bin/catalina.sh starts it, except for the shell.
fn command(wanted: &Wanted, base: &Path) -> Vec<String> {
    let tomee = wanted.installed.join("tomee");
    let (tomee, base) = (tomee.display(), base.display());
    let mut command = vec![wanted.java.display().to_string()];
    command.extend(wanted.options.iter().cloned());
    if wanted.feature >= 9 {
        for package in ["java.base/java.lang", "java.base/java.io", "java.rmi/sun.rmi.transport"] {
            command.push(format!("--add-opens={package}=ALL-UNNAMED"));
        }
    }
    let (mut class_path, mut alive) =
        (format!("{tomee}/bin/bootstrap.jar:{tomee}/bin/tomcat-juli.jar"), Vec::new());
    if let Some((classes, bytes)) = wanted.alive {
        class_path.push_str(&format!(":{}", classes.display()));
        alive = vec!["bench.KeepAlive".to_string(), (bytes >> 20).to_string()];
    }
    command.extend([
        format!("-javaagent:{tomee}/lib/openejb-javaagent.jar"),
        format!("-Djava.util.logging.config.file={base}/conf/logging.properties"),
        "-Djava.util.logging.manager=org.apache.juli.ClassLoaderLogManager".to_string(),
        // Else TomEE takes the application's packages for its own and hides them.
        "-Dopenejb.classloader.forced-load=org.apache.geronimo.samples".to_string(),
        format!("-Dcatalina.base={base}"),
        format!("-Dcatalina.home={tomee}"),
        format!("-Djava.io.tmpdir={base}/temp"),
        "-classpath".to_string(),
        class_path,
    ]);
    command.extend(alive);
    command.extend(["org.apache.catalina.startup.Bootstrap", "start"].map(String::from));
    command
}

/// A base directory: what the server writes to and what differs between two of them.
fn lay_out(installed: &Path, base: &Path, port: u16) -> Result<(), ServerError> {
    let tomee = installed.join("tomee");
    for directory in ["work", "temp", "logs", "webapps"] {
        let path = base.join(directory);
        fs::create_dir(&path).map_err(|error| ServerError::File { path, error })?;
    }
    copy(&tomee.join("conf"), &base.join("conf"))?;
    copy(&tomee.join("webapps/daytrader"), &base.join("webapps/daytrader"))?;
    edit(&base.join("conf/server.xml"), |text| {
        let text = text.replace(RECIPE_PORT, &format!("\"{port}\""));
        text.replace(RECIPE_SHUTDOWN_PORT, "\"-1\"")
    })?;
    edit(&base.join("conf/tomee.xml"), |text| text.replace("</tomee>", BROKER))
}

fn edit(path: &Path, change: impl Fn(String) -> String) -> Result<(), ServerError> {
    let failed = |error| ServerError::File { path: path.to_path_buf(), error };
    let before = fs::read_to_string(path).map_err(failed)?;
    let after = change(before.clone());
    if before == after {
        let error = io::Error::new(io::ErrorKind::InvalidData, "it is not as the recipe made it");
        return Err(failed(error));
    }
    fs::write(path, after).map_err(failed)
}

/// Files and directories; a link would lead out of what is ours, and a server has none.
fn copy(from: &Path, to: &Path) -> Result<(), ServerError> {
    let failed = |error| ServerError::File { path: from.to_path_buf(), error };
    fs::create_dir(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            copy(&from, &to)?;
        } else if kind.is_file() {
            fs::copy(&from, &to).map_err(|error| ServerError::File { path: from, error })?;
        }
    }
    Ok(())
}

/// One that is free now.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_directory_has_ports_of_its_own_and_leaves_the_server_as_it_is() {
        let place = tempfile::tempdir().expect("a directory");
        let conf = place.path().join("tomee/conf");
        fs::create_dir_all(&conf).expect("a directory");
        fs::create_dir_all(place.path().join("tomee/webapps/daytrader/WEB-INF")).expect("a directory");
        fs::write(place.path().join("tomee/webapps/daytrader/a.jsp"), "a").expect("a file");
        let server = "<Server port=\"28005\"><Connector port=\"28080\"/></Server>";
        fs::write(conf.join("server.xml"), server).expect("a file");
        fs::write(conf.join("tomee.xml"), "<tomee>\n</tomee>").expect("a file");
        let base = tempfile::tempdir().expect("a directory");
        lay_out(place.path(), base.path(), 4711).expect("laid out");
        let text = |path: &str| fs::read_to_string(base.path().join(path)).expect("a file");
        assert_eq!(text("conf/server.xml"), "<Server port=\"-1\"><Connector port=\"4711\"/></Server>");
        assert!(text("conf/tomee.xml").contains("broker:(vm://localhost)"));
        assert_eq!(text("webapps/daytrader/a.jsp"), "a");
        assert_eq!(fs::read_to_string(conf.join("server.xml")).expect("a file"), server);
        // A server that no recipe made.
        fs::write(conf.join("server.xml"), "<Server port=\"8005\"/>").expect("a file");
        let other = tempfile::tempdir().expect("a directory");
        let error = lay_out(place.path(), other.path(), 4711).expect_err("refused").to_string();
        assert!(error.contains("not as the recipe made it"), "{error}");
    }
}
