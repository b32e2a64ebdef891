use super::*;

pub fn note(kind: u32, value: &[u8]) -> Vec<u8> {
    let mut note: Vec<u8> =
        [5, value.len() as u32, kind].iter().flat_map(|half| half.to_le_bytes()).collect();
    note.extend(b"CORE\0\0\0\0");
    note.extend(value);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn add(notes: &mut Notes, bytes: &[u8]) {
    notes.add(&FileBytes::given(bytes.to_vec()), 0, bytes.len() as u64);
}

fn all() -> Vec<u8> {
    let mut status = vec![0; 336];
    status[32] = 42;
    let mut process = vec![0; 136];
    (process[16], process[24]) = (7, 41);
    process[56..66].copy_from_slice(b"java -jar ");
    let files =
        [&words(&[2, 4096, 0x5000, 0x7000, 1, 0x9000, 0xa000, 0])[..], b"/a/libjvm.so\0/b (deleted)\0"];
    [
        note(1, &status),
        note(3, &process),
        note(6, &words(&[6, 4096, 33, 0xf000, 0, 0])),
        note(0x5349_4749, &[6, 0, 0, 0]),
        note(0x4649_4c45, &files.concat()),
    ]
    .concat()
}

#[test]
fn a_process_with_one_thread_and_two_files() {
    let mut notes = Notes::default();
    add(&mut notes, &all());
    assert_eq!((notes.pid, notes.uid, notes.signal, notes.damaged), (Some(41), Some(7), Some(6), 0));
    assert_eq!((notes.arguments.as_str(), &notes.threads[..]), ("java -jar", &[42][..]));
    assert_eq!(notes.auxiliary_value(AT_SYSINFO_EHDR), Some(0xf000));
    assert_eq!(notes.paths, ["/a/libjvm.so", "/b (deleted)"]);
    assert_eq!((notes.files[0].offset, notes.files[1].range), (4096, Range::of(0x9000, 0xa000)));
}

#[test]
fn notes_that_end_early_are_counted_and_never_read_past() {
    let whole = all();
    for length in 0..whole.len() - 3 {
        let mut notes = Notes::default();
        add(&mut notes, &whole[..length]);
        assert!(notes.files.is_empty() && notes.damaged <= 1, "{length}");
    }
    let mut notes = Notes::default();
    add(&mut notes, &note(0x4649_4c45, &words(&[u64::MAX / 24, 4096, 1, 2, 3])));
    add(&mut notes, &[0xff; 64]);
    assert_eq!((notes.files.len(), notes.damaged), (0, 2));
}
