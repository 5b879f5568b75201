//! Names in few columns: what is cut keeps what tells it apart from the others.

use std::collections::{BTreeMap, BTreeSet};

use ratatui::text::Span;

const CUT: &str = "…";

/// Columns that a text takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// A text without control characters, which a terminal would interpret.
pub(crate) fn clean(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// A text with spaces behind it, in `width` columns.
pub(crate) fn padded(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(columns(text));
    text.to_owned() + &" ".repeat(missing)
}

/// The names in at most `width` columns each: names that are too long lose their middle, such that
/// different names stay different where the width allows.
pub(super) fn shorten<'n>(names: impl Iterator<Item = &'n str>, width: usize) -> Vec<String> {
    let names: Vec<&str> = names.collect();
    let different: BTreeSet<&str> = names.iter().copied().collect();
    let short = |all: BTreeMap<&str, String>| {
        let short = |name: &&str| all.get(name).cloned().unwrap_or_default();
        names.iter().map(short).collect()
    };
    // What all that are too long begin with is left out where it has to be.
    let long = different
        .iter()
        .copied()
        .filter(|name| columns(name) > width);
    let common = common_prefix(long);
    for left_out in [0, common] {
        let kept = width.saturating_sub(1 + usize::from(left_out > 0));
        // The end of a name tells more than its beginning, as a rule.
        for head in std::iter::once(kept / 3).chain(0..=kept) {
            let cut = different.iter().map(|name| {
                let text = match left_out {
                    1.. if columns(name) > width => {
                        let rest: String = name.chars().skip(left_out).collect();
                        CUT.to_owned() + &cut(&rest, head, width.saturating_sub(1))
                    }
                    _ => cut(name, head, width),
                };
                (*name, text)
            });
            let cut: BTreeMap<&str, String> = cut.collect();
            let is_narrow = cut.values().all(|text| columns(text) <= width);
            if is_narrow && cut.values().collect::<BTreeSet<_>>().len() == different.len() {
                return short(cut);
            }
        }
    }
    let numbered = (1..).zip(&different).map(|(number, name)| {
        let number = format!("~{number}");
        let room = width.saturating_sub(number.len());
        let text = match columns(name) <= width {
            true => (*name).to_owned(),
            false => cut(name, room.saturating_sub(1), room) + &number,
        };
        (*name, text)
    });
    short(numbered.collect())
}

/// How many characters all these texts begin with.
fn common_prefix<'n>(mut texts: impl Iterator<Item = &'n str>) -> usize {
    let Some(first) = texts.next() else {
        return 0;
    };
    let alike = |text: &str| {
        let pairs = first.chars().zip(text.chars());
        pairs.take_while(|(one, other)| one == other).count()
    };
    texts.map(alike).min().unwrap_or(0)
}

/// A text in at most `width` columns. If it is longer, `head` columns of its beginning are kept, and
/// the rest of its end.
fn cut(text: &str, head: usize, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let Some(kept) = width.checked_sub(1) else {
        return String::new();
    };
    let head = head.min(kept);
    let begin = prefix(text.chars(), head);
    let end = prefix(text.chars().rev(), kept - head);
    let begin: String = text.chars().take(begin).collect();
    let skipped = text.chars().count() - end;
    let end: String = text.chars().skip(skipped).collect();
    begin + CUT + &end
}

/// A text in at most `width` columns; what is cut at its end is shown by a sign.
pub(super) fn cut_end(text: &str, width: usize) -> String {
    cut(text, width, width)
}

/// How many of these characters fit into so many columns.
fn prefix(chars: impl Iterator<Item = char>, width: usize) -> usize {
    let mut used = 0;
    let fits = |character: &char| {
        used += columns(character.encode_utf8(&mut [0; 4]));
        used <= width
    };
    chars.take_while(fits).count()
}

/// A text as lines of at most `width` columns, cut between words where that is possible. All but the
/// first are indented.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    const INDENT: &str = "    ";
    let width = width.max(INDENT.len() + 4);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word = word;
        loop {
            let is_first = lines.len() == 1;
            let line = lines.last_mut().expect("there is one");
            let is_empty = line.is_empty() || !is_first && *line == INDENT;
            let space = usize::from(!is_empty);
            let room = width.saturating_sub(columns(line) + space);
            if columns(word) <= room {
                line.extend((!is_empty).then_some(' '));
                line.push_str(word);
                break;
            }
            if is_empty {
                let at = prefix(word.chars(), room).max(1);
                let at = word.char_indices().nth(at).map_or(word.len(), |(at, _)| at);
                let (part, rest) = word.split_at(at);
                line.push_str(part);
                word = rest;
            }
            lines.push(INDENT.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], width: usize, expected: &[&str]) {
        let short = shorten(names.iter().copied(), width);
        assert_eq!(short, expected);
        assert!(short.iter().all(|it| columns(it) <= width), "{short:?}");
    }

    #[test]
    fn names_that_fit_stay() {
        check(
            &["writer/1", "writer/2", "writer/1"],
            8,
            &["writer/1", "writer/2", "writer/1"],
        );
        check(&[], 8, &[]);
    }

    #[test]
    fn what_tells_names_apart_stays() {
        check(
            &["plant/line/sensor/one", "plant/line/sensor/two"],
            10,
            &["pla…or/one", "pla…or/two"],
        );
        // In the middle,
        check(
            &[
                "plant/07/temperature/celsius",
                "plant/08/temperature/celsius",
            ],
            12,
            &["plant/07…ius", "plant/08…ius"],
        );
        // at the beginning,
        check(
            &["a/temperature/celsius", "b/temperature/celsius"],
            8,
            &["a/…lsius", "b/…lsius"],
        );
        // behind a beginning that is longer than the width,
        check(
            &[
                "plant.building.line-07.temperature.service",
                "plant.building.line-08.temperature.service",
            ],
            12,
            &["…7.t…service", "…8.t…service"],
        );
        // and where no cut shows both.
        check(
            &[
                "a-and-then-1-and-so-on",
                "a-and-then-2-and-so-on",
                "b-and-then-2-and-so-on",
                "a",
            ],
            7,
            &["a-an…~2", "a-an…~3", "b-an…~4", "a"],
        );
        check(
            &["温度センサー一", "温度センサー二"],
            7,
            &["温…ー一", "温…ー二"],
        );
    }

    #[test]
    fn no_width_is_too_small() {
        for width in 0..4 {
            let names = ["aaaaaaaa", "bbbbbbbb"];
            assert_eq!(shorten(names.into_iter(), width).len(), 2);
            assert!(columns(&cut_end("abcdefgh", width)) <= width);
            assert!(!wrap("abcdefgh ijklmnop", width).is_empty());
        }
        assert_eq!(cut_end("abcdefgh", 4), "abc…");
    }

    #[test]
    fn long_lines_are_wrapped_and_lose_nothing() {
        let text = "writer/100 waits for room (Square): a-word-that-is-longer-than-a-line";
        let lines = wrap(text, 20);
        assert_eq!(
            lines,
            [
                "writer/100 waits for",
                "    room (Square):",
                "    a-word-that-is-l",
                "    onger-than-a-lin",
                "    e",
            ]
        );
        assert_eq!(wrap("", 20), [""]);
        assert_eq!(wrap("one  two", 20), ["one  two"]);
    }
}
