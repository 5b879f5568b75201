//! Types that stand in notes.

use super::super::large_types::PIECE_LEN;
use super::*;

/// A type in more than one piece, with its announcement.
fn large() -> (LocalType, GroupEndpoint, BTreeMap<u64, Note>) {
    let ty = long(2000);
    let (announced, notes) = announce(&Entry::Reader(reader(Some(&ty), "m::T", policy(|_| {}))));
    assert!(notes.len() > 1 && announced.info.len() < 2048);
    (ty, announced, notes)
}

/// A type with `count` members of four bytes, and a last one of type `ty`.
fn with_last(count: u32, ty: Type) -> LocalType {
    let member = |id: u32| Member::new(&format!("member_{id}"), id, LONG);
    let mut members: Vec<Member> = (0..count).map(member).collect();
    members.push(Member::new("last", count, ty));
    outer(Extensibility::Mutable, members)
}

#[test]
fn types_of_any_size_are_compared() {
    let any = policy(|_| {});
    for count in [1100, 6000] {
        let (one, other) = (long(count), with_last(count, Type::String8(Some(9))));
        check(Some(&one), Some(&one), any, "");
        check(Some(&one), Some(&other), any, "");
        check(Some(&other), Some(&one), any, "");
        check(Some(&one), Some(&long(3)), any, "");
        let number = with_last(count, LONG);
        let differs = "Outer.inner.last: string cannot be read from int32";
        check(Some(&number), Some(&other), any, differs);
        let same = policy(|policy| policy.kind = TypeConsistencyKind::DisallowTypeCoercion);
        let differs = "Outer: the types differ, and coercion is not allowed";
        check(Some(&one), Some(&other), same, differs);
    }
}

#[test]
fn a_type_can_be_read_back_from_notes() {
    let (ty, announced, notes) = large();
    assert!(notes.values().all(|note| note.len() <= PIECE_LEN));
    let read = Entry::from_group(&announced, &notes, &mut Types::default()).unwrap();
    let read = read.endpoint().ty.clone().unwrap();
    assert_eq!(read.bytes(), ty.announced.bytes());
    assert_eq!(read.resolved, ty.announced.resolved);
    assert!(read.resolved.is_some());
}

#[test]
fn missing_or_altered_notes_are_refused() {
    let (_, announced, notes) = large();
    let read = |announced: &GroupEndpoint, notes: &BTreeMap<u64, Note>| {
        Entry::from_group(announced, notes, &mut Types::default())
    };
    let why = |notes: &BTreeMap<u64, Note>| read(&announced, notes).unwrap_err().to_string();
    for number in notes.keys() {
        let mut fewer = notes.clone();
        fewer.remove(number);
        assert_eq!(why(&fewer), ProtocolViolation::NotNoted.to_string());
    }
    let last = *notes.last_key_value().unwrap().0;
    let mut swapped = notes.clone();
    swapped.insert(0, notes[&last].clone());
    swapped.insert(last, notes[&0].clone());
    assert!(why(&swapped).starts_with("the notes of its type are invalid: "));
    for number in notes.keys() {
        let mut altered = notes.clone();
        let mut piece = notes[number].to_vec();
        let at = piece.len() - 1;
        piece[at] ^= 1;
        altered.insert(*number, piece.into());
        assert!(why(&altered).starts_with("the notes of its type are invalid: "));
    }
    // A type of another number, and one of more or fewer pieces.
    let end = announced.info.len();
    for at in [end - 6, end - 2] {
        for by in [1, 255] {
            let mut info = announced.info.clone();
            info[at] = info[at].wrapping_add(by);
            let other = GroupEndpoint {
                info,
                ..announced.clone()
            };
            assert!(read(&other, &notes).is_err(), "{at} {by}");
        }
    }
    for len in end - 6..end {
        let cut = GroupEndpoint {
            info: announced.info[..len].to_vec(),
            ..announced.clone()
        };
        assert!(matches!(
            read(&cut, &notes),
            Err(ProtocolViolation::Truncated)
        ));
    }
    // Pieces are not concatenated beyond the maximum length of a type.
    let huge: Note = vec![0; 1 << 20].into();
    let long = BTreeMap::from([(0, huge.clone()), (1, huge)]);
    let all = notes.keys().map(|it| (*it, notes[it].clone()));
    let long = all.chain(long).collect();
    assert!(matches!(
        read(&announced, &long),
        Err(ProtocolViolation::TooLong(_))
    ));
}

#[test]
fn endpoints_of_one_type_share_notes_until_the_last_goes() {
    let (one, other) = (long(2000).announced, long(2001).announced);
    // The type of another topic, with the same content.
    let same = long(2000).announced;
    let mut large_types = LargeTypes::default();
    let (noted, notes) = large_types.put(1, &one);
    assert!(notes.len() > 1);
    assert_eq!(large_types.put(2, &same), (noted, Vec::new()));
    let (elsewhere, others) = large_types.put(3, &other);
    assert_ne!(elsewhere, noted);
    let numbers = |notes: &[(u64, Note)]| notes.iter().map(|(it, _)| *it).collect::<Vec<_>>();
    assert!(notes.iter().all(|(it, _)| large_types.users(*it) == [1, 2]));
    assert!(others.iter().all(|(it, _)| large_types.users(*it) == [3]));
    assert_eq!(large_types.remove(1), Vec::<u64>::new());
    assert_eq!(large_types.remove(9), Vec::<u64>::new());
    assert_eq!(large_types.remove(2), numbers(&notes));
    // Numbers are not reused: an addition may follow a removal in the same request.
    let (again, new) = large_types.put(1, &one);
    assert_ne!(again, noted);
    assert!(numbers(&new).iter().all(|it| !numbers(&notes).contains(it)));
    assert_eq!(large_types.remove(3), numbers(&others));
}

#[test]
fn equal_notes_are_read_once_and_cached_until_no_view_has_them() {
    let (_, announced, notes) = large();
    let mut types = Types::default();
    let mut read = |notes: &BTreeMap<u64, Note>| {
        let entry = Entry::from_group(&announced, notes, &mut types);
        entry.map(|entry| entry.endpoint().ty.clone().unwrap())
    };
    let [one, other] = [0; 2].map(|_| read(&notes).unwrap());
    assert!(Arc::ptr_eq(&one, &other));
    let mut bad = notes.clone();
    bad.insert(0, notes[&1].clone());
    let [one, other] = [0; 2].map(|_| match read(&bad) {
        Err(ProtocolViolation::Noted(why)) => why,
        read => panic!("{read:?}"),
    });
    assert!(Arc::ptr_eq(&one, &other));
    types.tidy();
    assert!(!types.is_empty());
    drop((notes, bad));
    types.tidy();
    assert!(types.is_empty());
}
