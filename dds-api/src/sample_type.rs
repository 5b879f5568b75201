//! What endpoints need of the type of their topic, whether it is compiled or known at run time.

use std::fmt;
use std::sync::{Arc, LazyLock};

use spindle_dds_idl_runtime::{Encapsulation, Extensibility, Representation, TopicType};
use spindle_dds_xtypes::graph::{Primitive, Type};
use spindle_dds_xtypes::{DynamicType, TypeGraph};

use crate::driver::{Rekey, rekey, rekey_dynamic};
use crate::keys::{KeyTable, KnownKeys};

/// The type of the samples of a topic.
#[derive(Clone)]
pub(crate) enum SampleType {
    /// A type of the program.
    Compiled {
        extensibility: Extensibility,
        rekey: fn() -> Rekey,
        known_keys: fn(&Arc<KeyTable>) -> Option<KnownKeys>,
    },
    /// One that is known only at run time.
    Dynamic(DynamicType),
}

impl fmt::Debug for SampleType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compiled { .. } => "Compiled",
            Self::Dynamic(_) => "Dynamic",
        })
    }
}

impl SampleType {
    /// Of a compiled type.
    pub(crate) fn of<T: TopicType>() -> Self {
        Self::Compiled {
            extensibility: T::EXTENSIBILITY,
            rekey: || Arc::new(rekey::<T>),
            known_keys: KnownKeys::of::<T>,
        }
    }

    /// The type, which is known only at run time; a compiled one is not asked for it.
    pub(crate) fn dynamic(&self) -> &DynamicType {
        static NONE: LazyLock<DynamicType> =
            LazyLock::new(|| DynamicType::new(TypeGraph::new(), Type::Primitive(Primitive::Byte)));
        match self {
            Self::Compiled { .. } => &NONE,
            Self::Dynamic(ty) => ty,
        }
    }

    /// The encapsulation id of samples in a representation.
    pub(crate) fn encapsulation(&self, representation: Representation) -> Encapsulation {
        match self {
            Self::Compiled { extensibility, .. } => {
                Encapsulation::of(*extensibility, representation)
            }
            Self::Dynamic(ty) => ty.encapsulation(representation),
        }
    }

    /// What makes key hashes as the type does.
    pub(crate) fn rekey(&self) -> Rekey {
        match self {
            Self::Compiled { rekey, .. } => rekey(),
            Self::Dynamic(ty) => rekey_dynamic(ty.clone()),
        }
    }

    /// The keys that an endpoint knows; `None` for a type whose key hashes are the keys.
    pub(crate) fn known_keys(&self, table: &Arc<KeyTable>) -> Option<KnownKeys> {
        match self {
            Self::Compiled { known_keys, .. } => known_keys(table),
            Self::Dynamic(ty) => KnownKeys::of_dynamic(ty, table),
        }
    }
}
