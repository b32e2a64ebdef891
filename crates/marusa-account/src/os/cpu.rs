//! Which processor this is, what counters the kernel has for it, and whether a hypervisor is below: /proc/cpuinfo, whose lines
//! differ by architecture (arch/x86/kernel/cpu/proc.c, arch/arm64/kernel/cpuinfo.c), and the PMUs of
//! /sys/bus/event_source/devices.

use super::host;
use std::path::Path;

/// One counter unit that the kernel knows, with the number that perf_event_open takes as the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// "cpu", "ibs_op", "armv8_pmuv3_0", "arm_spe_0".
    pub name: String,
    pub kind: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vendor {
    Intel,
    Amd,
    /// By who made it: 0x41 is Arm, 0xc0 Ampere, 0x46 Fujitsu.
    Arm {
        implementer: u32,
    },
    Other(String),
}

impl Default for Vendor {
    fn default() -> Vendor {
        Vendor::Other("unknown vendor".to_string())
    }
}

/// The processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    pub vendor: Vendor,
    /// For Arm: 0, and the part number as the model.
    pub family: u32,
    pub model: u32,
    /// As the processor calls itself; "" where it does not.
    pub name: String,
    /// `None`: this platform does not tell.
    pub has_hypervisor: Option<bool>,
    pub pmus: Vec<Pmu>,
}

/// Reads the processor of this machine.
pub fn read() -> Cpu {
    let mut cpu = parse(&host::text("/proc/cpuinfo").unwrap_or_default());
    cpu.pmus = pmus(Path::new("/sys/bus/event_source/devices"));
    if cpu.has_hypervisor.is_none() {
        cpu.has_hypervisor = firmware_hypervisor();
    }
    cpu
}

impl Cpu {
    /// The processor's own counters. Hybrid processors have two units; those of the large cores are "cpu_core".
    pub fn core_pmu(&self) -> Option<&Pmu> {
        let is_core =
            |pmu: &&Pmu| pmu.name == "cpu" || pmu.name == "cpu_core" || pmu.name.starts_with("armv8");
        self.pmus.iter().find(is_core)
    }

    pub fn pmu(&self, name: &str) -> Option<&Pmu> {
        self.pmus.iter().find(|pmu| pmu.name == name)
    }

    /// Large and small cores, each with counters of its own.
    pub fn is_hybrid(&self) -> bool {
        let arm = self.pmus.iter().filter(|pmu| pmu.name.starts_with("armv8")).count();
        self.pmu("cpu_atom").is_some() || arm > 1
    }

    /// "AMD EPYC (AuthenticAMD family 25 model 17)".
    pub fn describe(&self) -> String {
        let name = if self.name.is_empty() { "unnamed processor" } else { &self.name };
        match &self.vendor {
            Vendor::Arm { implementer } => {
                format!("{name} (Arm, implementer {implementer:#x} part {:#x})", self.model)
            }
            Vendor::Intel => format!("{name} (Intel family {} model {:#x})", self.family, self.model),
            Vendor::Amd => format!("{name} (AMD family {:#x} model {:#x})", self.family, self.model),
            Vendor::Other(vendor) => {
                format!("{name} ({vendor} family {} model {})", self.family, self.model)
            }
        }
    }
}

/// The first processor of /proc/cpuinfo.
fn parse(text: &str) -> Cpu {
    let value = |key: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        lines
            .into_iter()
            .find(|(name, _)| name.trim() == key)
            .map(|(_, value)| value.trim())
            .filter(|it| !it.is_empty())
    };
    let number = |key: &str| {
        let text = value(key)?;
        match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    };
    let vendor = match (value("vendor_id"), number("CPU implementer")) {
        (Some("GenuineIntel"), _) => Vendor::Intel,
        // Hygon's family 0x18 is AMD's first Zen.
        (Some("AuthenticAMD" | "HygonGenuine"), _) => Vendor::Amd,
        (_, Some(implementer)) => Vendor::Arm { implementer },
        (vendor, _) => vendor.map_or_else(Vendor::default, |vendor| Vendor::Other(vendor.to_string())),
    };
    let is_arm = matches!(vendor, Vendor::Arm { .. });
    Cpu {
        family: if is_arm { 0 } else { number("cpu family").unwrap_or(0) },
        model: number(if is_arm { "CPU part" } else { "model" }).unwrap_or(0),
        name: value("model name").unwrap_or_default().to_string(),
        has_hypervisor: value("flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        pmus: Vec::new(),
        vendor,
    }
}

fn pmus(directory: &Path) -> Vec<Pmu> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut pmus: Vec<Pmu> = entries
        .filter_map(|entry| {
            let kind = host::number(entry.path().join("type"))?;
            Some(Pmu { name: entry.file_name().to_str()?.to_string(), kind })
        })
        .collect();
    pmus.sort_by(|a, b| a.name.cmp(&b.name));
    pmus
}

/// Arm has no flag for it; the firmware's tables name the machine.
fn firmware_hypervisor() -> Option<bool> {
    if Path::new("/sys/hypervisor/type").exists() || Path::new("/proc/device-tree/hypervisor").exists() {
        return Some(true);
    }
    let read = |name: &str| host::text(Path::new("/sys/class/dmi/id").join(name)).ok();
    let (vendor, product) = (read("sys_vendor")?, read("product_name")?);
    let is_virtual = ["QEMU", "KVM", "Google", "Virtual Machine", "VMware"]
        .iter()
        .any(|word| vendor.contains(word) || product.contains(word));
    let is_cloud = vendor.contains("Amazon EC2") && !product.contains("metal");
    Some(is_virtual || is_cloud)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amd_in_a_virtual_machine() {
        let cpu = parse(
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\
             stepping\t: 1\nmicrocode\t: 0x1000065\nflags\t\t: fpu vme hypervisor lahf_lm\n\nprocessor\t: 1\n\
             vendor_id\t: GenuineIntel\n",
        );
        assert_eq!((cpu.vendor.clone(), cpu.family, cpu.model), (Vendor::Amd, 25, 17));
        assert_eq!(cpu.has_hypervisor, Some(true));
        assert_eq!(cpu.describe(), "AMD EPYC (AMD family 0x19 model 0x11)");
        assert_eq!(cpu.core_pmu(), None, "no PMU is not a PMU that counts 0");
    }

    #[test]
    fn an_arm_without_a_name() {
        let cpu = parse(
            "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n\
             CPU part\t: 0xd84\nCPU revision\t: 1\n",
        );
        assert_eq!(
            (cpu.vendor, cpu.model, cpu.has_hypervisor),
            (Vendor::Arm { implementer: 0x41 }, 0xd84, None)
        );
    }

    #[test]
    fn an_intel_on_bare_metal_and_nothing_at_all() {
        let cpu = parse("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nflags\t\t: fpu vme\n");
        assert_eq!((cpu.vendor, cpu.model, cpu.has_hypervisor), (Vendor::Intel, 0x8f, Some(false)));
        let none = parse("");
        assert_eq!(none.vendor, Vendor::Other("unknown vendor".to_string()));
    }

    #[test]
    fn the_units_of_this_kernel_have_numbers() {
        let pmus = pmus(Path::new("/sys/bus/event_source/devices"));
        assert!(pmus.iter().any(|pmu| pmu.name == "software" && pmu.kind == 1), "{pmus:?}");
        assert_eq!(super::pmus(Path::new("/nonexistent")), []);
    }

    #[test]
    fn large_and_small_cores_are_reported() {
        let mut cpu = parse("");
        let pmu = |name: &str, kind| Pmu { name: name.to_string(), kind };
        cpu.pmus = vec![pmu("cpu_atom", 10), pmu("cpu_core", 4)];
        assert!(cpu.is_hybrid() && cpu.core_pmu().is_some_and(|pmu| pmu.kind == 4));
        cpu.pmus = vec![pmu("cpu", 4)];
        assert!(!cpu.is_hybrid());
    }
}
