//! Names of users, from /etc/passwd: a static binary cannot ask the name service. Users of a directory service (LDAP,
//! systemd-homed) are shown by number.

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The name of `uid`, or the number where this host's file has none.
pub fn name(uid: u32) -> String {
    let text = super::small_file::read_start("/etc/passwd", FILE_BYTES_MAX).unwrap_or_default();
    find(&String::from_utf8_lossy(&text), uid).unwrap_or_else(|| uid.to_string())
}

/// passwd(5): `name:password:uid:gid:comment:home:shell`.
fn find(text: &str, uid: u32) -> Option<String> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_first_name_of_a_number_counts_and_broken_lines_do_not() {
        let text = "root:x:0:0:root:/root:/bin/bash\n# comment\n:x:7:7\ntoor:x:0:0::/:\napp:x:1000:1000:A:/home/app:\n";
        assert_eq!(find(text, 0).as_deref(), Some("root"));
        assert_eq!(find(text, 1000).as_deref(), Some("app"));
        assert_eq!(find(text, 7), None);
    }
}
