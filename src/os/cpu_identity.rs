//! Which processor this is, as far as costs that were measured on one hold for another: /proc/cpuinfo, whose lines differ by
//! architecture (arch/x86/kernel/cpu/proc.c, arch/arm64/kernel/cpuinfo.c).

use super::host::text;

/// Every text is empty where the kernel does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuIdentity {
    /// "AMD EPYC 7763 64-Core Processor".
    pub model: String,
    /// Vendor, family, model, stepping; on Arm implementer, part, variant, revision.
    pub identity: String,
    pub microcode: String,
    pub is_virtual: bool,
}

pub fn read() -> CpuIdentity {
    parse(&text("/proc/cpuinfo").unwrap_or_default())
}

/// The first processor: hosts with several kinds (big.LITTLE) run no servers.
pub fn parse(cpuinfo: &str) -> CpuIdentity {
    let first = cpuinfo.split("\n\n").find(|block| block.contains(':')).unwrap_or_default();
    let value = |key: &str| {
        let is_key = |line: &&str| line.split(':').next().is_some_and(|name| name.trim() == key);
        let line = first.lines().find(is_key)?;
        line.split_once(':').map(|(_, value)| value.trim().to_string()).filter(|value| !value.is_empty())
    };
    let joined = |keys: &[&str]| keys.iter().filter_map(|key| value(key)).collect::<Vec<_>>().join("-");
    let x86 = joined(&["vendor_id", "cpu family", "model", "stepping"]);
    let arm = joined(&["CPU implementer", "CPU part", "CPU variant", "CPU revision"]);
    let identity = if x86.is_empty() { arm } else { x86 };
    CpuIdentity {
        model: value("model name").unwrap_or_else(|| identity.clone()),
        identity,
        microcode: value("microcode").unwrap_or_default(),
        is_virtual: value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_both_architectures() {
        let amd = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\
                   stepping\t: 1\nmicrocode\t: 0x1000065\nflags\t\t: fpu vme hypervisor lm\n\nprocessor\t: 1\nmodel\t: 9\n";
        let cpu = parse(amd);
        assert_eq!((cpu.identity.as_str(), cpu.model.as_str()), ("AuthenticAMD-25-17-1", "AMD EPYC"));
        assert_eq!((cpu.microcode.as_str(), cpu.is_virtual), ("0x1000065", true));

        let arm = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n\
                   CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";
        let cpu = parse(arm);
        assert_eq!(cpu.identity, "0x41-0xd0c-0x3-1");
        assert_eq!((cpu.model.as_str(), cpu.is_virtual), ("0x41-0xd0c-0x3-1", false));
        assert_eq!(parse(""), CpuIdentity::default());
    }
}
