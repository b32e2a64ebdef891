//! Which kernel this is: figures depend on it, so the account names it.

/// "6.18.44"; empty where /proc is not mounted.
pub fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}
