//! XML text read into a tree of elements that know their place.
//!
//! Everything is bounded: size of the file, number and depth of elements, number
//! of attributes. There is no DTD and no entity but the five predefined.

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::diagnostic::{At, Report, quote};
use crate::xml::dialect::Namespaces;
use crate::xml::encoding;

/// One element: its local name, attributes, children and text.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Self>,
    /// All text directly inside, without the blanks around it.
    pub(crate) text: String,
    /// Where that text begins; the element's own place when there is none.
    pub(crate) text_at: At,
    pub(crate) at: At,
    /// The product that the namespace or schema of the element is of, if it is a known one.
    pub(crate) dialect: Option<&'static str>,
    /// Variables in its text or attributes that have no value.
    pub(crate) unset: Vec<String>,
}

impl Element {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A document as far as it could be read.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) root: Option<Element>,
    /// Whether the text broke off, so that what is missing may just be unread.
    pub(crate) broken: bool,
}

/// Reads `bytes` into a tree; what is wrong with them as XML goes to `report`.
pub(crate) fn read(bytes: &[u8], report: &mut Report) -> Document {
    let broken = Document {
        root: None,
        broken: true,
    };
    if bytes.len() > FILE_BYTES_MAX {
        report.error(
            START,
            format!("the file is larger than {FILE_BYTES_MAX} bytes"),
        );
        return broken;
    }
    let Some(text) = encoding::decode(bytes, report) else {
        return broken;
    };
    let text = text.as_ref();
    if let Some(offset) = text.find(is_forbidden) {
        report.error(position_in(text, offset), "a control character is no XML");
        return broken;
    }
    Builder::new(text, report).run()
}

/// The tree under construction.
struct Builder<'a, 'r> {
    reader: Reader<&'a [u8]>,
    cursor: Cursor<'a>,
    report: &'r mut Report,
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
    namespaces: Namespaces,
}

impl<'a, 'r> Builder<'a, 'r> {
    fn new(text: &'a str, report: &'r mut Report) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().check_comments = true;
        Self {
            reader,
            cursor: Cursor::new(text),
            report,
            open: vec![],
            root: None,
            elements: 0,
            namespaces: Namespaces::default(),
        }
    }

    fn run(mut self) -> Document {
        let mut broken = false;
        loop {
            let offset = self.reader.buffer_position() as usize;
            let at = self.cursor.advance(offset);
            match self.reader.read_event() {
                Ok(Event::Text(text)) => {
                    let blanks = text.len() - text.trim_start().len();
                    let at = self.cursor.advance(offset + blanks);
                    self.text(&text.xml10_content(), at);
                }
                Ok(Event::Eof) => break,
                Ok(event) => {
                    if !self.handle(event, at) {
                        broken = true;
                        break;
                    }
                }
                Err(error) => {
                    let at = self.cursor.advance(self.reader.error_position() as usize);
                    self.report
                        .error(at, format!("not well-formed XML: {error}"));
                    broken = true;
                    break;
                }
            }
        }
        self.finish(broken)
    }

    /// Takes one event in; false when reading on makes no sense.
    fn handle(&mut self, event: Event<'a>, at: At) -> bool {
        match event {
            Event::Start(tag) => return self.start(&tag, at),
            Event::Empty(tag) => {
                if !self.start(&tag, at) {
                    return false;
                }
                self.end();
            }
            Event::End(_) => self.end(),
            Event::CData(text) => self.text(&text.xml10_content(), at),
            Event::GeneralRef(reference) => self.reference(&reference, at),
            Event::DocType(_) => {
                self.report
                    .error(at, "a document type (DTD) is not accepted; remove it");
            }
            Event::Decl(_) | Event::Text(_) | Event::Comment(_) | Event::PI(_) | Event::Eof => {}
        }
        true
    }

    fn start(&mut self, tag: &BytesStart<'_>, at: At) -> bool {
        self.elements += 1;
        if self.elements > ELEMENTS_MAX {
            self.report
                .error(at, format!("more than {ELEMENTS_MAX} elements"));
            return false;
        }
        if self.open.len() == DEPTH_MAX {
            self.report
                .error(at, format!("elements nested deeper than {DEPTH_MAX}"));
            return false;
        }
        let name = tag.local_name().as_ref().to_owned();
        if self.open.is_empty() && self.root.is_some() {
            self.report
                .error(at, format!("a second root element {}", quote(&name)));
            return false;
        }
        let attributes = self.attributes(tag, at);
        let prefix = tag.name().prefix().map(|prefix| prefix.as_ref().to_owned());
        let dialect = self
            .namespaces
            .dialect(prefix.as_deref().unwrap_or_default());
        self.open.push(Element {
            name,
            attributes,
            children: vec![],
            text: String::new(),
            text_at: at,
            at,
            dialect,
            unset: vec![],
        });
        true
    }

    /// The attributes without namespace declarations and prefixed ones.
    fn attributes(&mut self, tag: &BytesStart<'_>, at: At) -> Vec<(String, String)> {
        let mut attributes = Vec::new();
        for (count, attribute) in tag.attributes().enumerate() {
            if count == ATTRIBUTES_MAX {
                self.report
                    .error(at, format!("more than {ATTRIBUTES_MAX} attributes"));
                break;
            }
            let attribute = match attribute {
                Ok(attribute) => attribute,
                Err(error) => {
                    self.report
                        .error(at, format!("not well-formed XML: {error}"));
                    break;
                }
            };
            let name: &str = attribute.key.as_ref();
            if name == "xmlns" || name.contains(':') {
                let uri: &str = attribute.value.as_ref();
                self.namespaces.declare(self.open.len(), name, uri);
                continue;
            }
            match attribute.normalized_value(XmlVersion::Explicit1_0) {
                Ok(value) => attributes.push((name.to_owned(), value.trim().to_owned())),
                Err(error) => self
                    .report
                    .error(at, format!("attribute {}: {error}", quote(name))),
            }
        }
        attributes
    }

    fn end(&mut self) {
        let Some(mut element) = self.open.pop() else {
            return;
        };
        element.text = element.text.trim().to_owned();
        self.namespaces.leave(self.open.len());
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
    }

    fn text(&mut self, text: &str, at: At) {
        match self.open.last_mut() {
            Some(element) => {
                if element.text.trim().is_empty() {
                    element.text_at = at;
                }
                element.text.push_str(text);
            }
            None if text.trim().is_empty() => {}
            None => {
                let text = quote(text.trim());
                self.report
                    .error(at, format!("text {text} outside of the root element"));
            }
        }
    }

    fn reference(&mut self, reference: &BytesRef<'_>, at: At) {
        let character = match reference.resolve_char_ref() {
            Ok(Some(c)) if !is_forbidden(c) => c.to_string(),
            Ok(Some(_)) => return self.report.error(at, "a control character is no XML"),
            Ok(None) => {
                let name = reference.xml10_content();
                match resolve_predefined_entity(&name) {
                    Some(text) => text.to_owned(),
                    None => {
                        let name = quote(&name);
                        let known = "only lt, gt, amp, apos and quot are known";
                        return self.report.error(at, format!("entity {name}; {known}"));
                    }
                }
            }
            Err(error) => {
                return self
                    .report
                    .error(at, format!("not well-formed XML: {error}"));
            }
        };
        self.text(&character, at);
    }

    fn finish(mut self, broken: bool) -> Document {
        let unclosed = !self.open.is_empty();
        if let (false, Some(element)) = (broken, self.open.last()) {
            let name = quote(&element.name);
            self.report
                .error(element.at, format!("element {name} is not closed"));
        }
        while !self.open.is_empty() {
            self.end();
        }
        if self.root.is_none() && !broken {
            self.report.error(START, "there is no element in the file");
        }
        Document {
            root: self.root,
            broken: broken || unclosed,
        }
    }
}

/// Turns growing byte offsets into lines and columns.
struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    at: At,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            at: START,
        }
    }

    /// The place of `offset`, which must not be before that of the last call.
    fn advance(&mut self, offset: usize) -> At {
        let offset = self.text.floor_char_boundary(offset.min(self.text.len()));
        for c in self
            .text
            .get(self.offset..offset)
            .unwrap_or_default()
            .chars()
        {
            if c == '\n' {
                self.at = At {
                    line: self.at.line + 1,
                    column: 1,
                };
            } else {
                self.at.column += 1;
            }
        }
        self.offset = self.offset.max(offset);
        self.at
    }
}

fn is_forbidden(c: char) -> bool {
    c < ' ' && !matches!(c, '\t' | '\n' | '\r')
}

/// The place of `offset` in `text`.
pub(crate) fn position_in(text: &str, offset: usize) -> At {
    Cursor::new(text).advance(offset)
}

pub(crate) const START: At = At { line: 1, column: 1 };
const FILE_BYTES_MAX: usize = 4 << 20;
const ELEMENTS_MAX: usize = 50_000;
const DEPTH_MAX: usize = 32;
const ATTRIBUTES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) -> Option<Element> {
        let mut report = Report::new("t.xml".into());
        let document = read(text.as_bytes(), &mut report);
        let said: Vec<String> = report
            .into_diagnostics()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(said, expected);
        document.root
    }

    #[test]
    fn elements_know_their_place() {
        let root = check("<?xml version=\"1.0\"?>\n<a>\n  é<b x='1'/></a>", &[]).unwrap();
        assert_eq!((root.at.line, root.at.column), (2, 1));
        let child = &root.children[0];
        assert_eq!((child.at.line, child.at.column), (3, 4));
        assert_eq!(child.attribute("x"), Some("1"));
    }

    #[test]
    fn text_is_joined_and_trimmed() {
        let root = check("<a> 1 &lt;<![CDATA[<2>]]>&#65;<!-- x --> 3 </a>", &[]).unwrap();
        assert_eq!(root.text, "1 <<2>A 3");
    }

    #[test]
    fn what_is_no_xml_is_refused() {
        check("", &["t.xml:1:1: error: there is no element in the file"]);
        check("<a>\n<b>", &["t.xml:2:1: error: element 'b' is not closed"]);
        check("<a/><b/>", &["t.xml:1:5: error: a second root element 'b'"]);
        check(
            "<a/>x",
            &["t.xml:1:5: error: text 'x' outside of the root element"],
        );
        check(
            "<a>&boom;</a>",
            &["t.xml:1:4: error: entity 'boom'; only lt, gt, amp, apos and quot are known"],
        );
        check(
            "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>",
            &["t.xml:1:1: error: a document type (DTD) is not accepted; remove it"],
        );
        check(
            "<a>\u{1}</a>",
            &["t.xml:1:4: error: a control character is no XML"],
        );
    }

    #[test]
    fn depth_is_bounded() {
        check(
            &"<a>".repeat(100),
            &["t.xml:1:97: error: elements nested deeper than 32"],
        );
    }
}
