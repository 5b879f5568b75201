//! Types and data of types that no program was compiled with.
//!
//! ```
//! use spindle_dds_idl_runtime::Representation;
//! use spindle_dds_xtypes::graph::{Definition, Extensibility, Member, Primitive, Struct, Type};
//! use spindle_dds_xtypes::{DynamicType, TypeGraph};
//!
//! let mut graph = TypeGraph::new();
//! let track = Struct {
//!     extensibility: Extensibility::Appendable,
//!     nested: false,
//!     autoid_hash: false,
//!     base: None,
//!     members: vec![
//!         Member::new("id", 0, Type::Primitive(Primitive::UInt32)).key(),
//!         Member::new("name", 1, Type::String8(None)),
//!     ],
//! };
//! let index = graph.add("flight::Track", Definition::Struct(track));
//! let ty = DynamicType::new(graph, Type::Declared(index));
//!
//! let mut data = ty.default_data()?;
//! data.set("name", "D-ABCD".into())?;
//! let bytes = data.encode(Representation::Xcdr1)?;
//! let read = ty.decode(&bytes, ty.encapsulation(Representation::Xcdr1))?;
//! assert_eq!(read.to_string(), "{id: 0, name: \"D-ABCD\"}");
//! # Ok::<(), spindle_dds_xtypes::DataError>(())
//! ```
//!
//! `plan` has what is known of a type before any value is looked at; `decode` and
//! `encode` do what generated code does, by the same reader and encoders of the
//! runtime, `initial` the defaults, `key` the key,
//! `layout` offsets and sizes; `path` finds values by names,
//! `show` and `json` are for people and tools.

mod decode;
mod encode;
mod initial;
mod json;
mod key;
mod layout;
mod leaf;
mod number;
mod path;
mod plan;
mod show;
mod value;

pub use json::AsJson;
pub use layout::Layout;
pub use value::{UnionValue, Value};

use std::sync::Arc;

use spindle_dds_idl_runtime::encode::{
    AllMembers, Counter, Encoder as _, KeyMembers, Members, Selection, Writer,
};
use spindle_dds_idl_runtime::{
    CdrError, Encapsulation, KeyHash, KeyHasher, Place, Representation, Untrusted,
};

use crate::graph::{Definition, Extensibility, Type, TypeGraph};
use crate::limits::DEFAULT_VALUES_MAX;
use crate::registry::Resolved;
use decode::Use;
use initial::Initial;
use plan::{ANY, Plan};

/// A type known at run time only. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DynamicType {
    plan: Arc<Plan>,
    ty: Type,
}

/// A value of a [`DynamicType`].
#[derive(Debug, Clone)]
pub struct DynamicData {
    ty: DynamicType,
    value: Value,
}

/// Why a value cannot be had, or put somewhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// What is wrong with bytes or values.
    #[error(transparent)]
    Cdr(#[from] CdrError),
    /// There is nothing of this name, or no element of this number.
    #[error("{path}: there is no such member or element")]
    NoSuchPath {
        /// The way up to where it ends.
        path: String,
    },
    /// The value is not of the type that it is meant for.
    #[error("{path}: the value is not of the type")]
    WrongType {
        /// The way to it.
        path: String,
    },
}

impl From<Resolved> for DynamicType {
    fn from(resolved: Resolved) -> Self {
        Self::new(resolved.graph, resolved.ty)
    }
}

impl DynamicType {
    /// A type of a graph.
    pub fn new(graph: TypeGraph, ty: Type) -> Self {
        Self {
            plan: Arc::new(Plan::new(graph)),
            ty,
        }
    }

    /// The declared types that it is made of.
    pub fn graph(&self) -> &TypeGraph {
        &self.plan.graph
    }

    /// What it is.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Its scoped name, if it has one.
    pub fn name(&self) -> Option<&str> {
        match &self.ty {
            Type::Declared(index) => self.graph().declaration(*index).name.as_deref(),
            _ => None,
        }
    }

    /// The extensibility of a structure or union; of any other type, final.
    pub fn extensibility(&self) -> Extensibility {
        let Type::Declared(index) = self.plan.resolve(&self.ty) else {
            return Extensibility::Final;
        };
        match &self.graph().declaration(*index).definition {
            Definition::Struct(structure) => structure.extensibility,
            Definition::Union(union) => union.extensibility,
            _ => Extensibility::Final,
        }
    }

    /// The id that goes with samples written in a representation.
    pub fn encapsulation(&self, representation: Representation) -> Encapsulation {
        Encapsulation::of(self.extensibility(), representation)
    }

    /// Whether any member is a key.
    pub fn has_key(&self) -> bool {
        self.plan.has_key(&self.ty)
    }

    /// Whether a key can be longer than a key hash, which is a digest of it then and else
    /// the key itself (XTypes 1.3 §7.6.8.4). Not for types of strangers: it may take long.
    pub fn digests_key(&self) -> bool {
        self.has_key() && self.plan.key_size_max(&self.ty).is_none()
    }

    /// The value that has the default of each member.
    ///
    /// # Errors
    /// [`CdrError::TooLarge`] and [`CdrError::TooDeep`] of types whose default is.
    pub fn default_data(&self) -> Result<DynamicData, DataError> {
        let mut left = DEFAULT_VALUES_MAX;
        let mut spend = || match left.checked_sub(1) {
            Some(less) => {
                left = less;
                Ok(())
            }
            None => Err(CdrError::TooLarge {
                limit: DEFAULT_VALUES_MAX * size_of::<Value>(),
                place: Place::offset(0),
            }),
        };
        let mut initial = Initial {
            plan: &self.plan,
            spend: &mut spend,
        };
        Ok(DynamicData {
            value: initial.value(&self.ty, ANY)?,
            ty: self.clone(),
        })
    }

    /// A value of the type.
    ///
    /// # Errors
    /// [`DataError::WrongType`].
    pub fn data(&self, value: Value) -> Result<DynamicData, DataError> {
        path::check(&self.plan, &self.ty, &value, "")?;
        Ok(DynamicData {
            ty: self.clone(),
            value,
        })
    }

    /// Reads a sample; its bytes need no one to vouch for them.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode(
        &self,
        bytes: &[u8],
        encapsulation: Encapsulation,
    ) -> Result<DynamicData, DataError> {
        self.read(bytes, encapsulation, Members::All)
    }

    /// Reads a sample that has the key members only; others have their defaults.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode_key(
        &self,
        bytes: &[u8],
        encapsulation: Encapsulation,
    ) -> Result<DynamicData, DataError> {
        self.read(bytes, encapsulation, Members::Key)
    }

    fn read(
        &self,
        bytes: &[u8],
        encapsulation: Encapsulation,
        members: Members,
    ) -> Result<DynamicData, DataError> {
        let untrusted = Untrusted::new(bytes, encapsulation);
        let mut reader = untrusted.reader(self.extensibility(), members)?;
        Ok(DynamicData {
            value: self.plan.read(Use::of(&self.ty), &mut reader)?,
            ty: self.clone(),
        })
    }
}

impl DynamicData {
    /// Its type.
    pub fn ty(&self) -> &DynamicType {
        &self.ty
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The value, for good.
    pub fn into_value(self) -> Value {
        self.value
    }

    /// The value at a path: `track.position.lat`, `points[3].x`, `choice.branch`,
    /// `choice.discriminator`. The empty path is the value itself.
    ///
    /// # Errors
    /// [`DataError::NoSuchPath`], also where an optional member is absent.
    pub fn get(&self, path: &str) -> Result<&Value, DataError> {
        path::get(&self.ty.plan, &self.ty.ty, &self.value, path)
    }

    /// Puts a value at a path. An optional member becomes present; for a branch of a
    /// union, its discriminator is set.
    ///
    /// # Errors
    /// [`DataError::NoSuchPath`], [`DataError::WrongType`].
    pub fn set(&mut self, path: &str, value: Value) -> Result<(), DataError> {
        path::set(&self.ty.plan, &self.ty.ty, &mut self.value, path, value)
    }

    /// Makes an optional member absent.
    ///
    /// # Errors
    /// [`DataError::NoSuchPath`], [`DataError::WrongType`] of one that is not optional.
    pub fn clear(&mut self, path: &str) -> Result<(), DataError> {
        path::clear(&self.ty.plan, &self.ty.ty, &mut self.value, path)
    }

    /// The member of a structure with this id; `None` where there is none, or an
    /// optional one is absent.
    pub fn get_by_id(&self, id: u32) -> Option<&Value> {
        let (members, values) = path::members(&self.ty.plan, &self.ty.ty, &self.value)?;
        let at = members.iter().position(|member| member.id == id)?;
        values.get(at)?.as_ref()
    }

    /// Writes the sample, little endian.
    ///
    /// # Errors
    /// A bound that is exceeded, a NUL inside a string, and the like.
    pub fn encode(&self, representation: Representation) -> Result<Vec<u8>, DataError> {
        self.write::<AllMembers>(representation)
    }

    /// Writes the key members only.
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    pub fn encode_key(&self, representation: Representation) -> Result<Vec<u8>, DataError> {
        self.write::<KeyMembers>(representation)
    }

    fn write<S: Selection>(&self, representation: Representation) -> Result<Vec<u8>, DataError> {
        let DynamicType { plan, ty } = &self.ty;
        let mut counter = Counter::<S>::new(representation);
        plan.write(ty, &self.value, &mut counter)?;
        let mut bytes = vec![0; counter.position()];
        let mut writer = Writer::<'_, S>::new(representation, &mut bytes);
        plan.write(ty, &self.value, &mut writer)?;
        Ok(bytes)
    }

    /// The key hash, as of generated types; all zero for a type without a key.
    pub fn key_hash(&self) -> KeyHash {
        let DynamicType { plan, ty } = &self.ty;
        if !plan.has_key(ty) {
            return KeyHash::NONE;
        }
        let mut hasher = KeyHasher::new(plan.key_size_max(ty));
        match plan.write(ty, &self.value, &mut hasher) {
            Ok(()) => hasher.finish(),
            Err(_) => KeyHash::NONE,
        }
    }
}
