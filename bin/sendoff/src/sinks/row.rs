//! What a row of the table consists of.

use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use sendoff::{Result, Sink};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::SINKS;

/// One sink.
pub(crate) struct Row {
    /// Its name in `type = "redis"`; also the name of its folder in `sinks/`.
    pub(crate) name: &'static str,
    /// Its page, from the root of the repository. The page, or the file that `sendoff init` writes, shows its settings.
    pub(crate) page: &'static str,
    /// How it becomes part of a relay.
    pub(crate) support: Support,
}

/// How a sink becomes part of a relay.
pub(crate) enum Support {
    /// By its settings in a `[[sink]]`.
    Configured(&'static dyn Read),
    /// By its settings, but a feature of this program is off: which one. The advice is in brackets at the end.
    #[cfg_attr(feature = "kafka", expect(dead_code, reason = "all features are on"))]
    NotBuilt(&'static str),
    /// Never in a `[[sink]]`: why not. Its page says where.
    Elsewhere(&'static str),
}

/// What the program does with the settings of one type.
pub(crate) struct Type<C: 'static> {
    /// Checks them without connecting.
    pub(super) validate: fn(&C) -> Result<()>,
    /// Creates the sink.
    pub(super) build: fn(&C) -> Result<Arc<dyn Sink>>,
    /// Settings that may contain a password. Their types must hide it when they are printed
    /// (`sendoff_wire::{Secret, Address}` do), and errors do not repeat their values.
    pub(super) secrets: &'static [&'static str],
}

/// A [`Type`], whatever its settings are.
pub(crate) trait Read: Sync {
    /// The settings in the file.
    fn read(&'static self, table: toml::de::Deserializer<'_>) -> Result<Box<dyn Settings>, toml::de::Error>;

    /// Settings that may contain a password.
    fn secrets(&self) -> &'static [&'static str];
}

impl<C> Read for Type<C>
where
    C: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    fn read(&'static self, table: toml::de::Deserializer<'_>) -> Result<Box<dyn Settings>, toml::de::Error> {
        let config = C::deserialize(table)?;
        Ok(Box::new(Of { config, of: self }))
    }

    fn secrets(&self) -> &'static [&'static str] {
        self.secrets
    }
}

/// The settings of a sink, of any type. Printing them shows no passwords.
pub(crate) trait Settings: Debug + Send + Sync + erased_serde::Serialize {
    /// Checks them without connecting.
    fn validate(&self) -> Result<()>;

    /// Creates the sink.
    fn build(&self) -> Result<Arc<dyn Sink>>;

    /// The settings as the sink's crate defines them.
    fn config(&self) -> &dyn Any;

    /// Whether others are of the same type and have the same values.
    fn equal(&self, other: &dyn Settings) -> bool;

    /// The same settings once more.
    fn again(&self) -> Box<dyn Settings>;
}

erased_serde::serialize_trait_object!(Settings);

impl Clone for Box<dyn Settings> {
    fn clone(&self) -> Self {
        self.again()
    }
}

impl PartialEq for dyn Settings {
    fn eq(&self, other: &dyn Settings) -> bool {
        self.equal(other)
    }
}

/// Settings with their type.
struct Of<C: 'static> {
    config: C,
    of: &'static Type<C>,
}

impl<C: Debug> Debug for Of<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.config.fmt(f)
    }
}

impl<C: Serialize> Serialize for Of<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.config.serialize(serializer)
    }
}

impl<C: Clone + Debug + PartialEq + Serialize + Send + Sync> Settings for Of<C> {
    fn validate(&self) -> Result<()> {
        (self.of.validate)(&self.config)
    }

    fn build(&self) -> Result<Arc<dyn Sink>> {
        (self.of.build)(&self.config)
    }

    fn config(&self) -> &dyn Any {
        &self.config
    }

    fn equal(&self, other: &dyn Settings) -> bool {
        other.config().downcast_ref() == Some(&self.config)
    }

    fn again(&self) -> Box<dyn Settings> {
        Box::new(Self {
            config: self.config.clone(),
            of: self.of,
        })
    }
}

/// The names that a `[[sink]]` can have as its `type`.
static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let in_a_file = SINKS.iter().filter(|row| !matches!(row.support, Support::Elsewhere(_)));
    in_a_file.map(|row| row.name).collect()
});

impl<'de> Deserialize<'de> for &'static Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let row = SINKS.iter().find(|row| row.name == name);
        row.ok_or_else(|| D::Error::unknown_variant(&name, &NAMES))
    }
}
