//! Dynamic types and data: types that are known only at run time.
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
//! `plan` precomputes facts about a type; `decode` and `encode` are equivalent to generated
//! code and use the same reader and encoders of the runtime; `initial` makes defaults, `key`
//! key hashes, `layout` offsets and sizes; `path` finds values by names; `show` and `json`
//! print values.

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
pub use layout::SampleLayout;
pub use value::{UnionValue, Value};

use std::sync::Arc;

use spindle_dds_idl_runtime::encode::{
    AllMembers, Counter, Encoder as _, KeyMembers, Members, Selection, Writer,
};
use spindle_dds_idl_runtime::{
    CdrError, Encapsulation, KeyBytes, KeyHash, KeyHasher, Representation, SamplePosition,
    Untrusted,
};

use crate::graph::{Definition, Extensibility, Type, TypeGraph};
use crate::limits::DEFAULT_VALUES_MAX;
use crate::registry::Resolved;
use decode::Use;
use initial::Initial;
use plan::{ANY, Plan};

/// A type that is known only at run time. Cheap to clone.
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

/// The error of reading or setting a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// The bytes or the value are invalid.
    #[error(transparent)]
    Cdr(#[from] CdrError),
    /// No member has this name, or no element this index.
    #[error("{path}: there is no such member or element")]
    NoSuchPath {
        /// The path up to the missing member or element.
        path: String,
    },
    /// The value is not of the type at its path.
    #[error("{path}: the value is not of the type")]
    WrongType {
        /// Its path.
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

    /// The graph of its declared types.
    pub fn graph(&self) -> &TypeGraph {
        &self.plan.graph
    }

    /// Another type of the same graph. Cheap, where [`new`](Self::new) looks at the whole graph.
    #[must_use]
    pub fn with_type(&self, ty: Type) -> Self {
        Self {
            plan: self.plan.clone(),
            ty,
        }
    }

    /// Whether it is the same type of the same graph, or of a clone of it.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.plan, &other.plan) && self.ty == other.ty
    }

    /// The use of a type that it is.
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

    /// The extensibility of a structure or union; final for any other type.
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

    /// The encapsulation id of samples in a representation.
    pub fn encapsulation(&self, representation: Representation) -> Encapsulation {
        Encapsulation::of(self.extensibility(), representation)
    }

    /// Whether any member is a key.
    pub fn has_key(&self) -> bool {
        self.plan.has_key(&self.ty)
    }

    /// Whether a key can be longer than a key hash. If so, the hash is a digest of the key, else
    /// the key itself (XTypes 1.3 §7.6.8.4). Not for untrusted types: it may take long.
    pub fn digests_key(&self) -> bool {
        self.has_key() && self.plan.key_size_max(&self.ty).is_none()
    }

    /// The value that has the default of each member.
    ///
    /// # Errors
    /// [`CdrError::TooLarge`] and [`CdrError::TooDeep`] for types with such a default.
    pub fn default_data(&self) -> Result<DynamicData, DataError> {
        let mut left = DEFAULT_VALUES_MAX;
        let mut spend = || match left.checked_sub(1) {
            Some(less) => {
                left = less;
                Ok(())
            }
            None => Err(CdrError::TooLarge {
                limit: DEFAULT_VALUES_MAX * size_of::<Value>(),
                place: SamplePosition::offset(0),
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

    /// Reads a sample from untrusted bytes.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub fn decode(
        &self,
        bytes: &[u8],
        encapsulation: Encapsulation,
    ) -> Result<DynamicData, DataError> {
        self.read(bytes, encapsulation, Members::All)
    }

    /// Reads a sample that has only the key members; others get their defaults.
    ///
    /// # Errors
    /// The bytes are invalid.
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

    /// The value, consuming the data.
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

    /// Sets the value at a path. An optional member becomes present; for a branch of a union,
    /// the discriminator is set too.
    ///
    /// # Errors
    /// [`DataError::NoSuchPath`], [`DataError::WrongType`].
    pub fn set(&mut self, path: &str, value: Value) -> Result<(), DataError> {
        path::set(&self.ty.plan, &self.ty.ty, &mut self.value, path, value)
    }

    /// Makes an optional member absent.
    ///
    /// # Errors
    /// [`DataError::NoSuchPath`], [`DataError::WrongType`] for a member that is not optional.
    pub fn clear(&mut self, path: &str) -> Result<(), DataError> {
        path::clear(&self.ty.plan, &self.ty.ty, &mut self.value, path)
    }

    /// The member of a structure with this id; `None` if there is none, or it is optional and
    /// absent.
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

    /// Writes the key, as generated code does: what the [key hash](Self::key_hash) is the hash of.
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    pub fn key_bytes(&self, key: &mut KeyBytes) -> Result<(), DataError> {
        let DynamicType { plan, ty } = &self.ty;
        key.clear();
        Ok(plan.write(ty, &self.value, key)?)
    }

    /// The key hash, as for generated types; all zero for a type without a key.
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
