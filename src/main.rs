use marusa::jvm::hotspot::{find, vmstructs::VmStructs};
use marusa::os::{Target, live::Live, process::Process, symbols::LiveSymbols};

fn main() -> anyhow::Result<()> {
    let pid = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(0);
    let process = Process::open(pid)?;
    let started = std::time::Instant::now();
    let view = marusa::snapshot::take::os_view(&process).map_err(|gap| anyhow::anyhow!("{gap}"))?;
    eprintln!("os {:?}", started.elapsed());
    let memory = Live::open(&process, &view).map_err(|gap| anyhow::anyhow!("{gap}"))?;
    let symbols = LiveSymbols::new(&process, &view.mappings);
    let target = Target { view: &view, memory: &memory, symbols: &symbols };
    let image = find::library(&target).map_err(|gap| anyhow::anyhow!("{gap}"))?;
    let structs = VmStructs::read(&memory, &image).map_err(|gap| anyhow::anyhow!("{gap}"))?;
    eprintln!(
        "structs {:?} {:?} {:?}",
        started.elapsed(),
        image.build_id(&memory),
        structs.size_of("G1CollectedHeap")
    );
    let jvm = marusa::jvm::hotspot::read(&target);
    eprintln!("jvm {:?}", started.elapsed());
    let alloc = marusa::alloc::read(&target);
    eprintln!("alloc {:?}", started.elapsed());
    println!("{jvm:#?}\n{alloc:#?}");
    let rss: u64 =
        view.pages.iter().flatten().filter(|run| run.is_present()).map(|run| run.range.bytes()).sum();
    println!("{} {:?}", rss, view.status);
    Ok(())
}
