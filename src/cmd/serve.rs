//! `marusa serve`: one service for all JVMs of a node. It watches them as `record --all` does, and answers Prometheus, programs and
//! people from what it saw last.

mod answers;
mod guard;
mod http;
mod push;
mod slow;
mod store;
mod tls;
mod web_config;

use super::record::output::{Keep, Output};
use super::record::served::Served;
use super::record::status::Status;
use super::record::watch::{Asked, Watch};
use super::record::{keep, percent};
use super::store::Store;
use super::{Failure, amount};
use crate::act::watchdog;
use crate::base::Refused;
use crate::cmd::target;
use crate::os::identity::HostRoot;
use crate::os::{host, rights};
use crate::serve::Node;
use crate::serve::node::Limits;
use crate::store::layout::Place;
use anyhow::Context;
use guard::Guard;
use push::Push;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use store::Storing;

#[derive(clap::Args, Debug)]
pub struct ServeArgs {
    /// Address and port; without a port 9466
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9466", value_parser = address)]
    listen: SocketAddr,
    /// Sampling interval; up to ten times shorter near a memory limit
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = amount::duration)]
    every: Duration,
    /// Maximum age of an account while nothing changes; changes are read sooner
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = amount::duration)]
    account_every: Duration,
    /// CPU budget, of one core, except near a memory limit
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percent)]
    cpu: f64,
    /// Memory budget: a quarter each for kept accounts, for kept samples, and for OTLP requests that wait
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = amount::bytes)]
    memory: u64,
    /// Leave out JVMs that are younger: javac and other short runs would each leave a set of series
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = amount::duration_or_none)]
    min_age: Duration,
    /// JVMs that are watched at once
    #[arg(long, value_name = "COUNT", default_value = "500", value_parser = clap::value_parser!(u32).range(1..=5000))]
    jvms_max: u32,
    /// TLS, client certificates, users and headers: a file in the form of Prometheus' exporter-toolkit; read again when it changes
    #[arg(long, value_name = "FILE")]
    web_config: Option<PathBuf>,
    /// Where the root of the host is mounted, in a container
    #[arg(long, value_name = "DIRECTORY")]
    host_root: Option<PathBuf>,
    /// Also record, to this file or ring of files; it is continued if it exists
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How much of the recording is kept: a time (24h) or a size (64M)
    #[arg(long, value_name = "TIME|SIZE", requires = "output", default_value = "24h", value_parser = keep)]
    keep: Keep,
    /// Also write the recording as Parquet tables, once an hour, below this directory or s3://BUCKET/PREFIX; needs --output
    #[arg(long, value_name = "DIRECTORY|URL", requires = "output")]
    store: Option<String>,
    /// The cluster's name in the store
    #[arg(long, value_name = "NAME", requires = "store", default_value = "default")]
    cluster: String,
    /// Also push metrics to an OpenTelemetry back end by OTLP/HTTP; /v1/metrics is added to a URL without a path
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Interval between pushes; as --every if left out
    #[arg(long, value_name = "TIME", value_parser = amount::duration)]
    otlp_every: Option<Duration>,
}

/// "127.0.0.1:9466", "[::1]:9466", or an address alone.
fn address(text: &str) -> Result<SocketAddr, Refused> {
    const PORT: u16 = 9466;
    let alone = || text.parse().map(|ip| SocketAddr::new(ip, PORT));
    text.parse::<SocketAddr>()
        .or_else(|_| alone())
        .map_err(|_| "it must be an address, with or without a port: 127.0.0.1:9466, [::]:9466".into())
}

pub fn run(args: &ServeArgs) -> anyhow::Result<u8> {
    let push = push::Settings::of(args.otlp.as_deref(), &|name| std::env::var(name).ok())?;
    let me = target::own()?;
    let waiting = target::waiting(&me)?;
    let guard = Guard::new(args.web_config.as_deref()).map_err(Failure::usage)?;
    let host_root = args.host_root.as_deref().map_or_else(|| Ok(HostRoot::usual()), HostRoot::at);
    let host_root = host_root.map_err(|error| Failure::usage(format!("cannot open --host-root: {error}")))?;
    let listener = TcpListener::bind(args.listen).map_err(|error| {
        Failure::usage(format!("cannot listen on {}: {error}; choose another with --listen", args.listen))
    })?;
    let address = listener.local_addr().unwrap_or(args.listen);
    let limits = Limits { min_age: args.min_age, every: args.every, memory_bytes: args.memory };
    let node = Arc::new(Node::new(limits));
    let mut output = match &args.output {
        Some(path) => Some(Output::open(path, Some(args.keep), path.exists())?),
        None => None,
    };
    let storing = storing(args, &host_root, output.as_mut())?;
    watchdog::start();
    host::allow_open_files();
    let asked = Asked {
        every: args.every,
        account_every: args.account_every.max(args.every),
        holders_every: None,
        heap_every: None,
        cpu_share: args.cpu / 100.0,
        length: None,
        is_all: true,
        jvms_max: args.jvms_max as usize,
    };
    let mut watch = Watch::start(asked, output, None, Some(Served { node: node.clone(), host_root, me }))?;
    let push = match push {
        Some(settings) => {
            let (shown, every) = (settings.shown(), args.otlp_every.unwrap_or(args.every));
            let push = Push::start(settings, every, node.clone(), limits.part_bytes())
                .with_context(|| format!("cannot push to {shown}"))?;
            crate::say!("marusa: pushing metrics to {shown}");
            Some(push)
        }
        None => None,
    };
    if let Some(storing) = storing {
        let failed = |error| Failure::target(format!("cannot store: {error}"));
        storing.start(node.clone()).map_err(failed)?;
    }
    let scheme = if guard.is_tls() { "https" } else { "http" };
    warn(&guard);
    http::start(listener, node, guard).with_context(|| format!("cannot answer on {address}"))?;
    crate::say!("marusa: listening on {scheme}://{address}");
    let ended = watch.run(&waiting, Status::new(None));
    push.into_iter().for_each(Push::finish);
    ended.map(|_| 0)
}

/// The store that was asked for; its recording has a file for each hour.
fn storing(
    args: &ServeArgs,
    host_root: &HostRoot,
    output: Option<&mut Output>,
) -> anyhow::Result<Option<Storing>> {
    let (Some(text), Some(path), Some(output)) = (&args.store, &args.output, output) else { return Ok(None) };
    let store = Store::open(text).map_err(Failure::usage)?;
    let place = Place::new(&args.cluster, &host_root.node().unwrap_or_default());
    let lock = store::lock(&store, &place).map_err(Failure::usage)?;
    output.turn_each_hour();
    let next = output.segment;
    Ok(Some(Storing { store, place, recording: path.clone(), next, _lock: lock }))
}

/// What is missing, and which figures that costs.
fn warn(guard: &Guard) {
    for lack in rights::lacking() {
        crate::say!("marusa: {}: {}; {}", lack.what, lack.costs, lack.help);
    }
    if guard.expires().is_some_and(|at| at < SystemTime::now()) {
        crate::say!(
            "marusa: the certificate of --web-config has expired: clients refuse it until the file is replaced"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_a_port() {
        assert_eq!(address("127.0.0.1:80"), Ok(SocketAddr::from(([127, 0, 0, 1], 80))));
        assert_eq!(address("0.0.0.0"), Ok(SocketAddr::from(([0, 0, 0, 0], 9466))));
        assert!(address("[::]:1").is_ok() && address("::1").is_ok());
        assert!(address("localhost").is_err() && address("1.2.3.4:x").is_err());
    }
}
