//! Properties of random types: they survive description and resolution in either form, and so
//! do their values.

mod support;

use proptest::prelude::*;
use spindle_dds_idl_runtime::{CdrError, Representation};
use spindle_dds_xtypes::graph::{
    Alias, Annotation, AnnotationParameter, Annotations, Applied, Bitmask, Bitset, Branch,
    Definition, Discriminator, Element, Enum, Extensibility, Field, Flag, Literal, Member, Name,
    Primitive, Range, Struct, TryConstruct, Type, TypeIndex, Union,
};
use spindle_dds_xtypes::object::{AnnotationValue, AppliedParameter, AppliedVerbatim, NameHash};
use spindle_dds_xtypes::{
    Bounded, Consistency, DataError, DynamicType, Registry, TypeGraph, assignable, describe,
};
use support::random::Random;

/// The generator of types.
struct Maker {
    random: Random,
    graph: TypeGraph,
    made: Vec<TypeIndex>,
    annotations: Vec<TypeIndex>,
}

impl Maker {
    /// An annotation whose parameters are not in the order of their names.
    fn annotation(&mut self, number: usize) {
        let parameter = |name: &str, ty: Type, default: AnnotationValue| AnnotationParameter {
            name: Name::from(name),
            ty,
            default,
        };
        let text = AnnotationValue::String8(Bounded("none".to_owned()));
        let long = Type::Primitive(Primitive::Int32);
        let parameters = vec![
            parameter("text", Type::String8(None), text),
            parameter("level", long, AnnotationValue::Int32(number as i32)),
        ];
        let definition = Definition::Annotation(Annotation { parameters });
        let index = self.graph.add(&format!("m::A{number}"), definition);
        self.annotations.push(index);
    }

    fn custom(&mut self) -> Vec<Applied> {
        let mut all = Vec::new();
        for index in self.annotations.clone() {
            if self.random.below(4) != 0 {
                continue;
            }
            let level = AnnotationValue::Int32(self.random.below(9) as i32);
            let text = AnnotationValue::String8(Bounded("text".to_owned()));
            let values = [("text", text), ("level", level)];
            let values = values.into_iter().take(self.random.below(3));
            let parameters = values.map(|(name, value)| AppliedParameter {
                name_hash: NameHash::of(name),
                value,
            });
            all.push(Applied {
                annotation: index,
                parameters: parameters.collect(),
            });
        }
        all
    }

    fn annotations(&mut self) -> Annotations {
        let verbatim = || AppliedVerbatim {
            placement: Bounded("before-declaration".to_owned()),
            language: Bounded("c++".to_owned()),
            text: "// text".to_owned(),
        };
        Annotations {
            verbatim: (self.random.below(5) == 0).then(verbatim),
            custom: self.custom(),
        }
    }

    fn extensibility(&mut self) -> Extensibility {
        use Extensibility::{Appendable, Final, Mutable};
        [Final, Appendable, Mutable][self.random.below(3)]
    }

    fn primitive(&mut self) -> Primitive {
        let kinds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17];
        Primitive::of_kind(kinds[self.random.below(kinds.len())]).expect("is a primitive")
    }

    fn bound(&mut self) -> Option<u32> {
        [None, Some(3), Some(255), Some(256), Some(70_000)][self.random.below(5)]
    }

    fn try_construct(&mut self) -> TryConstruct {
        use TryConstruct::{Discard, Trim, UseDefault};
        [Discard, Discard, UseDefault, Trim][self.random.below(4)]
    }

    fn element(&mut self, depth: usize) -> Box<Element> {
        Box::new(Element {
            ty: self.ty(depth),
            try_construct: self.try_construct(),
            external: self.random.below(5) == 0,
        })
    }

    fn ty(&mut self, depth: usize) -> Type {
        let choices = if depth == 0 { 4 } else { 8 };
        match self.random.below(choices) {
            0 => Type::Primitive(self.primitive()),
            1 => Type::String8(self.bound()),
            2 => Type::String16(self.bound()),
            4 | 5 => Type::Sequence {
                element: self.element(depth - 1),
                bound: self.bound(),
            },
            6 => Type::Array {
                element: self.element(depth - 1),
                dimensions: vec![[1, 2, 5][self.random.below(3)], 2],
            },
            7 => Type::Map {
                key: Box::new(Element::of(Type::Primitive(Primitive::Int16))),
                value: self.element(depth - 1),
                bound: self.bound(),
            },
            _ if self.made.is_empty() => Type::Primitive(Primitive::Byte),
            _ => Type::Declared(self.made[self.random.below(self.made.len())]),
        }
    }

    fn member(&mut self, id: u32) -> Member {
        let key = self.random.below(4) == 0;
        Member {
            key,
            optional: !key && self.random.below(3) == 0,
            must_understand: self.random.below(4) == 0,
            external: self.random.below(6) == 0,
            try_construct: self.try_construct(),
            unit: (self.random.below(5) == 0).then(|| "m/s".to_owned()),
            hash_id: (self.random.below(9) == 0).then(String::new),
            custom: self.custom(),
            ..Member::new(&format!("m{id}"), id * 7, self.ty(2))
        }
    }

    fn structure(&mut self, base: Option<TypeIndex>, first: u32, oneself: TypeIndex) -> Definition {
        let count = self.random.below(5) as u32;
        let mut members: Vec<Member> = (first..first + count).map(|id| self.member(id)).collect();
        if self.random.below(3) == 0 {
            // It contains itself through a sequence.
            let list = Type::sequence(Type::Declared(oneself), None);
            members.push(Member::new("children", 5000 + first, list));
        }
        Definition::Struct(Struct {
            extensibility: self.extensibility(),
            nested: self.random.below(2) == 0,
            autoid_hash: self.random.below(5) == 0,
            base,
            members,
        })
    }

    fn union(&mut self) -> Definition {
        let count = 1 + self.random.below(4) as i32;
        let has_default = self.random.below(2) == 0;
        let branches = (0..count).map(|at| {
            let default = has_default && at == count - 1;
            let mut member = self.member(at as u32 + 1);
            (member.key, member.optional) = (false, false);
            member.must_understand = false;
            Branch {
                labels: if default {
                    Vec::new()
                } else {
                    vec![at, at + 100]
                },
                default,
                member,
            }
        });
        let branches = branches.collect();
        Definition::Union(Union {
            extensibility: self.extensibility(),
            nested: false,
            autoid_hash: false,
            discriminator: Discriminator {
                ty: Type::Primitive([Primitive::Int32, Primitive::Byte][self.random.below(2)]),
                key: self.random.below(2) == 0,
                try_construct: TryConstruct::Discard,
                default: None,
                annotations: self.annotations(),
            },
            branches,
        })
    }

    fn definition(&mut self, oneself: TypeIndex) -> Definition {
        let bits = 1 + self.random.below(32) as u16;
        let some = [
            None,
            Some(Extensibility::Final),
            Some(Extensibility::Appendable),
        ];
        match self.random.below(8) {
            0 => Definition::Alias(Alias {
                ty: self.ty(2),
                unit: None,
                range: Range::default(),
                custom: self.custom(),
            }),
            1 => Definition::Enum(Enum {
                bit_bound: bits,
                extensibility: some[self.random.below(3)],
                ignore_literal_names: false,
                literals: (0..3)
                    .map(|value| Literal {
                        name: Name::Text(format!("L{value}")),
                        value: value * 3,
                        default: value == 1,
                        custom: self.custom(),
                    })
                    .collect(),
            }),
            2 => Definition::Bitmask(Bitmask {
                bit_bound: bits,
                extensibility: some[self.random.below(3)],
                flags: vec![Flag {
                    name: Name::from("F"),
                    position: bits - 1,
                    custom: self.custom(),
                }],
            }),
            3 => Definition::Bitset(Bitset {
                fields: vec![Field {
                    name: Name::from("f"),
                    position: bits,
                    bits: 1 + self.random.below(16) as u8,
                    holder: Primitive::Int16,
                    custom: self.custom(),
                }],
            }),
            4 => self.union(),
            _ => self.structure(None, 0, oneself),
        }
    }
}

/// A graph of up to eight types; the last is a structure.
fn graph(seed: u64) -> (TypeGraph, TypeIndex) {
    let mut maker = Maker {
        random: Random::new(seed),
        graph: TypeGraph::new(),
        made: Vec::new(),
        annotations: Vec::new(),
    };
    for number in 0..maker.random.below(3) {
        maker.annotation(number);
    }
    for number in 0..maker.random.below(7) {
        let index = maker.graph.reserve();
        let definition = maker.definition(index);
        let name = format!("m::T{number}");
        maker.graph.define(index, Some(&name), definition);
        let annotations = maker.annotations();
        maker.graph.annotate(index, annotations);
        maker.made.push(index);
    }
    let base = maker.graph.reserve();
    let definition = maker.structure(None, 0, base);
    maker.graph.define(base, Some("m::Base"), definition);
    let last = maker.graph.reserve();
    let definition = maker.structure(Some(base), 100, last);
    maker.graph.define(last, Some("m::Last"), definition);
    (maker.graph, last)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn types_survive(seed: u64) {
        let (graph, root) = graph(seed);
        let found = describe(&graph).expect("short names");
        let mut registry = Registry::new();
        // Through their encoded form.
        let bytes = found.objects(&graph, root).to_bytes().expect("short names");
        registry.insert_bytes(&bytes).expect("the hashes are right");
        registry.insert_graph(&graph, &found).expect("the hashes are right");
        let information = found.information(&graph, root).expect("is described");
        let complete = registry.resolve(&information.complete.sized.identifier).expect("resolves");
        let minimal = registry.resolve(&information.minimal.sized.identifier).expect("resolves");
        for (resolved, is_complete) in [(&complete, true), (&minimal, false)] {
            let again = describe(&resolved.graph).expect("short names");
            let at = resolved.graph.indices().next().expect("the type itself");
            let expected = &information.minimal.sized;
            let described = again.minimal(at).expect("is described");
            // Types that contain each other are ordered by their names, which the minimal
            // form lacks.
            if is_complete {
                prop_assert_eq!(&described.identifier, &expected.identifier);
                let described = again.complete(at).expect("is described");
                prop_assert_eq!(&described.identifier, &information.complete.sized.identifier);
            }
        }
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            for (reader, writer) in [(&complete, &minimal), (&minimal, &complete)] {
                let outcome = assignable(
                    Some(reader),
                    Some(writer),
                    representation,
                    &Consistency::default(),
                );
                // Equality is that of identifiers; see above.
                if let Err(mismatch) = outcome {
                    prop_assert!(
                        mismatch.to_string().contains("nothing says how long"),
                        "{}",
                        mismatch
                    );
                }
            }
        }
    }

    #[test]
    fn values_survive(seed: u64, noise: Vec<u8>) {
        let (graph, root) = graph(seed);
        let ty = DynamicType::new(graph, Type::Declared(root));
        // Nested arrays may have too many values.
        let data = match ty.default_data() {
            Err(DataError::Cdr(CdrError::TooLarge { .. })) => return Ok(()),
            data => data.expect("has a default"),
        };
        prop_assume!(data.encode(Representation::Xcdr1).is_ok_and(|bytes| bytes.len() < 1 << 16));
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let bytes = data.encode(representation).expect("a default is in bounds");
            let id = ty.encapsulation(representation);
            let read = ty.decode(&bytes, id).expect("decodes");
            prop_assert_eq!(read.value(), data.value());
            prop_assert_eq!(read.key_hash(), data.key_hash());
            // A value decoded from noise is a value too.
            if let Ok(read) = ty.decode(&noise, id)
                && let Ok(bytes) = read.encode(representation)
            {
                let again = ty.decode(&bytes, id).expect("decodes");
                prop_assert_eq!(again.encode(representation), Ok(bytes));
            }
        }
    }
}
