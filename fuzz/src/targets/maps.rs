use marusa::os::maps;

pub fn run(bytes: &[u8]) {
    let (mappings, _) = maps::parse(bytes);
    assert!(mappings.iter().all(|mapping| mapping.range.start < mapping.range.end));
    assert!(mappings.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
    for mapping in &mappings {
        assert_eq!(maps::find_mapping(&mappings, mapping.range.start), Some(mapping));
    }
}
