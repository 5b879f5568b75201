//! Name and value pairs that tune what the standard has no policy for.

use serde::{Deserialize, Serialize};

/// One property: a name and its value (DDS-XML 1.0 §7.2.2, DDS-Security `Property_t`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Property {
    /// The name; ours begin with `spindle.`.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// Whether it is announced to other participants.
    #[serde(default)]
    pub propagate: bool,
}

/// PROPERTY: the properties of an entity, in the order in which they were first
/// set, each name once. Default: none. Not a policy of DDS 1.4.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Property>", into = "Vec<Property>")]
pub struct Properties {
    value: Vec<Property>,
}

impl Properties {
    /// The value of the property `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|property| property.name == name)
            .map(|property| property.value.as_str())
    }

    /// Sets the property `name` to `value`; it is not announced.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.insert(Property {
            name: name.into(),
            value: value.into(),
            propagate: false,
        });
    }

    /// Sets a property, in the place of one of the same name.
    pub fn insert(&mut self, property: Property) {
        match self
            .value
            .iter_mut()
            .find(|known| known.name == property.name)
        {
            Some(known) => *known = property,
            None => self.value.push(property),
        }
    }

    /// Removes the property `name` and returns it.
    pub fn remove(&mut self, name: &str) -> Option<Property> {
        let at = self
            .value
            .iter()
            .position(|property| property.name == name)?;
        Some(self.value.remove(at))
    }

    /// Removes all properties.
    pub fn clear(&mut self) {
        self.value.clear();
    }

    /// The properties in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Property> {
        self.value.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.value.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }
}

impl<'a> IntoIterator for &'a Properties {
    type Item = &'a Property;
    type IntoIter = std::slice::Iter<'a, Property>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Properties {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut properties = Self::default();
        for (name, value) in pairs {
            properties.set(name, value);
        }
        properties
    }
}

impl From<Vec<Property>> for Properties {
    fn from(value: Vec<Property>) -> Self {
        let mut properties = Self::default();
        for property in value {
            properties.insert(property);
        }
        properties
    }
}

impl From<Properties> for Vec<Property> {
    fn from(properties: Properties) -> Self {
        properties.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_there_once() {
        let mut properties: Properties = [("a", "1"), ("b", "2"), ("a", "3")].into_iter().collect();
        assert_eq!(properties.get("a"), Some("3"));
        assert_eq!(properties.len(), 2);
        assert_eq!(
            properties.remove("a").map(|property| property.value),
            Some("3".to_owned())
        );
        assert_eq!(properties.get("a"), None);
    }

    #[test]
    fn travels_as_a_list() {
        let properties: Properties = [("a", "1")].into_iter().collect();
        let json = serde_json::to_string(&properties).unwrap();
        assert_eq!(json, r#"[{"name":"a","value":"1","propagate":false}]"#);
        assert_eq!(
            serde_json::from_str::<Properties>(&json).unwrap(),
            properties
        );
    }
}
