//! The public operations that both sides name alike.

/// The operations that a publisher and a subscriber share. The handle has the fields `core`
/// and `participant`.
macro_rules! factory_operations {
    ($factory:ident, $qos:ident, $listener:ident, $set_qos_doc:literal) => {
        $crate::entity::entity_operations!($factory);

        impl std::fmt::Debug for $factory {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.core.fmt(f)
            }
        }

        impl $factory {
            /// The participant that it belongs to.
            pub fn participant(&self) -> $crate::participant::DomainParticipant {
                $crate::participant::DomainParticipant::of(self.participant.clone())
            }

            /// Its QoS.
            ///
            /// # Errors
            /// ALREADY_DELETED.
            pub fn qos(&self) -> $crate::error::Result<$qos> {
                self.core.base.alive()?;
                Ok(self.core.qos().clone())
            }

            #[doc = $set_qos_doc]
            ///
            /// # Errors
            /// IMMUTABLE_POLICY once it is enabled; INCONSISTENT_POLICY, UNSUPPORTED,
            /// ALREADY_DELETED.
            pub fn set_qos(&self, qos: $qos) -> $crate::error::Result<()> {
                self.core.set_qos(qos)
            }

            $crate::entity::listener_operations!($listener, |listener| listener);
        }
    };
}

/// The builder of a publisher or a subscriber.
macro_rules! factory_builder {
    ($builder:ident, $factory:ident, $qos:ident, $listener:ident, $profile_doc:literal) => {
        #[doc = concat!("Makes a [`", stringify!($factory), "`].")]
        #[must_use = "a builder does nothing until `create`"]
        pub struct $builder<'a> {
            participant: &'a $crate::participant::DomainParticipant,
            qos: $crate::choice::QosChoice<$qos>,
            name: Option<String>,
            listener: $crate::choice::ListenerChoice<dyn $listener>,
        }

        impl std::fmt::Debug for $builder<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($builder))
                    .field("qos", &self.qos)
                    .finish_non_exhaustive()
            }
        }

        impl<'a> $builder<'a> {
            pub(crate) fn new(participant: &'a $crate::participant::DomainParticipant) -> Self {
                Self {
                    participant,
                    qos: $crate::choice::QosChoice::Default,
                    name: None,
                    listener: None,
                }
            }

            /// Names it (ENTITY_NAME), for people and for look-ups. Several may have one name.
            pub fn name(mut self, name: impl Into<String>) -> Self {
                self.name = Some(name.into());
                self
            }

            pub(crate) fn with(mut self, qos: $crate::choice::QosChoice<$qos>) -> Self {
                self.qos = qos;
                self
            }

            $crate::choice::builder_setters!($qos, $listener, $profile_doc, |listener| listener);

            $crate::choice::shared_listener_setter!($listener, |listener| listener);

            #[doc = concat!("Creates the [`", stringify!($factory), "`].")]
            ///
            /// # Errors
            /// INCONSISTENT_POLICY, UNSUPPORTED, ALREADY_DELETED; BAD_PARAMETER for an unknown
            /// profile, or a name that is empty, longer than 256 bytes or has a NUL.
            pub fn create(self) -> $crate::error::Result<$factory> {
                let participant = &self.participant.core;
                Ok($factory {
                    core: $crate::endpoint::FactoryCore::create(
                        participant,
                        self.qos,
                        self.name,
                        self.listener,
                    )?,
                    participant: participant.clone(),
                })
            }
        }
    };
}

/// The operations that a writer and a reader share: of the typed handle, and of `$any`, the
/// handle whose type is not known. Both have the fields `core` and `participant`; the typed
/// one has `marker` too.
macro_rules! endpoint_operations {
    ($endpoint:ident, $any:ident, $core:ty, $qos:ident, $listener:ident, $erase:expr) => {
        $crate::entity::entity_operations!($endpoint<T>);
        $crate::entity::entity_operations!($any);

        impl<T> Clone for $endpoint<T> {
            fn clone(&self) -> Self {
                Self::new(self.core.clone(), self.participant.clone())
            }
        }

        impl<T> std::fmt::Debug for $endpoint<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.core.fmt(f)
            }
        }

        impl<T> $endpoint<T> {
            pub(crate) fn new(
                core: std::sync::Arc<$core>,
                participant: std::sync::Arc<$crate::participant::ParticipantCore>,
            ) -> Self {
                Self {
                    core,
                    participant,
                    marker: std::marker::PhantomData,
                }
            }

            /// Its topic (`get_topic`, `get_topicdescription`).
            pub fn topic(&self) -> $crate::topic::Topic<T> {
                $crate::topic::Topic::new(self.core.topic.clone(), self.participant.clone())
            }

            /// Its QoS.
            ///
            /// # Errors
            /// ALREADY_DELETED.
            pub fn qos(&self) -> $crate::error::Result<$qos> {
                self.core.base.alive()?;
                Ok(self.core.qos().clone())
            }

            /// The same entity without its type.
            pub fn as_any(&self) -> $any {
                $any {
                    core: self.core.clone(),
                    participant: self.participant.clone(),
                }
            }
        }

        impl<T: 'static> $endpoint<T> {
            /// Changes its QoS. Before it is enabled all policies can change, but properties. From
            /// then on, or while its participant is being enabled, those can that the standard
            /// calls changeable.
            ///
            /// # Errors
            /// IMMUTABLE_POLICY, INCONSISTENT_POLICY, ALREADY_DELETED; UNSUPPORTED for what is not
            /// implemented, and for another LATENCY_BUDGET once it is announced.
            pub fn set_qos(&self, qos: $qos) -> $crate::error::Result<()> {
                self.core.set_qos(qos)
            }

            $crate::entity::listener_operations!($listener<T>, $erase);
        }

        impl $any {
            /// Its topic.
            pub fn topic(&self) -> $crate::topic::AnyTopic {
                $crate::topic::AnyTopic {
                    core: self.core.topic.clone(),
                    participant: self.participant.clone(),
                }
            }

            /// The handle with its type, if that is `T`, which may be
            /// [`Dynamic`](crate::Dynamic).
            pub fn downcast<T: 'static>(&self) -> Option<$endpoint<T>> {
                let typed = || $endpoint::new(self.core.clone(), self.participant.clone());
                self.core.topic.is_of::<T>().then(typed)
            }
        }

        impl std::fmt::Debug for $any {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.core.fmt(f)
            }
        }
    };
}

pub(crate) use {endpoint_operations, factory_builder, factory_operations};
