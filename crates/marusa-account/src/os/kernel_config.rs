//! Options that the kernel was built with, where it tells: `/proc/config.gz`, or the file that distributions put into /boot.

use super::host;
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read;

/// Unpacked size that is read at most, in bytes; that of Linux 6.18 has 150 KB.
const CONFIG_BYTES_MAX: u64 = 4 << 20;

/// Whether an option is built in. `None`: the kernel does not tell, or does not know such an option.
pub fn option(name: &str) -> Option<bool> {
    let packed = || {
        let mut text = String::new();
        GzDecoder::new(File::open("/proc/config.gz").ok()?)
            .take(CONFIG_BYTES_MAX)
            .read_to_string(&mut text)
            .ok()?;
        Some(text)
    };
    let plain = || host::text(format!("/boot/config-{}", host::kernel_release())).ok();
    parse(&packed().or_else(plain)?, name)
}

/// "CONFIG_X=y" or "# CONFIG_X is not set".
fn parse(text: &str, name: &str) -> Option<bool> {
    text.lines().find_map(|line| {
        if let Some(value) = line.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
            return Some(value == "y" || value == "m");
        }
        let unset = line.strip_prefix("# ")?.strip_suffix(" is not set")?;
        (unset == name).then_some(false)
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn set_unset_and_unknown() {
        let text = "CONFIG_THP_SWAP=y\n# CONFIG_READ_ONLY_THP_FOR_FS is not set\nCONFIG_LOG=\"y\"\n";
        assert_eq!(parse(text, "CONFIG_THP_SWAP"), Some(true));
        assert_eq!(parse(text, "CONFIG_READ_ONLY_THP_FOR_FS"), Some(false));
        assert_eq!(parse(text, "CONFIG_THP"), None);
    }
}
