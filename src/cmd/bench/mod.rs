//! `marusa bench NAME`: the published experiments made repeatable. One file an experiment; what they share is which JDKs are
//! measured (`jdk`) and the Java programs inside the binary (`act::programs`).

pub mod account;
mod account_of;
pub mod direct_buffers;
pub mod fork;
pub mod gc;
pub mod jdk;
pub mod machine;
pub mod reflection;
mod rounds;
mod saved;
pub mod thp;
pub mod throughput;
pub mod touch;
pub mod trim;

#[derive(clap::Subcommand, Debug)]
pub enum BenchCommand {
    /// What starting a process costs a JVM, by heap, page size and launch mechanism
    Fork(fork::Args),
    /// What the first touch of memory costs, by page size, and its page tables
    Touch(touch::Args),
    /// Getters and setters called by reflection: class metadata, JIT code and the rest
    Reflection(reflection::Args),
    /// Direct buffers taken, freed, trimmed: the account at each step
    DirectBuffers(direct_buffers::Args),
    /// What giving freed memory back costs and brings
    Trim(trim::Args),
    /// A Java EE server under load, by heap and page size
    Throughput(throughput::Args),
    /// Pauses and concurrent time by page size and number of GC threads
    Gc(gc::Args),
    /// A build server whose JVMs wait for huge pages, by the kernel's policy
    Thp(thp::Args),
    /// The account of a server and of a batch program over time
    Account(account::Args),
}

pub fn run(command: &BenchCommand) -> anyhow::Result<u8> {
    match command {
        BenchCommand::Fork(args) => fork::run(args),
        BenchCommand::Touch(args) => touch::run(args),
        BenchCommand::Reflection(args) => reflection::run(args),
        BenchCommand::DirectBuffers(args) => direct_buffers::run(args),
        BenchCommand::Trim(args) => trim::run(args),
        BenchCommand::Throughput(args) => throughput::run(args),
        BenchCommand::Gc(args) => gc::run(args),
        BenchCommand::Thp(args) => thp::run(args),
        BenchCommand::Account(args) => account::run(args),
    }
}
