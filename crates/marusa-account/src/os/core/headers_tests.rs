use super::*;

fn parse(bytes: &[u8]) -> Result<Headers, CoreError> {
    Headers::parse(&FileBytes::given(bytes.to_vec()))
}

/// A core of this machine: (type, flags, offset, address, bytes in the file, bytes) of each program header, then what
/// follows them.
pub fn core(headers: &[(u32, u32, u64, u64, u64, u64)], rest: &[u8]) -> Vec<u8> {
    let machine = if cfg!(target_arch = "aarch64") { AARCH64 } else { X86_64 };
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([4, 0].into_iter().chain(machine.to_le_bytes()).chain([1, 0, 0, 0]));
    for word in [0, HEADER_BYTES as u64, 0] {
        file.extend(word.to_le_bytes());
    }
    for half in [0, 0, 64, PROGRAM_HEADER_BYTES as u16, headers.len() as u16, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for (kind, flags, offset, address, in_file, bytes) in headers {
        file.extend(kind.to_le_bytes().into_iter().chain(flags.to_le_bytes()));
        for word in [*offset, *address, 0, *in_file, *bytes, PAGE] {
            file.extend(word.to_le_bytes());
        }
    }
    file.extend(rest);
    file
}

#[test]
fn mappings_are_sorted_and_a_cut_file_holds_less_than_it_says() {
    let file = core(
        &[(1, 6, 0x100, 0x9000, 0x2000, 0x3000), (1, 4, 0, 0x5000, 0, 0x1000), (4, 0, 0xb0, 0, 0x40, 0)],
        &[7; 0x400],
    );
    let headers = parse(&file).unwrap();
    assert_eq!(headers.loads.iter().map(|load| load.range.start.0).collect::<Vec<_>>(), [0x5000, 0x9000]);
    let load = headers.loads[1];
    assert_eq!((load.dumped, load.held), (0x2000, file.len() as u64 - 0x100));
    assert_eq!((load.rights.text().as_str(), headers.is_by_gdb), ("rw-p", false));
    assert_eq!((headers.notes, headers.notes_are_cut), (vec![(0xb0, 0x40)], false));
    let shorter = parse(&file[..0xe8]).unwrap();
    assert_eq!((shorter.notes, shorter.notes_are_cut), (vec![(0xb0, 0x38)], true));
}

#[test]
fn what_is_no_core_of_this_machine_is_said() {
    let good = core(&[(1, 6, 0x100, 0x9000, 0x2000, 0x3000)], &[]);
    let with = |at: usize, byte: u8| {
        let mut file = good.clone();
        file[at] = byte;
        parse(&file).unwrap_err()
    };
    assert!(matches!(with(0, 0), CoreError::Foreign));
    assert!(matches!(with(4, 1), CoreError::Machine(_)));
    assert!(matches!(with(16, 3), CoreError::NoCore));
    assert!(matches!(with(18, 8), CoreError::Machine(name) if name.contains("number 8")));
    assert!(matches!(with(56, 9), CoreError::Damaged(_)));
    assert!(matches!(with(56, 0), CoreError::Damaged(_)));
    let packed = parse(&[0x28, 0xb5, 0x2f, 0xfd, 0]).unwrap_err();
    assert!(matches!(packed, CoreError::Packed("zstd -d")));
    for length in 0..good.len() {
        assert!(parse(&good[..length]).is_err(), "{length}");
    }
}

#[test]
fn headers_that_wrap_or_overlap_are_left_out() {
    let file = core(
        &[
            (1, 6, u64::MAX, 0x9000, u64::MAX, 0x3000),
            (1, 6, 0, 0xa000, 0x1000, 0x1000),
            (1, 6, 0, u64::MAX - 0xfff, 0x1000, 0x2000),
            (1, 6, 0, 0x123, 0x1000, 0x1000),
        ],
        &[],
    );
    let headers = parse(&file).unwrap();
    assert_eq!((headers.loads.len(), headers.strange), (1, 3));
    assert_eq!(headers.loads[0].held, 0);
}
