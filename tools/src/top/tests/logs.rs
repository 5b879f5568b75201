//! Logs of PERSISTENT topics.

use ratatui::crossterm::event::KeyCode;
use spindle_dds::monitor::{LogCondition, TopicLogFigures};

use super::frames::{frame, press};
use super::*;
use crate::top::names::columns;
use crate::top::viewer::Viewer;

fn log(condition: LogCondition, syncs: u64) -> TopicLogFigures {
    TopicLogFigures {
        topic: "Square".to_owned(),
        condition,
        behind: 17,
        records: 1_000_000,
        files: 3,
        bytes: 190_000_000,
        syncs,
        written_bytes: syncs * 1_000_000,
        compacted: 5,
    }
}

/// Two logs are open, and one disk is full.
fn logged(seconds: u64, all: &mut [ParticipantFigures]) {
    all[0].logs = vec![log(LogCondition::Open, seconds * 10)];
    all[1].logs = vec![log(LogCondition::Shut { present: 1, of: 3 }, 0)];
    let why = "no room".to_owned();
    all[2].logs = vec![log(LogCondition::Full { why }, seconds)];
}

#[test]
fn logs_are_shown_with_their_states() {
    let scene = scene(logged);
    let mut viewer = Viewer::default();
    press(&mut viewer, KeyCode::Char('7'));
    let lines = frame(&scene, &mut viewer);
    assert!(lines.iter().all(|line| columns(line) <= 80), "{lines:?}");
    let words = |line: &String| line.split_whitespace().map(str::to_owned).collect();
    let words: Vec<Vec<String>> = lines[4..7].iter().map(words).collect();
    let of = |numbers: &str| format!("Square {numbers}");
    let words: Vec<String> = words.iter().map(|it| it.join(" ")).collect();
    assert_eq!(
        words,
        [
            of("display/101 shut 1/3 17 0 0 3 190 5"),
            of("recorder/102 full 17 1.0 1.00 3 190 5"),
            of("writer/100 open 17 10.0 10.00 3 190 5"),
        ]
    );
}

#[test]
fn a_page_and_json_have_the_logs() {
    let scene = scene(logged);
    let page = page(&scene);
    let section = page.split("\n\n").find(|it| it.starts_with("Logs"));
    assert_eq!(section.expect("the section").lines().count(), 5);
    let json = serde_json::to_value(&scene).expect("JSON");
    let condition = &json["logs"][0]["condition"];
    assert_eq!(
        *condition,
        serde_json::json!({"state": "shut", "present": 1, "of": 3})
    );
    assert_eq!(json["logs"][1]["condition"]["why"], "no room");
    assert_eq!(json["logs"][2]["syncs_per_s"], 10.0);
}

#[test]
fn nothing_is_said_of_logs_where_there_are_none() {
    let text = page(&scene(|_, _| {}));
    assert!(!text.contains("Logs"), "{text}");
}
