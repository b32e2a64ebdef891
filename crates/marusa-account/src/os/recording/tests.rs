use super::*;
use crate::os::memory::Pieces;

#[test]
fn a_replay_gives_the_bytes_that_were_read_and_no_others() {
    let mut live = Pieces::default();
    live.put(Addr(0xff0), &(0..64).collect::<Vec<u8>>());
    let recording = Recording::of(&live, &[]);
    assert_eq!(recording.u64(Addr(0xffc)), Ok(0x13121110_0f0e0d0c));
    let replay = recording.into_seen();
    assert_eq!(replay.u64(Addr(0xffc)), Ok(0x13121110_0f0e0d0c));
    assert_eq!(replay.u8(Addr(0xffb)).map_err(|fault| fault.why), Err(Why::NotRecorded));
    let pieces: Vec<(Addr, usize)> = replay.pieces().iter().map(|(at, bytes)| (*at, bytes.len())).collect();
    assert_eq!(pieces, [(Addr(0xffc), 4), (Addr(0x1000), 4)]);
}

#[test]
fn of_what_was_read_no_text_is_kept_unless_it_was_asked_for() {
    let mut live = Pieces::default();
    live.put(Addr(0x1000), b"hunter2!\x07\0\0\0\0\0\0\0some-name\0secret!.");
    let recording = Recording::of(&live, &[]);
    assert_eq!(recording.u64(Addr(0x1000)), Ok(u64::from_le_bytes(*b"hunter2!")), "the caller sees all");
    assert_eq!(recording.u64(Addr(0x1008)), Ok(7));
    assert_eq!(recording.c_string(Addr(0x1010), 64), Ok("some-name".to_string()));
    assert!(recording.c_string(Addr(0x101a), 4).is_err(), "no end");
    let mut text = [0; 7];
    recording.peek(Addr(0x101a), &mut text).expect("read");
    assert_eq!(&text, b"secret!");
    let replay = recording.into_seen();
    assert_eq!((replay.u64(Addr(0x1000)), replay.u64(Addr(0x1008))), (Ok(0), Ok(7)));
    assert_eq!(replay.c_string(Addr(0x1010), 64), Ok("some-name".to_string()));
    assert!(replay.u8(Addr(0x101a)).is_err(), "not kept");
    assert_eq!(replay.peek(Addr(0x101a), &mut text), Ok(()));
    assert_eq!(text, [0; 7], "nothing there mattered");
}

#[test]
fn of_searched_words_only_addresses_and_small_numbers_are_kept() {
    let (mappings, _) = crate::os::maps::parse(b"7000-9000 rw-p 0 00:00 0 \n");
    let mut live = Pieces::default();
    let secret = u64::from_le_bytes(*b"hunter2!");
    // Whole pages by its value, and a text.
    let aligned = u64::from_le_bytes(*b"\0passwor");
    live.put_words(Addr(0x1000), &[0x7008, secret, 0x9000, 17, 0xabcd_ef01, aligned, 0x12_3000]);
    let recording = Recording::of(&live, &mappings);
    assert_eq!(recording.scan(Addr(0x1000), 2), Ok(vec![0x7008, secret]), "the caller sees all");
    assert!(recording.scan(Addr(0x1000), 7).is_ok());
    assert_eq!(recording.u64(Addr(0x1020)), Ok(0xabcd_ef01), "read, not only searched");
    let replay = recording.into_seen();
    let kept = vec![0x7008, 0, 0x9000, 17, 0xabcd_ef01, 0, 0x12_3000];
    assert_eq!(replay.scan(Addr(0x1000), 7), Ok(kept));
}

#[test]
fn a_text_is_kept_up_to_its_nul_and_a_needle_alone() {
    let mut live = Pieces::default();
    live.put(Addr(0x1000), &[b"shown\0hidden\0".to_vec(), vec![7; 128]].concat());
    let recording = Recording::of(&live, &[]);
    let range = Range::of(0x1000, 0x1040);
    assert_eq!(recording.find(range, b"dde"), Some(Addr(0x1008)));
    assert_eq!(recording.c_string(Addr(0x1000), 100), Ok("shown".to_string()));
    let replay = recording.into_seen();
    assert_eq!(replay.c_string(Addr(0x1000), 100), Ok("shown".to_string()));
    assert_eq!(replay.find(range, b"dde"), Some(Addr(0x1008)));
    let known: usize = replay.pieces().iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(known, 6 + 3);
}

#[test]
fn what_stands_for_text_never_covers_what_was_read() {
    let mut live = Pieces::default();
    live.put(Addr(0x1000), b"hidden..shown\x01\x02\x03");
    let recording = Recording::of(&live, &[]);
    assert!(recording.u64(Addr(0x1008)).is_ok());
    recording.stands_for(Addr(0x1000), b"x");
    recording.stands_for(Addr(0x1008), b"x");
    let replay = recording.into_seen();
    let mut bytes = [9; 16];
    assert_eq!(replay.read_once(Addr(0x1000), &mut bytes), Ok(()));
    assert_eq!(&bytes, b"x\0\0\0\0\0\0\0shown\x01\x02\x03");
    assert_eq!(replay.read_once(Addr(0x9000), &mut bytes), Ok(()), "nothing there mattered");
    assert_eq!(bytes, [0; 16]);
}

#[test]
fn what_stands_for_text_takes_the_place_of_text_that_was_read_as_numbers() {
    let mut live = Pieces::default();
    live.put(Addr(0x1000), b"java/lang/String");
    let recording = Recording::of(&live, &[]);
    assert!(recording.words(Addr(0x1000), 2).is_ok());
    recording.stands_for(Addr(0x1000), b"x");
    recording.stands_for(Addr(0x100f), b"x");
    let mut bytes = [9; 16];
    assert_eq!(recording.into_seen().read(Addr(0x1000), &mut bytes), Ok(()));
    assert_eq!(&bytes, b"x\0\0\0\0\0\0\0\0\0\0\0\0\0\0x");
}

/// A file that a program maps to read it may hold private data; a library's constants do not.
#[test]
fn of_a_mapped_file_that_is_no_program_no_text_is_kept() {
    let (mappings, _) = crate::os::maps::parse(
        b"4000-5000 r--s 00000000 fe:00 17 /home/alice/data\n\
          8000-9000 r--p 00000000 fe:00 18 /usr/lib/libx.so\n\
          9000-a000 r-xp 00001000 fe:00 18 /usr/lib/libx.so\n",
    );
    let mut live = Pieces::default();
    live.put(Addr(0x4000), b"hunter2!");
    live.put(Addr(0x8000), b"constant");
    let recording = Recording::of(&live, &mappings);
    for at in [0x4000, 0x8000] {
        recording.u64(Addr(at)).expect("read");
    }
    let replay = recording.into_seen();
    assert_eq!(replay.u64(Addr(0x4000)), Ok(0));
    assert_eq!(replay.u64(Addr(0x8000)), Ok(u64::from_le_bytes(*b"constant")));
}
