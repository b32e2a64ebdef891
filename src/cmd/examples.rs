//! Examples below the help of each command and in its man page. Lines that begin with `marusa` are parsed by a test, so that
//! none of them can be out of date.

/// Below `marusa --help`: where to begin.
pub const FIRST: &str = "\
Examples:
  What runs here, and what fills the memory of one of them:
    marusa list
    marusa why 4711
  TARGET is a pid, or a part of the main class, jar or container name:
    marusa map catalina --by page-size
  The account of all of its memory:
    marusa map 4711
  Something is wrong, but what:
    marusa doctor 4711
  As it changes:
    marusa top
  Over time, and a page of it that opens in any browser:
    marusa record 4711 -o orders.marusa
    marusa report orders.marusa -o orders.html";

/// The exit status of every command.
pub const EXIT_STATUS: &str = "\
0  done
1  the answer is \"no\": a check failed, something was found
2  usage
3  the target cannot be read, or is gone
4  rights are missing";

const EXAMPLES: &[(&str, &str)] = &[
    (
        "why",
        "  What grows within half a minute, what is large, its owner, and what to do:\n    marusa why 4711\n  \
         Longer, for what grows slowly:\n    marusa why catalina 5m\n  At once, only what is large:\n    marusa why 4711 0s\n  \
         For scripts (exit status 1: an answer is a warning or worse):\n    marusa why 4711 60s --json --fail-on warn",
    ),
    ("list", "    marusa list\n    marusa list --json"),
    (
        "map",
        "  Areas and their biggest parts:\n    marusa map 4711\n  Which page sizes, and why not larger ones:\n    \
         marusa map catalina --by page-size\n  Is the whole heap on huge pages (exit status 1: no):\n    \
         marusa map 4711 --require 'heap>=95%@2M'\n  A page to share: treemap, page grid, tables, findings:\n    \
         marusa map 4711 --html account.html\n  Which Java class, C++ type or library keeps native memory:\n    \
         marusa map 4711 --by holder\n  The memory of each class loader, to find loader leaks:\n    \
         marusa map 4711 --by loader\n  The paper's table, from a file that `marusa freeze` wrote:\n    \
         marusa map --from app.frozen --taxonomy paper",
    ),
    (
        "container",
        "  What fills the container of a JVM, and how far its limit is:\n    marusa container 4711\n  A cgroup by its path:\n    \
         marusa container --cgroup /sys/fs/cgroup/kubepods.slice --json\n  What has the memory of the host:\n    \
         marusa container --host",
    ),
    (
        "heap",
        "  Which classes fill the heap, counted without a stop or a collection:\n    marusa heap 4711\n  \
         As a document, of the 100 largest:\n    marusa heap catalina --top 100 --json",
    ),
    (
        "top",
        "  All JVMs of the host; Enter goes into one, m sets a mark, ? is the help:\n    marusa top\n  One of them, \
         every five seconds:\n    marusa top catalina --every 5s",
    ),
    (
        "report",
        "  A recording, as one page that needs no network:\n    marusa report app.marusa -o report.html\n  What a frozen file or \
         a core dump holds:\n    marusa report app.frozen -o report.html",
    ),
    (
        "diff",
        "  What grew since a file was made; a frozen file, a core dump, or the JSON of an account:\n    \
         marusa diff morning.frozen 4711\n  A recording, from its start to its end, and between two moments of it:\n    \
         marusa diff orders.marusa\n    marusa diff orders.marusa@+10m orders.marusa@-5m --by arena\n  \
         For CI (exit status 1: it grew by more):\n    \
         marusa diff before.json 4711 --fail-on 64M --fail-on class_metadata=16M",
    ),
    (
        "record",
        "  Until Ctrl-C, or until it ends:\n    marusa record 4711 -o orders.marusa\n  The last hour of all JVMs of this \
         host:\n    marusa record --all -o host.marusa --every 5s --keep 1h\n  With the holders of malloc's blocks, and the \
         classes of the heap:\n    marusa record 4711 -o orders.marusa --holders-every 60s --heap-every 5m\n  `leak`, `diff`, \
         `report` and `export` read the file, also while it is written",
    ),
    (
        "serve",
        "  Metrics, JSON and a page of all JVMs of this host, on http://127.0.0.1:9466:\n    marusa serve\n  \
         For Prometheus on another host:\n    marusa serve --listen 0.0.0.0:9466\n  \
         With a recording of the last day, which a restart continues:\n    \
         marusa serve --output /var/lib/marusa/node.marusa --keep 24h\n  \
         Also to an OpenTelemetry collector:\n    marusa serve --otlp http://localhost:4318\n  \
         Also as Parquet for a fleet:\n    \
         marusa serve --output /var/lib/marusa/node.marusa --store s3://bucket/marusa --cluster eu1",
    ),
    (
        "leak",
        "  What of it grows without bound:\n    marusa leak orders.marusa\n  In full, without the first half hour:\n    \
         marusa leak orders.marusa --from +30m --parts\n  After a test that ran for hours (exit status 1: it leaks):\n    \
         marusa leak soak.marusa --fail-on growth",
    ),
    (
        "export",
        "  For DuckDB, pandas and Spark:\n    marusa export orders.marusa --parquet orders.parquet\n  For everything \
         else:\n    marusa export orders.marusa --csv - | head\n  As tables of a store of many nodes:\n    \
         marusa export node.marusa --layout hive --parquet /srv/marusa --cluster eu1",
    ),
    (
        "advise",
        "  The limit and -Xmx of a recorded server, and what they rest on:\n    marusa advise orders.marusa\n  \
         Of the JVMs of a store, as patches for Kubernetes:\n    marusa advise /srv/marusa --since 30d --emit kubernetes\n  \
         Of what Prometheus has kept of marusa serve:\n    \
         marusa advise http://prometheus:9090 --labels 'namespace=\"shop\"'\n  \
         A fleet's heap memory, split for the least time in collections:\n    marusa advise /srv/marusa --budget 200G\n  \
         Was earlier advice right (exit status 1: something was OOM-killed):\n    \
         marusa advise week2.marusa --check advice.json",
    ),
    ("fleet", "  What DuckDB needs to query a store:\n    marusa fleet sql duckdb --store /srv/marusa"),
    (
        "fleet sql",
        "  As ClickHouse reads a bucket:\n    marusa fleet sql clickhouse --store https://bucket.s3.amazonaws.com",
    ),
    (
        "audit",
        "  Our account against the JVM's own figures:\n    marusa audit 4711\n    marusa audit catalina --json",
    ),
    (
        "trim",
        "  What would come back:\n    marusa trim 4711 --dry-run\n  Every ten minutes, when it is worth it:\n    \
         marusa trim 4711 --every 10m --above 100m",
    ),
    (
        "tlb",
        "  Five seconds, once:\n    marusa tlb 4711 5s 1\n  A table every ten seconds, a row for each thread:\n    \
         marusa tlb 4711 10s --by thread",
    ),
    (
        "doctor",
        "  The host and all its JVMs:\n    marusa doctor\n  One JVM, for a probe (exit status 1: something is wrong):\n    \
         marusa doctor 4711 --fail-on warn --json\n  Would it fit in its limit with a larger heap:\n    \
         marusa doctor 4711 --if-xmx 2g\n  What a finding means:\n    marusa doctor --explain thp-bloat",
    ),
    (
        "stalls",
        "  Which processes wait for memory to be compacted or reclaimed:\n    marusa stalls\n  \
         One JVM, ten samples of one second each:\n    marusa stalls 4711 1s 10",
    ),
    (
        "pages",
        "  What large pages for this JVM need, as a plan; make it so; was it so; and back:\n    \
         marusa pages plan 4711 -o plan.json\n    marusa pages apply plan.json --dry-run\n    \
         marusa pages verify 4711 plan.json\n    marusa pages undo --list\n  A running JVM, without a restart:\n    \
         marusa pages collapse 4711 --dry-run",
    ),
    (
        "bench",
        "  What would be run, and what would change on the host:\n    marusa bench fork --dry-run\n  What starting a process \
         costs, by page size, and kept:\n    marusa bench fork --heaps 1g --pages 4k,thp --save fork.json",
    ),
    (
        "bench fork",
        "  What would be run:\n    marusa bench fork --dry-run\n  Three heap sizes, saved to be continued:\n    \
         marusa bench fork --jdk 17 --heaps 512m,1g,2g --pages 4k,thp --save fork.json",
    ),
    (
        "bench touch",
        "  4 KiB against 2 MiB pages, by a program of ours, not by a JVM:\n    \
         marusa bench touch --bytes 512m --by own --pages 4k,thp-2m --rounds 3",
    ),
    (
        "bench reflection",
        "  One JVM of each kind:\n    marusa bench reflection --runs 1\n  The native accessor against the generated one:\n    \
         marusa bench reflection --jdk 17 --calls 10,2000 --accessors native,generated",
    ),
    (
        "bench direct-buffers",
        "  As the paper measured, with a page more for each buffer:\n    marusa bench direct-buffers --page-aligned\n  \
         What many arenas of malloc hold:\n    marusa bench direct-buffers --threads 1,8,32 --runs 5",
    ),
    (
        "bench trim",
        "  Only the part that needs no root:\n    marusa bench trim --part jit\n  What the part with swapping would change on \
         the host:\n    marusa bench trim --part swap --dry-run",
    ),
    (
        "bench throughput",
        "  Brings the server once, and measures one heap on two kinds of pages:\n    \
         marusa bench throughput --fetch --heaps 1g --pages 4k,thp --save throughput.json",
    ),
    (
        "bench gc",
        "  Two collectors, 4 KiB and 2 MiB pages:\n    \
         marusa bench gc --gc g1,zgc --pages 4k,thp --live 256m --gc-threads own",
    ),
    (
        "bench thp",
        "  What would be started and changed:\n    marusa bench thp --dry-run\n  As it was published, four and eight builds, on \
         and off:\n    marusa bench thp --builds 4,8 --policies always,never --save thp.json",
    ),
    (
        "bench account",
        "  The server alone, with its areas over time as a page:\n    \
         marusa bench account --fetch --program daytrader --duration 5m --html account.html",
    ),
    (
        "pages plan",
        "  For a running JVM, as it was started:\n    marusa pages plan 4711 -o plan.json\n  For one that is only planned, as \
         settings of systemd:\n    marusa pages plan --jdk hotspot-21 --gc g1 --heap 6g --emit systemd",
    ),
    (
        "pages apply",
        "  What would be changed, and then that:\n    marusa pages apply plan.json --dry-run\n    \
         marusa pages apply plan.json --persist",
    ),
    ("pages undo", "    marusa pages undo --list\n    marusa pages undo plan.json"),
    (
        "pages verify",
        "  Did it get what it asked for (exit status 1: no):\n    marusa pages verify 4711\n  And what the plan promised:\n    \
         marusa pages verify 4711 plan.json",
    ),
    (
        "pages collapse",
        "  What could be put on 2 MiB pages, and what that would cost:\n    marusa pages collapse 4711 --dry-run\n  Only the \
         heap, with threads waiting 2 ms at most:\n    marusa pages collapse 4711 --area java_heap --stall-budget 2ms",
    ),
    ("pages split", "    marusa pages split 4711\n    marusa pages split 4711 --area java_heap --dry-run"),
    (
        "pages prove",
        "  By the counters of the processor:\n    marusa pages prove 4711\n  By a figure of the program's own:\n    \
         marusa pages prove 4711 --metric-url http://127.0.0.1:8080/metrics --series requests_total --better higher",
    ),
    (
        "compare",
        "  Does it run faster with transparent huge pages:\n    \
         marusa compare --arm plain='' --arm thp='-XX:+UseTransparentHugePages' -- java -jar app.jar\n  What would be run:\n    \
         marusa compare --arm g1='-XX:+UseG1GC' --arm z='-XX:+UseZGC' --dry-run -- java -jar app.jar",
    ),
    (
        "freeze",
        "  For a bug report; contains no text of the program except the names of \
         threads and files:\n    marusa freeze 4711 -o app.frozen",
    ),
    ("schema", "  Types for a program that reads accounts:\n    marusa schema map > map.schema.json"),
    (
        "man",
        "  One page:\n    marusa man map | man -l -\n  All of them:\n    marusa man -o /usr/local/share/man/man1",
    ),
    (
        "completions",
        "    marusa completions bash > /etc/bash_completion.d/marusa\n    \
         marusa completions zsh > /usr/local/share/zsh/site-functions/_marusa\n    \
         marusa completions fish > /etc/fish/completions/marusa.fish",
    ),
];

/// The text below the help of a command: "map", "pages plan".
pub fn of(name: &str) -> String {
    text(name).map_or(String::new(), |text| format!("Examples:\n{text}"))
}

pub fn text(name: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(of, _)| *of == name).map(|(_, text)| *text)
}

/// Below the help of the program itself.
pub fn of_all() -> String {
    let status: String = EXIT_STATUS.lines().map(|line| format!("  {line}\n")).collect();
    format!("{FIRST}\n\nExit status:\n{}", status.trim_end())
}

/// The commands among the examples, up to where a shell takes over.
pub fn lines(name: &str) -> impl Iterator<Item = &'static str> {
    let commands =
        text(name).unwrap_or_default().lines().map(str::trim).filter(|line| line.starts_with("marusa "));
    commands
        .map(|line| line.split(" | ").next().unwrap_or(line))
        .map(|line| line.split(" > ").next().unwrap_or(line))
}
