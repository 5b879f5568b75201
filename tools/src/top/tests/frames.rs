//! What a viewer sees on terminals of several sizes, and what the keys show it.

use std::collections::BTreeSet;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use spindle_dds::monitor::{MismatchFigures, TransferFigures};
use spindle_dds::qos::{Incompatibility, PolicyId};

use super::*;
use crate::top::names::columns;
use crate::top::screen::draw;
use crate::top::viewer::{Reaction, Viewer};

/// The lines of a frame.
fn frame_of(scene: &Scene, viewer: &mut Viewer, (width, height): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal
        .draw(|frame| draw(scene, viewer, frame.area(), frame.buffer_mut()))
        .expect("a frame");
    let buffer = terminal.backend().buffer();
    let lines = buffer.content.chunks(usize::from(width));
    let shown = |cells: &[ratatui::buffer::Cell]| {
        let mut line = String::new();
        let mut at = 0;
        while let Some(cell) = cells.get(at) {
            line += cell.symbol();
            // A wide character hides the next cell.
            at += columns(cell.symbol()).max(1);
        }
        line.trim_end().to_owned()
    };
    lines.map(shown).collect()
}

pub(super) fn frame(scene: &Scene, viewer: &mut Viewer) -> Vec<String> {
    frame_of(scene, viewer, (80, 24))
}

pub(super) fn press(viewer: &mut Viewer, key: KeyCode) {
    let reaction = viewer.handle_key(KeyEvent::new(key, KeyModifiers::NONE));
    assert_eq!(reaction, Reaction::Draw);
}

/// The names of programs.
fn program(number: usize) -> String {
    format!("{}/{}", NAMES[number % 3], 1_234_500 + number)
}

/// Names that are long, and begin and end alike.
pub(super) fn long(number: usize) -> String {
    format!("plant.building-2.line-{number:02}.temperature-sensor-adapter.service")
}

/// Names in wide characters.
fn wide(number: usize) -> String {
    format!("温度センサー・アダプター第{number}号線・監視プログラム")
}

/// Participants that are alike, of which each sends at its own rate, and has topics with long names.
fn crowd(participants: usize, name: fn(usize) -> String) -> Scene {
    crowd_with(participants, name, |_| {})
}

pub(super) fn crowd_with(
    participants: usize,
    name: fn(usize) -> String,
    alter: impl Fn(&mut [ParticipantFigures]),
) -> Scene {
    let member = |number: usize| format!("{number:032x}");
    let members = (0..participants).map(|number| MemberFigures {
        member: member(number),
        name: name(number),
        pid: 1_234_500 + number as u32,
        host: "1".to_owned(),
        path: None,
        encrypted: false,
    });
    let members: Vec<MemberFigures> = members.collect();
    let at = |seconds: u64| {
        let all = (0..participants).map(|number| {
            let mut one = figures(number % 3, seconds);
            one.pid = 1_234_500 + number as u32;
            one.member = member(number);
            one.members = members.clone();
            one.engine.counters.sent = seconds * 10 * (number as u64 * 7 % 60);
            one.engine.detector = None;
            let topic = |name: &str| TopicFigures {
                topic: format!("plant/building-{}/line/temperature/{name}", number % 4),
                writers: number as u32,
                ..TopicFigures::default()
            };
            one.topics = ["celsius", "fahrenheit"].map(topic).into();
            one
        });
        let mut all: Vec<ParticipantFigures> = all.collect();
        alter(&mut all);
        snapshot(seconds, all)
    };
    Scene::of(&at(2), &at(4))
}

/// All rows of the table that is shown, from the first screen to the last.
fn all_rows(scene: &Scene, viewer: &mut Viewer) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    press(viewer, KeyCode::Home);
    loop {
        let frame = frame(scene, viewer);
        let shown = frame[4..23].iter().filter(|line| !line.is_empty());
        let new: Vec<_> = shown.filter(|line| !all.contains(line)).cloned().collect();
        if new.is_empty() {
            return all;
        }
        all.extend(new);
        press(viewer, KeyCode::PageDown);
    }
}

#[test]
fn frames_of_few_and_many_participants() {
    for (width, height) in [(80, 24), (120, 40)] {
        for participants in [1, 3, 60] {
            let scene = crowd(participants, program);
            let lines = frame_of(&scene, &mut Viewer::default(), (width, height));
            assert!(lines.iter().all(|line| columns(line) <= usize::from(width)));
            let name = format!("frame_{width}x{height}_{participants}");
            insta::assert_snapshot!(name, lines.join("\n"));
        }
    }
}

#[test]
fn frames_of_names_that_are_too_long() {
    for (name, of) in [("long", long as fn(usize) -> String), ("wide", wide)] {
        let scene = crowd(12, of);
        let mut viewer = Viewer::default();
        let lines = frame(&scene, &mut viewer);
        assert!(lines.iter().all(|line| columns(line) <= 80), "{lines:?}");
        insta::assert_snapshot!(format!("frame_of_{name}_names"), lines.join("\n"));
        let names = |row: &String| row.split_whitespace().next().map(str::to_owned);
        let names: BTreeSet<_> = all_rows(&scene, &mut viewer)
            .iter()
            .filter_map(names)
            .collect();
        assert_eq!(names.len(), 12, "{names:?}");
        press(&mut viewer, KeyCode::Char('5'));
        let lines = frame(&scene, &mut viewer);
        assert!(lines.iter().all(|line| columns(line) <= 80), "{lines:?}");
        insta::assert_snapshot!(format!("topics_of_{name}_names"), lines.join("\n"));
    }
}

#[test]
fn each_of_sixty_participants_is_reached_and_the_rest_is_hinted_at() {
    let (scene, mut viewer) = (crowd(60, program), Viewer::default());
    let first = frame(&scene, &mut viewer);
    let hint = first.last().expect("24 lines");
    assert!(hint.contains("rows 1-19 of 60"), "{hint}");
    assert!(hint.contains("columns 1-8 of 12"), "{hint}");
    assert!(first[3].ends_with('>'), "{first:?}");
    let rows = all_rows(&scene, &mut viewer);
    let names = |it: &String| it.split_whitespace().next().map(str::to_owned);
    let names: BTreeSet<_> = rows.iter().filter_map(names).collect();
    assert_eq!(names.len(), 60, "{rows:?}");
    let last = frame(&scene, &mut viewer);
    assert!(last[23].contains("rows 42-60 of 60"), "{last:?}");
    press(&mut viewer, KeyCode::Up);
    assert!(frame(&scene, &mut viewer)[23].contains("rows 41-59 of 60"));
    // All columns are reached too, beside the names.
    for _ in 0..20 {
        press(&mut viewer, KeyCode::Right);
    }
    let right = frame(&scene, &mut viewer);
    assert!(
        right[3].contains("bells/s") && !right[3].contains("CPU %"),
        "{right:?}"
    );
    assert!(
        right[3].contains('<') && !right[3].contains('>'),
        "{right:?}"
    );
    assert!(right[4].contains("/12345"), "{right:?}");
    assert!(right[23].contains("-12 of 12"), "{right:?}");
}

#[test]
fn rows_are_sorted_by_the_column_that_is_chosen() {
    let (scene, mut viewer) = (crowd(60, program), Viewer::default());
    let column = |viewer: &mut Viewer, at: usize| {
        let rows = all_rows(&scene, viewer);
        let value = |row: &String| row.split_whitespace().nth(at).map(str::to_owned);
        rows.iter().filter_map(value).collect::<Vec<_>>()
    };
    let names = column(&mut viewer, 0);
    assert!(names.is_sorted(), "{names:?}");
    press(&mut viewer, KeyCode::Char('r'));
    assert!(column(&mut viewer, 0).iter().rev().is_sorted());
    // The second column of numbers: samples that were sent.
    press(&mut viewer, KeyCode::Char('>'));
    press(&mut viewer, KeyCode::Char('>'));
    let numbers = |viewer: &mut Viewer| {
        let texts = column(viewer, 2).into_iter();
        let numbers = texts.map(|it| it.parse::<f64>().expect("a number"));
        numbers.collect::<Vec<_>>()
    };
    let sent = numbers(&mut viewer);
    assert_eq!((sent.len(), sent[0]), (60, 590.0));
    assert!(sent.iter().rev().is_sorted(), "{sent:?}");
    let below = frame(&scene, &mut viewer)[23].clone();
    assert!(below.contains("by out/s"), "{below}");
    press(&mut viewer, KeyCode::Char('r'));
    assert!(numbers(&mut viewer).is_sorted());
    let below = frame(&scene, &mut viewer)[23].clone();
    assert!(below.contains("by out/s reversed"), "{below}");
    // Beyond the last column there is none. The one that is chosen is on the screen.
    (0..30).for_each(|_| press(&mut viewer, KeyCode::Char('>')));
    let last = frame(&scene, &mut viewer);
    assert!(
        last[23].contains("by bells/s") && last[3].contains("bells/s"),
        "{last:?}"
    );
    press(&mut viewer, KeyCode::Char('<'));
    assert!(frame(&scene, &mut viewer)[23].contains("by wakes/s"));
    (0..30).for_each(|_| press(&mut viewer, KeyCode::Char('<')));
    press(&mut viewer, KeyCode::Char('>'));
    let first = frame(&scene, &mut viewer);
    assert!(
        first[23].contains("by CPU %") && first[3].contains("CPU %"),
        "{first:?}"
    );
}

/// Those that do not answer say so, and are last in either order.
#[test]
fn participants_without_figures_are_last() {
    let mut now = snapshot(4, (0..3).map(|rank| figures(rank, 4)).collect());
    now.seen[0].figures = Err(Error::Timeout("it does not answer in time".to_owned()));
    let scene = Scene::of(&snapshot(2, vec![]), &now);
    let mut viewer = Viewer::default();
    (0..3).for_each(|_| press(&mut viewer, KeyCode::Char('>')));
    for _ in 0..2 {
        let frame = frame(&scene, &mut viewer);
        let last = &frame[6];
        assert!(
            last.starts_with("writer/100") && last.contains("in time"),
            "{frame:?}"
        );
        press(&mut viewer, KeyCode::Char('r'));
    }
    insta::assert_snapshot!(frame(&scene, &mut viewer).join("\n"));
    press(&mut viewer, KeyCode::Char('8'));
    insta::assert_snapshot!(frame(&scene, &mut viewer).join("\n"));
}

/// The display requests more than the writer offers; both tell of it.
fn mismatch() -> MismatchFigures {
    MismatchFigures {
        topic: "Square".to_owned(),
        writer: member(0),
        reader: member(1),
        pairs: 2,
        policies: vec![Incompatibility {
            policy: PolicyId::Reliability,
            offered: "BEST_EFFORT".to_owned(),
            requested: "RELIABLE".to_owned(),
        }],
        types: None,
    }
}

#[test]
fn a_pair_that_does_not_match_is_shown_with_the_reason() {
    let scene = scene(|_, all| {
        all[0].mismatches = vec![mismatch()];
        all[1].mismatches = vec![mismatch()];
        all[2].unlisted_mismatches = 5;
    });
    let [one] = &scene.mismatches[..] else {
        panic!("{:?}", scene.mismatches);
    };
    let names = (&*one.writer, &*one.reader);
    assert_eq!((names, one.pairs), (("writer/100", "display/101"), 2));
    let why = "Square, written by writer/100, read by display/101, 2 pairs: RELIABILITY: offered \
               BEST_EFFORT, requested RELIABLE";
    let page = page(&scene);
    assert!(page.contains(why), "{page}");
    assert!(page.contains("and 5 pairs more"), "{page}");
    let mut viewer = Viewer::default();
    assert!(frame(&scene, &mut viewer)[1].contains("8 Problems 6"));
    press(&mut viewer, KeyCode::Char('8'));
    let shown = frame(&scene, &mut viewer);
    // Wrapped, not cut.
    let words = shown[2..].join(" ");
    let words: Vec<&str> = words.split_whitespace().collect();
    assert!(words.join(" ").contains(why), "{shown:?}");
    insta::assert_snapshot!(shown.join("\n"));
    let counted: u64 = scene.topics.iter().map(|it| it.mismatches).sum();
    assert_eq!(counted, 4, "at the writer and at the reader");
    let json = serde_json::to_value(&scene).expect("JSON");
    assert_eq!(
        json["mismatches"][0]["policies"][0]["offered"],
        "BEST_EFFORT"
    );
}

#[test]
fn types_that_differ_are_shown_once() {
    let scene = scene(|_, all| {
        let of = |types: &str| MismatchFigures {
            policies: vec![],
            types: Some(types.to_owned()),
            pairs: 1,
            ..mismatch()
        };
        all[0].mismatches = vec![of("T.x: int32 cannot be read from string")];
        // The other side knows fewer names.
        all[1].mismatches = vec![of("T.0: int32 cannot be read from string")];
    });
    assert_eq!(scene.mismatches.len(), 1);
    let why = "Square, written by writer/100, read by display/101: types: T.x: int32 cannot be read \
               from string";
    let page = page(&scene);
    assert!(page.contains(why), "{page}");
}

#[test]
fn what_is_blocked_late_and_mismatched_is_told_in_eighty_columns() {
    let scene = scene(|seconds, all| {
        held_up(seconds, all);
        unacknowledged(seconds, all);
        silent(seconds, all);
        all[0].topics[0].waiting = 12;
        all[0].mismatches = vec![mismatch()];
    });
    let mut viewer = Viewer::default();
    insta::assert_snapshot!(frame(&scene, &mut viewer).join("\n"));
    press(&mut viewer, KeyCode::BackTab);
    insta::assert_snapshot!(frame(&scene, &mut viewer).join("\n"));
}

#[test]
fn the_help_names_the_keys_and_the_columns() {
    let (scene, mut viewer) = (crowd(60, program), Viewer::default());
    press(&mut viewer, KeyCode::Char('?'));
    let help = frame(&scene, &mut viewer);
    insta::assert_snapshot!(help.join("\n"));
    press(&mut viewer, KeyCode::End);
    let end = frame(&scene, &mut viewer);
    assert!(
        end.iter().any(|line| line.starts_with("bells/s")),
        "{end:?}"
    );
    press(&mut viewer, KeyCode::Esc);
    assert!(frame(&scene, &mut viewer)[23].contains("rows 1-19 of 60"));
    press(&mut viewer, KeyCode::Char('p'));
    assert!(viewer.is_held && frame(&scene, &mut viewer)[23].starts_with("HELD"));
    for quits in [
        KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
        KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE),
        KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
    ] {
        assert_eq!(viewer.handle_key(quits), Reaction::Quit);
    }
}

#[test]
fn the_names_of_the_tables_are_turned_through() {
    let (scene, mut viewer) = (crowd(3, program), Viewer::default());
    let titles = [
        "Participants",
        "Batches",
        "Streams",
        "Memory",
        "Topics",
        "History",
        "Logs",
        "Blocked",
    ];
    for title in titles.iter().chain(&titles) {
        let frame = frame(&scene, &mut viewer);
        assert!(frame[2].starts_with(title), "{frame:?}");
        press(&mut viewer, KeyCode::Tab);
    }
    press(&mut viewer, KeyCode::BackTab);
    assert!(frame(&scene, &mut viewer)[2].starts_with("Blocked"));
    press(&mut viewer, KeyCode::Char('9'));
    assert!(frame(&scene, &mut viewer)[2].starts_with("Blocked"));
}

/// Participants of one process whose ids begin alike.
#[test]
fn participants_with_one_name_are_told_apart() {
    let mut all: Vec<_> = (0..3).map(|rank| figures(rank, 4)).collect();
    for (number, one) in all.iter_mut().enumerate() {
        let id = (0xabcd_u128 << 112) | number as u128;
        (one.pid, one.member) = (100, format!("{id:032x}"));
    }
    let scene = Scene::of(&snapshot(2, vec![]), &snapshot(4, all));
    let names: BTreeSet<_> = scene.participants.iter().map(|it| &it.name).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn small_terminals_show_what_fits() {
    for scene in [crowd(60, program), crowd(3, wide), Scene::default()] {
        for size in [(1, 1), (1, 9), (9, 1), (7, 3), (20, 5), (80, 24), (300, 80)] {
            let mut viewer = Viewer::default();
            for _ in 0..9 {
                for key in [
                    KeyCode::Tab,
                    KeyCode::End,
                    KeyCode::Right,
                    KeyCode::Char('>'),
                    KeyCode::Char('?'),
                ] {
                    press(&mut viewer, key);
                    let lines = frame_of(&scene, &mut viewer, size);
                    assert_eq!(lines.len(), usize::from(size.1));
                }
                press(&mut viewer, KeyCode::Char('?'));
            }
        }
    }
    let narrow = frame_of(&crowd(60, program), &mut Viewer::default(), (30, 8));
    assert!(narrow[0].ends_with('…'), "{narrow:?}");
    assert!(narrow[1].contains("1 Participants of 8"), "{narrow:?}");
}

/// Names come from other processes.
#[test]
fn control_characters_do_not_reach_the_terminal() {
    let scene = crowd_with(
        3,
        |number| format!("a\u{1b}[2J\n{number}"),
        |all| {
            all[0].topics[0].topic = "t\u{1b}]0;x\u{7}".to_owned();
            all[0].transfers = vec![TransferFigures {
                topic: "h\u{1b}c".to_owned(),
                ..TransferFigures::default()
            }];
            all[0].mismatches = vec![MismatchFigures {
                types: Some("\u{9b}31m\r".to_owned()),
                ..mismatch()
            }];
        },
    );
    let mut viewer = Viewer::default();
    for _ in 0..7 {
        let lines = frame(&scene, &mut viewer);
        assert!(lines.iter().all(|line| !line.contains(char::is_control)));
        press(&mut viewer, KeyCode::Tab);
    }
    let lines = page(&scene);
    assert!(lines.lines().all(|line| !line.contains(char::is_control)));
}
