//! Types that are noted.

use super::super::large_types::PIECE_LEN;
use super::*;

/// As its participant tells it: in more than one piece.
fn large() -> (LocalType, GroupEndpoint, BTreeMap<u64, Note>) {
    let ty = long(2000);
    let (told, notes) = tell(&Entry::Reader(reader(Some(&ty), "m::T", policy(|_| {}))));
    assert!(notes.len() > 1 && told.info.len() < 2048);
    (ty, told, notes)
}

/// One of two members of which the second is of this type.
fn second(count: u32, ty: Type) -> LocalType {
    let member = |id: u32| Member::new(&format!("member_{id}"), id, LONG);
    let mut members: Vec<Member> = (0..count).map(member).collect();
    members.push(Member::new("last", count, ty));
    outer(Extensibility::Mutable, members)
}

#[test]
fn types_of_any_size_are_compared() {
    let any = policy(|_| {});
    for count in [1100, 6000] {
        let (one, other) = (long(count), second(count, Type::String8(Some(9))));
        check(Some(&one), Some(&one), any, "");
        check(Some(&one), Some(&other), any, "");
        check(Some(&other), Some(&one), any, "");
        check(Some(&one), Some(&long(3)), any, "");
        let number = second(count, LONG);
        let differs = "Outer.inner.last: string cannot be read from int32";
        check(Some(&number), Some(&other), any, differs);
        let same = policy(|policy| policy.kind = TypeConsistencyKind::DisallowTypeCoercion);
        let differs = "Outer: the types differ, and coercion is not allowed";
        check(Some(&one), Some(&other), same, differs);
    }
}

#[test]
fn what_is_noted_is_what_is_read() {
    let (ty, told, notes) = large();
    assert!(notes.values().all(|note| note.len() <= PIECE_LEN));
    let read = Entry::from_group(&told, &notes, &mut Types::default()).unwrap();
    let read = read.endpoint().ty.clone().unwrap();
    assert_eq!(read.bytes(), ty.announced.bytes());
    assert_eq!(read.resolved, ty.announced.resolved);
    assert!(read.resolved.is_some());
}

#[test]
fn notes_that_are_missing_or_others_are_refused() {
    let (_, told, notes) = large();
    let read = |told: &GroupEndpoint, notes: &BTreeMap<u64, Note>| {
        Entry::from_group(told, notes, &mut Types::default())
    };
    let why = |notes: &BTreeMap<u64, Note>| read(&told, notes).unwrap_err().to_string();
    for number in notes.keys() {
        let mut fewer = notes.clone();
        fewer.remove(number);
        assert_eq!(why(&fewer), ProtocolViolation::NotNoted.to_string());
    }
    let last = *notes.last_key_value().unwrap().0;
    let mut swapped = notes.clone();
    swapped.insert(0, notes[&last].clone());
    swapped.insert(last, notes[&0].clone());
    assert!(why(&swapped).starts_with("what is noted of its type: "));
    for number in notes.keys() {
        let mut altered = notes.clone();
        let mut piece = notes[number].to_vec();
        let at = piece.len() - 1;
        piece[at] ^= 1;
        altered.insert(*number, piece.into());
        assert!(why(&altered).starts_with("what is noted of its type: "));
    }
    // A type of another number, and one of more or fewer pieces.
    let end = told.info.len();
    for at in [end - 6, end - 2] {
        for by in [1, 255] {
            let mut info = told.info.clone();
            info[at] = info[at].wrapping_add(by);
            let other = GroupEndpoint {
                info,
                ..told.clone()
            };
            assert!(read(&other, &notes).is_err(), "{at} {by}");
        }
    }
    for len in end - 6..end {
        let cut = GroupEndpoint {
            info: told.info[..len].to_vec(),
            ..told.clone()
        };
        assert!(matches!(
            read(&cut, &notes),
            Err(ProtocolViolation::Truncated)
        ));
    }
    // No piece is put together with others beyond what a type can have.
    let huge: Note = vec![0; 1 << 20].into();
    let long = BTreeMap::from([(0, huge.clone()), (1, huge)]);
    let all = notes.keys().map(|it| (*it, notes[it].clone()));
    let long = all.chain(long).collect();
    assert!(matches!(
        read(&told, &long),
        Err(ProtocolViolation::TooLong(_))
    ));
}

#[test]
fn endpoints_of_one_type_share_notes_until_the_last_goes() {
    let (one, other) = (long(2000).announced, long(2001).announced);
    // Of another topic of the same type.
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
    // The numbers do not come back: what is asked for is done in order, and all of it.
    let (again, new) = large_types.put(1, &one);
    assert_ne!(again, noted);
    assert!(numbers(&new).iter().all(|it| !numbers(&notes).contains(it)));
    assert_eq!(large_types.remove(3), numbers(&others));
}

#[test]
fn what_several_note_is_read_once_good_or_bad_and_kept_as_long_as_a_view_has_it() {
    let (_, told, notes) = large();
    let mut types = Types::default();
    let mut read = |notes: &BTreeMap<u64, Note>| {
        let entry = Entry::from_group(&told, notes, &mut types);
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
