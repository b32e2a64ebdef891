//! Where a calibration is kept: a file for each CPU model, microcode and kernel, so that an update of either asks for a new
//! one. A home directory that several machines share keeps one for each.

use crate::base::{Gap, Known, Why};
use crate::measure::calibration::Calibration;
use crate::os::{cpu, file_mode, host, output_file, process};
use crate::show::calibrate::Kept;
use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;

/// What this machine's last calibration found. A gap says how to get one.
pub fn cached() -> Known<Calibration> {
    let cpu = cpu::read();
    let missing = || {
        Gap::new("cost of a walk on this machine", Why::NotMeasured)
            .hint("run `marusa tlb --calibrate` once: it takes some 10 seconds")
    };
    let path = path(&cpu.identity, &cpu.microcode, &host::kernel_release())?;
    let text = host::text(path).map_err(|_| missing())?;
    let kept = serde_json::from_str::<Calibration>(&text).ok().filter(Calibration::is_sane);
    kept.ok_or_else(missing)
}

/// Keeps it for `cached`, and says where. One of chosen footprints does not take the place of one that has more, nor one of a
/// busy machine that of a quieter one.
pub fn keep(calibration: &Calibration, is_chosen: bool) -> Known<Kept> {
    let machine = &calibration.machine;
    let path = path(&machine.cpu, &machine.microcode, &machine.kernel)?;
    if calibration.footprints().is_empty() {
        return Err(Gap::new("calibration", Why::NotRead)
            .hint("nothing was measured of the data side, so nothing was kept"));
    }
    let here = calibration.footprints();
    let has_more = |kept: &Calibration| kept.footprints().iter().any(|bytes| !here.contains(bytes));
    match cached() {
        Ok(kept) if is_chosen && has_more(&kept) => {
            return Ok(Kept::OtherStays(path.display().to_string()));
        }
        Ok(kept)
            if !here.iter().any(|bytes| !kept.footprints().contains(bytes))
                && calibration.is_worse_than(&kept) =>
        {
            return Ok(Kept::BetterStays {
                path: path.display().to_string(),
                at: kept.at.clone(),
                spread: kept.spread(),
            });
        }
        _ => {}
    }
    let gap = |error: io::Error| process::gap(&format!("{}", path.display()), &error);
    let write = || -> io::Result<()> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let text = serde_json::to_string_pretty(calibration).map_err(io::Error::other)?;
        output_file::replace(&path, file_mode::wanted(), text.as_bytes()).map(|_| ())
    };
    write()
        .map_err(|error| gap(error).hint("the calibration was not kept: the next `marusa tlb` has none"))?;
    Ok(Kept::In(path.display().to_string()))
}

fn path(cpu: &str, microcode: &str, kernel: &str) -> Known<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let directory = directory.ok_or_else(|| {
        Gap::new("place to keep a calibration", Why::NotRead).hint("neither XDG_CACHE_HOME nor HOME is set")
    })?;
    Ok(directory.join("marusa").join(file_name(cpu, microcode, kernel)))
}

fn file_name(cpu: &str, microcode: &str, kernel: &str) -> String {
    let plain = |text: &str| -> String {
        let keep = |letter: char| letter.is_ascii_alphanumeric() || ".-+".contains(letter);
        text.chars().take(80).map(|letter| if keep(letter) { letter } else { '-' }).collect()
    };
    format!("walks_{}_{}_{}.json", plain(cpu), plain(microcode), plain(kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_for_each_cpu_microcode_and_kernel() {
        assert_eq!(
            file_name("AuthenticAMD-25-17-1", "0x1000065", "6.18.44"),
            "walks_AuthenticAMD-25-17-1_0x1000065_6.18.44.json"
        );
        assert_eq!(file_name("../x y", "", "a/b"), "walks_..-x-y__a-b.json");
    }
}
