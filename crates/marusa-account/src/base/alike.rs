//! Names that are alike: threads, files and loaders of one kind come under names that differ in their numbers.

/// The name without its numbers: "pool-3-thread-17" is "pool-#-thread-#". The first word of "G1 Conc#0" and "C2 CompilerThread1" is
/// no number.
pub fn group_of(name: &str) -> String {
    let is_kept = matches!(name.as_bytes(), [b'A'..=b'Z', b'0'..=b'9', b' ', ..]);
    let (first, rest) = name.split_at(if is_kept { 2 } else { 0 });
    let mut group = String::from(first);
    for letter in rest.chars() {
        match letter {
            '0'..='9' if group.ends_with('#') => {}
            '0'..='9' => group.push('#'),
            other => group.push(other),
        }
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_alike_names_are_one() {
        assert_eq!(group_of("http-nio-8080-exec-12"), "http-nio-#-exec-#");
        assert_eq!(group_of("G1 Conc#0"), "G1 Conc#");
        assert_eq!((group_of("main"), group_of("")), ("main".to_string(), String::new()));
    }
}
