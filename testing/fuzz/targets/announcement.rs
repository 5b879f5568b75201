//! What a hostile member may announce: bytes as they are, types that are made up of bytes and
//! have the hashes that go with them, noted or not, and such announcements with some bytes
//! altered. Whatever makes sense is announced again, and two of them are matched, from both sides.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_dds::idl::Representation;
use spindle_dds::testing::{Announced, announce, meet};
use spindle_dds::xtypes::graph::{
    Alias, Annotations, Branch, Definition, Discriminator, Element, Enum, Extensibility, Literal,
    Member, Name, Primitive, Range, Struct, TryConstruct, Type, TypeIndex, Union,
};
use spindle_dds::xtypes::{Resolved, TypeGraph};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let piece_len = (choice & 16 != 0).then(|| 1 + usize::from(choice >> 5) * 40);
    if choice % 4 == 0 {
        let (writer, reader) = bytes.split_at(bytes.len() / 2);
        let [writer, reader] = [writer, reader].map(|bytes| made_up(bytes, piece_len));
        let _ = meet(&writer, &reader);
        return;
    }
    let representation = match choice & 4 {
        0 => Representation::Xcdr1,
        _ => Representation::Xcdr2,
    };
    let [place, new, bytes @ ..] = bytes else {
        return;
    };
    let writes = ty(bytes);
    // Much of the other type is the same.
    let mut altered = bytes.to_vec();
    alter(&mut altered, *place, *new);
    let reads = ty(&altered);
    let digests_key = choice & 8 != 0;
    let told = |writes, ty| announce(writes, ty, digests_key, piece_len);
    let (writer, reader) = (told(Some(representation), &writes), told(None, &reads));
    let (Ok(mut writer), Ok(reader)) = (writer, reader) else {
        return;
    };
    if choice % 4 == 1 {
        // Of what is said of the endpoint, or of a note.
        let notes = writer.notes.len();
        match writer.notes.get_mut(usize::from(*place) % (notes + 1)) {
            Some(note) => alter(note, *new, *place),
            None => alter(&mut writer.info, *new, *place),
        }
        let _ = meet(&writer, &reader);
        return;
    }
    meet(&writer, &reader).expect("what is announced is understood");
    let same = told(None, &writes).expect("the same as the writer's");
    assert_eq!(meet(&writer, &same), Ok(None), "a type meets itself");
});

/// What is said of an endpoint, as it is; or only its beginning, and the rest is noted.
fn made_up(bytes: &[u8], piece_len: Option<usize>) -> Announced {
    let len = piece_len.map_or(bytes.len(), |_| bytes.len() / 2);
    let (info, rest) = bytes.split_at(len);
    let notes = rest.chunks(piece_len.unwrap_or(1));
    Announced {
        info: info.to_vec(),
        notes: notes.map(<[u8]>::to_vec).collect(),
    }
}

/// Some byte at a place, which is counted in parts of the whole, becomes another.
fn alter(bytes: &mut [u8], place: u8, new: u8) {
    let at = bytes.len() * usize::from(place) / 256;
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= new;
    }
}

/// Makes types up.
struct Maker<'b> {
    bytes: &'b [u8],
    graph: TypeGraph,
    all: Vec<TypeIndex>,
}

/// Most types of one graph.
const TYPES_MAX: usize = 40;

/// A type, with all that it is made of.
fn ty(bytes: &[u8]) -> Resolved {
    let mut maker = Maker {
        bytes,
        graph: TypeGraph::new(),
        all: Vec::new(),
    };
    let count = 1 + maker.below(TYPES_MAX);
    maker.all = (0..count).map(|_| maker.graph.reserve()).collect();
    for (number, index) in maker.all.clone().into_iter().enumerate() {
        let definition = maker.definition(number == 0);
        let name = format!("m::T{number}");
        maker.graph.define(index, Some(&name), definition);
    }
    Resolved {
        ty: Type::Declared(maker.all[0]),
        graph: maker.graph,
    }
}

impl Maker<'_> {
    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((byte, rest)) => {
                self.bytes = rest;
                *byte
            }
            None => 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    fn bound(&mut self) -> Option<u32> {
        [None, Some(1), Some(4), Some(300)][self.below(4)]
    }

    fn element(&mut self, depth: usize) -> Box<Element> {
        use TryConstruct::{Discard, Trim, UseDefault};
        let byte = self.byte();
        Box::new(Element {
            ty: self.ty(depth),
            try_construct: [Discard, UseDefault, Trim][usize::from(byte % 3)],
            external: byte & 128 != 0,
        })
    }

    fn ty(&mut self, depth: usize) -> Type {
        let choices = if depth == 0 { 6 } else { 9 };
        match self.below(choices) {
            0 => Type::Primitive(Primitive::Int32),
            1 => Type::Primitive(Primitive::Byte),
            2 => Type::String8(self.bound()),
            3 => Type::String16(self.bound()),
            6 => Type::Sequence {
                element: self.element(depth - 1),
                bound: self.bound(),
            },
            7 => Type::Array {
                element: self.element(depth - 1),
                dimensions: vec![1 + u32::from(self.byte() % 8); 1 + self.below(3)],
            },
            8 => Type::Map {
                key: self.element(depth - 1),
                value: self.element(depth - 1),
                bound: self.bound(),
            },
            _ => Type::Declared(self.any()),
        }
    }

    fn any(&mut self) -> TypeIndex {
        let at = self.below(self.all.len());
        self.all[at]
    }

    fn extensibility(&mut self) -> Extensibility {
        use Extensibility::{Appendable, Final, Mutable};
        [Appendable, Mutable, Final][self.below(3)]
    }

    fn member(&mut self) -> Member {
        let (id, flags) = (u32::from(self.byte()), self.byte());
        Member {
            key: flags & 1 != 0,
            optional: flags & 2 != 0,
            must_understand: flags & 4 != 0,
            external: flags & 8 != 0,
            ..Member::new(&format!("m{}", id ^ u32::from(flags >> 6)), id, self.ty(3))
        }
    }

    fn structure(&mut self) -> Definition {
        let extensibility = self.extensibility();
        let base = (self.below(8) == 1).then(|| self.any());
        Definition::Struct(Struct {
            extensibility,
            nested: false,
            autoid_hash: false,
            base,
            members: (0..self.below(12)).map(|_| self.member()).collect(),
        })
    }

    fn branch(&mut self) -> Branch {
        Branch {
            labels: (0..self.below(4)).map(|_| i32::from(self.byte())).collect(),
            default: self.below(8) == 1,
            member: self.member(),
        }
    }

    fn definition(&mut self, is_topic: bool) -> Definition {
        match self.below(6) {
            1 => Definition::Alias(Alias {
                ty: self.ty(3),
                unit: None,
                range: Range::default(),
                custom: Vec::new(),
            }),
            2 if !is_topic => Definition::Enum(Enum {
                bit_bound: 1 + u16::from(self.byte() % 32),
                extensibility: Some(self.extensibility()),
                ignore_literal_names: false,
                literals: (0..self.below(12)).map(|_| self.literal()).collect(),
            }),
            3 => {
                let extensibility = self.extensibility();
                let discriminator = Discriminator {
                    ty: self.ty(0),
                    key: self.below(2) == 1,
                    try_construct: TryConstruct::Discard,
                    default: None,
                    annotations: Annotations::default(),
                };
                Definition::Union(Union {
                    extensibility,
                    nested: false,
                    autoid_hash: false,
                    discriminator,
                    branches: (0..self.below(8)).map(|_| self.branch()).collect(),
                })
            }
            _ => self.structure(),
        }
    }

    fn literal(&mut self) -> Literal {
        let byte = self.byte();
        Literal {
            name: Name::Text(format!("L{}", byte & 0x3f)),
            value: i32::from(byte),
            default: false,
            custom: Vec::new(),
        }
    }
}
