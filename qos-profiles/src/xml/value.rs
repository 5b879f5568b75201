//! Values of members, read from the text of an element.

use std::str::FromStr;

use crate::diagnostic::{Report, did_you_mean, quote};
use crate::duration::Duration;
use crate::label::Labelled;
use crate::length::Length;
use crate::policy::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, HistoryKind, LivelinessKind,
    OwnershipKind, PresentationAccessScope, ReliabilityKind, TypeConsistencyKind,
};
use crate::xml::members::{attributes, for_each, no_children};
use crate::xml::tree::Element;

/// A member that an element can set.
pub(crate) trait Value {
    /// Takes the value from `element`; on an error it is reported and `self` stays.
    fn set(&mut self, element: &Element, report: &mut Report);

    /// The value as it is written in a file.
    fn show(&self) -> String;
}

impl Value for bool {
    fn set(&mut self, element: &Element, report: &mut Report) {
        let Some(text) = text(element, report) else {
            return;
        };
        match constant(text) {
            "true" | "1" | "BOOLEAN_TRUE" => *self = true,
            "false" | "0" | "BOOLEAN_FALSE" => *self = false,
            _ => wrong(element, text, "true, false, 1 or 0", report),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for u32 {
    fn set(&mut self, element: &Element, report: &mut Report) {
        let Some(text) = text(element, report) else {
            return;
        };
        match number_of(text) {
            Some(value) => *self = value,
            None => wrong(element, text, "a number from 0 to 4294967295", report),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for i32 {
    fn set(&mut self, element: &Element, report: &mut Report) {
        let Some(text) = text(element, report) else {
            return;
        };
        match text.parse() {
            Ok(value) => *self = value,
            Err(_) => wrong(
                element,
                text,
                "a number from -2147483648 to 2147483647",
                report,
            ),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for Length {
    fn set(&mut self, element: &Element, report: &mut Report) {
        let Some(text) = text(element, report) else {
            return;
        };
        match constant(text) {
            "" => sets_nothing(element, report),
            // -1 is the value of the constant.
            "LENGTH_UNLIMITED" | "-1" => *self = Self::Unlimited,
            "LENGTH_AUTO" => automatic(element, text, report),
            number => match number_of(number) {
                Some(limit) => *self = Self::Limited(limit),
                None => {
                    let right = "a number up to 4294967295 or LENGTH_UNLIMITED (-1)";
                    wrong(element, text, right, report);
                }
            },
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Limited(limit) => limit.to_string(),
            Self::Unlimited => "LENGTH_UNLIMITED".to_owned(),
        }
    }
}

/// A duration is one value: a part that is not given is zero, and either part
/// given as infinite makes it infinite.
impl Value for Duration {
    fn set(&mut self, element: &Element, report: &mut Report) {
        attributes(element, &[], report);
        let (mut sec, mut nanosec) = (None, None);
        for_each(
            element,
            &["sec", "nanosec"],
            false,
            report,
            |member, report| {
                if member.name == "sec" {
                    sec = part(member, "DURATION_INFINITE_SEC", report);
                } else {
                    nanosec = part(member, "DURATION_INFINITE_NSEC", report);
                }
            },
        );
        if sec.is_none() && nanosec.is_none() {
            return;
        }
        let zero = Part::Number(0);
        match (sec.unwrap_or(zero), nanosec.unwrap_or(zero)) {
            (Part::Automatic | Part::Wrong, _) | (_, Part::Automatic | Part::Wrong) => {}
            (Part::Infinite | Part::Number(INFINITE), Part::Infinite) | (Part::Infinite, _) => {
                *self = Self::INFINITE;
            }
            (Part::Number(0), Part::Infinite) if sec.is_none() => *self = Self::INFINITE,
            (Part::Number(sec), Part::Infinite) => report.error(
                element.at,
                format!("{sec} s and infinite ns; sec must be DURATION_INFINITE_SEC too"),
            ),
            (Part::Number(sec), Part::Number(nanosec)) => {
                match i32::try_from(sec).ok().map(|sec| Self::new(sec, nanosec)) {
                    Some(Ok(duration)) => *self = duration,
                    _ => report.error(
                        element.at,
                        format!(
                            "{sec} s and {nanosec} ns make no duration: sec must be below \
                             2147483648, nanosec below 1000000000"
                        ),
                    ),
                }
            }
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

#[derive(Clone, Copy)]
enum Part {
    Number(u32),
    Infinite,
    /// What another product chooses by itself: it sets nothing here.
    Automatic,
    /// None of these, which has been reported.
    Wrong,
}

/// `sec` or `nanosec`; `infinite` is the standard's name for the infinite one.
fn part(element: &Element, infinite: &str, report: &mut Report) -> Option<Part> {
    let Some(text) = text(element, report) else {
        return Some(Part::Wrong);
    };
    let number = match constant(text) {
        "" => {
            sets_nothing(element, report);
            return None;
        }
        "DURATION_INFINITY" | "DURATION_INFINITE" => return Some(Part::Infinite),
        name if name == infinite => return Some(Part::Infinite),
        "DURATION_ZERO" | "DURATION_ZERO_SEC" | "DURATION_ZERO_NSEC" => Some(0),
        "DURATION_AUTO" | "DURATION_AUTO_SEC" | "DURATION_AUTO_NSEC" => {
            automatic(element, text, report);
            return Some(Part::Automatic);
        }
        number => number_of(number),
    };
    if number.is_none() {
        let right = format!("a number or {infinite} or DURATION_INFINITY");
        wrong(element, text, &right, report);
    }
    Some(number.map_or(Part::Wrong, Part::Number))
}

macro_rules! labelled_values {
    ($($kind:ty),+ $(,)?) => { $(
        impl Value for $kind {
            fn set(&mut self, element: &Element, report: &mut Report) {
                if let Some(value) = label(element, report) {
                    *self = value;
                }
            }

            fn show(&self) -> String {
                self.idl_label().to_owned()
            }
        }
    )+ };
}

labelled_values!(
    DestinationOrderKind,
    DurabilityKind,
    HistoryKind,
    LivelinessKind,
    OwnershipKind,
    PresentationAccessScope,
    ReliabilityKind,
    TypeConsistencyKind,
);

fn label<K: Labelled>(element: &Element, report: &mut Report) -> Option<K> {
    let text = text(element, report)?;
    if AUTOMATIC.contains(&constant(text)) {
        automatic(element, text, report);
        return None;
    }
    let found = K::VALUES
        .iter()
        .copied()
        .find(|value| value.idl_label() == constant(text));
    if found.is_none() {
        let labels: Vec<&str> = K::VALUES.iter().map(|value| value.idl_label()).collect();
        let hint = did_you_mean(constant(text), labels.iter().copied());
        let known = if hint.is_empty() {
            format!("; it must be {}", labels.join(" or "))
        } else {
            hint
        };
        report.error(
            element.at,
            format!("{} is {}{known}", quote(&element.name), quote(text)),
        );
    }
    found
}

/// Bytes as hexadecimal digits in pairs, blanks between pairs; or the list of
/// earlier files, numbers of one byte with commas between.
impl Value for Vec<u8> {
    fn set(&mut self, element: &Element, report: &mut Report) {
        let Some(text) = text(element, report) else {
            return;
        };
        let bytes = if text.contains(',') || text.starts_with("0x") || text.starts_with("0X") {
            text.split(',')
                .map(|item| listed_byte(item.trim()))
                .collect()
        } else {
            hex_bytes(text)
        };
        match bytes {
            Some(bytes) => *self = bytes,
            None => wrong(
                element,
                text,
                "pairs of hexadecimal digits, as in 'de ad be ef'",
                report,
            ),
        }
    }

    fn show(&self) -> String {
        let bytes: Vec<String> = self.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    }
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for run in text.split_ascii_whitespace() {
        let digits: Option<Vec<u8>> = run
            .chars()
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect();
        let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
        bytes.extend(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]));
    }
    Some(bytes)
}

fn listed_byte(item: &str) -> Option<u8> {
    match item.strip_prefix("0x").or_else(|| item.strip_prefix("0X")) {
        Some(hex) if hex.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u8::from_str_radix(hex, 16).ok()
        }
        Some(_) => None,
        None => number_of(item),
    }
}

/// A sequence replaces the one before as a whole.
impl Value for Vec<String> {
    fn set(&mut self, element: &Element, report: &mut Report) {
        let mut items = Self::new();
        sequence(element, report, |item, report| {
            items.extend(text(item, report).map(str::to_owned));
        });
        *self = items;
    }

    fn show(&self) -> String {
        let names: Self = self.iter().map(|name| format!("{name:?}")).collect();
        format!("[{}]", names.join(", "))
    }
}

/// A sequence replaces the one before as a whole.
impl Value for Vec<DataRepresentationId> {
    fn set(&mut self, element: &Element, report: &mut Report) {
        let mut items = Self::new();
        sequence(element, report, |item, report| {
            items.extend(label::<DataRepresentationId>(item, report))
        });
        *self = items;
    }

    fn show(&self) -> String {
        let labels: Vec<&str> = self.iter().map(|id| id.idl_label()).collect();
        format!("[{}]", labels.join(", "))
    }
}

/// Calls `item` for each `element` child.
pub(crate) fn sequence(
    element: &Element,
    report: &mut Report,
    item: impl FnMut(&Element, &mut Report),
) {
    for_each(element, &["element"], true, report, item);
}

/// The text of an element, unless it holds something else, which is reported.
pub(crate) fn text<'e>(element: &'e Element, report: &mut Report) -> Option<&'e str> {
    attributes(element, &[], report);
    no_children(element, report);
    let is_value = element.children.is_empty() && element.unset.is_empty();
    is_value.then_some(element.text.as_str())
}

/// A number in decimal digits and nothing else.
pub(crate) fn number_of<N: FromStr>(text: &str) -> Option<N> {
    text.bytes()
        .all(|digit| digit.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// The name of a constant of the IDL, which files of earlier language bindings prefix.
fn constant(text: &str) -> &str {
    text.strip_prefix("DDS_").unwrap_or(text)
}

fn automatic(element: &Element, text: &str, report: &mut Report) {
    let (name, text) = (quote(&element.name), quote(text));
    report.warning(
        element.at,
        format!("{name} is {text}, which another product chooses by itself; it sets nothing here"),
    );
}

fn wrong(element: &Element, text: &str, right: &str, report: &mut Report) {
    let (name, text) = (quote(&element.name), quote(text));
    report.error(element.at, format!("{name} is {text}; it must be {right}"));
}

fn sets_nothing(element: &Element, report: &mut Report) {
    report.warning(
        element.at,
        format!("{} is empty and sets nothing", quote(&element.name)),
    );
}

/// Labels of RTI Connext for what it chooses by itself.
const AUTOMATIC: [&str; 2] = ["AUTO_TYPE_COERCION", "AUTO_DATA_REPRESENTATION"];

/// The number that `DURATION_INFINITE_SEC` stands for.
const INFINITE: u32 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::tree;

    /// Reads `inner` as the content of an element into a value that starts as `start`.
    fn read<V: Value>(inner: &str, start: V) -> (V, usize) {
        let mut report = Report::new("t.xml".into());
        let document = tree::read(format!("<v>{inner}</v>").as_bytes(), &mut report);
        let mut value = start;
        value.set(&document.root.unwrap(), &mut report);
        (value, report.into_diagnostics().len())
    }

    fn check<V: Value + PartialEq + std::fmt::Debug>(inner: &str, start: V, expected: V) {
        assert_eq!(read(inner, start), (expected, 0), "{inner}");
    }

    fn refused<V: Value + PartialEq + std::fmt::Debug + Clone>(inner: &str, start: V) {
        assert_eq!(read(inner, start.clone()), (start, 1), "{inner}");
    }

    #[test]
    fn durations() {
        let start = Duration::from_secs(77);
        check("", start, start);
        check("<sec>3</sec>", start, Duration::from_secs(3));
        check("<nanosec>5</nanosec>", start, Duration::from_nanos(5));
        check(
            "<nanosec>7</nanosec><sec>0</sec>",
            start,
            Duration::from_nanos(7),
        );
        for infinite in [
            "<sec>DURATION_INFINITE_SEC</sec><nanosec>DURATION_INFINITE_NSEC</nanosec>",
            "<sec>DURATION_INFINITY</sec>",
            "<nanosec>DURATION_INFINITY</nanosec>",
            "<sec>2147483647</sec><nanosec>2147483647</nanosec>",
            "<sec>2147483647</sec><nanosec>DURATION_INFINITE_NSEC</nanosec>",
            "<sec>DDS_DURATION_INFINITE_SEC</sec><nanosec>DDS_DURATION_INFINITE_NSEC</nanosec>",
            "<sec>DURATION_INFINITE</sec>",
        ] {
            check(infinite, start, Duration::INFINITE);
        }
        for zero in [
            "<sec>DURATION_ZERO_SEC</sec><nanosec>DURATION_ZERO_NSEC</nanosec>",
            "<sec>DDS_DURATION_ZERO_SEC</sec>",
            "<sec>DURATION_ZERO</sec>",
        ] {
            check(zero, start, Duration::ZERO);
        }
        // A warning says that the default stays.
        refused("<sec>DURATION_AUTO_SEC</sec>", start);
        refused(
            "<sec>1</sec><nanosec>DDS_DURATION_AUTO_NSEC</nanosec>",
            start,
        );
        refused("<sec>DURATION_INFINITE_NSEC</sec>", start);
        refused("<sec>-1</sec>", start);
        refused("<sec>+1</sec>", start);
        refused("<sec>-1</sec><nanosec>0</nanosec>", start);
        refused("<sec>1.5</sec>", start);
        refused("<sec>2147483648</sec>", start);
        refused("<nanosec>1000000000</nanosec>", start);
        refused("<sec>1</sec><nanosec>DURATION_INFINITY</nanosec>", start);
    }

    #[test]
    fn bytes() {
        check("", vec![9], Vec::<u8>::new());
        check("00ff", vec![], vec![0, 255]);
        check(" DE ad\n be EF ", vec![], vec![0xde, 0xad, 0xbe, 0xef]);
        check("16", vec![], vec![0x16]);
        check("16,0x1F, 255", vec![], vec![16, 31, 255]);
        check("0x7", vec![], vec![7]);
        for wrong in [
            "abc", "0 0", "zz", "1,", "256,1", "0x100", "1,-1", "0x", "é0",
        ] {
            refused(wrong, vec![9u8]);
        }
    }

    #[test]
    fn numbers_and_booleans() {
        check("LENGTH_UNLIMITED", Length::Limited(1), Length::Unlimited);
        check(" 12 ", Length::Unlimited, Length::Limited(12));
        check("-1", Length::Limited(3), Length::Unlimited);
        check(
            "DDS_LENGTH_UNLIMITED",
            Length::Limited(3),
            Length::Unlimited,
        );
        refused("-2", Length::Limited(3));
        refused("4294967296", Length::Limited(3));
        check("DDS_BOOLEAN_TRUE", false, true);
        // A warning says that the default stays.
        refused("LENGTH_AUTO", Length::Limited(3));
        check("-5", 0i32, -5);
        refused("5000000000", 0i32);
        check("1", false, true);
        check("false", true, false);
        refused("TRUE", false);
        refused("", false);
    }

    #[test]
    fn labels_are_taken_exactly() {
        let start = HistoryKind::KeepLast;
        check("KEEP_ALL_HISTORY_QOS", start, HistoryKind::KeepAll);
        check("DDS_KEEP_ALL_HISTORY_QOS", start, HistoryKind::KeepAll);
        refused("KEEP_ALL", start);
        refused("keep_all_history_qos", start);
        refused("<b/>", start);
    }
}
