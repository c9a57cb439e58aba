//! Errors of strategic merge patches, in upstream's wording.

use serde_json::{Map, Value};

use super::print::{go_map_text, go_string_verb, go_type};
use crate::field::quote;

/// Why a strategic merge patch cannot be applied. The texts are those of kube-apiserver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategicPatchError {
    /// The patch or the document is not a JSON object.
    #[error("json: cannot unmarshal {0} into Go value of type map[string]interface {{}}")]
    NotAnObject(&'static str),
    /// A `$deleteFromPrimitiveList` key without a field name.
    #[error("invalid patch format of primitive list")]
    PrimitiveListFormat,
    /// `$retainKeys` is not a list, or does not contain all fields that the patch sets.
    #[error("invalid patch format of retainKeys")]
    RetainKeysFormat,
    /// A `$setElementOrder` key without a field name.
    #[error("invalid patch format of setElementOrder list")]
    SetElementOrderFormat,
    /// A merged list contains lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// An element of a merged list has no merge key.
    #[error("map: {map} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The element, as Go prints it.
        map: String,
        /// The missing key.
        key: &'static str,
    },
    /// A value has the wrong type.
    #[error("expected a {expected}, but received a {actual}")]
    WrongType {
        /// The Go name of the expected type.
        expected: &'static str,
        /// The Go name of the actual type.
        actual: &'static str,
    },
    /// An unknown value of `$patch`.
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownDirective {
        /// The value of `$patch`.
        directive: String,
        /// The object that contains it, as Go prints it.
        map: String,
    },
    /// `$patch: merge` in a list element.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeInList,
    /// The type of a merged list of objects has no merge key.
    #[error("cannot merge lists without merge key for {0}")]
    NoKeyInType(&'static str),
    /// The type has no such field.
    #[error("unable to find api field in struct {ty} for the json field {}", quote(.field))]
    UnknownField {
        /// The type name.
        ty: &'static str,
        /// The field in the patch.
        field: String,
    },
    /// The patch merges an object, but the type is not a struct.
    #[error("merging an object in json but data type is not struct, instead is: {0}")]
    NotAStruct(&'static str),
    /// The patch merges or orders a list, but the type is not a list.
    #[error("expected slice or array type, but got: {0}")]
    NotAList(&'static str),
    /// The type of the field is a list of lists.
    #[error("unexpected slice of slice")]
    ListOfListsInType,
    /// A merged list has elements of several types.
    #[error("list element types are not identical: {0}")]
    MixedElements(String),
    /// `$setElementOrder` for a list without elements.
    #[error("no elements in any of the given slices")]
    NoElements,
    /// The element at this index is not an object, unlike the others.
    #[error("value for key {0} is not a map")]
    NotAMap(usize),
    /// The list in the patch has a different order than `$setElementOrder`, or more elements.
    #[error("The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n")]
    OrderMismatch {
        /// The list in the patch, as Go prints it.
        patch: String,
        /// The `$setElementOrder` list, as Go prints it.
        order: String,
    },
}

impl StrategicPatchError {
    /// The HTTP status of the response. Upstream treats only some of these errors as client errors.
    pub fn code(&self) -> u16 {
        match self {
            Self::NotAnObject(_)
            | Self::PrimitiveListFormat
            | Self::RetainKeysFormat
            | Self::SetElementOrderFormat => 400,
            Self::ListOfLists => 422,
            _ => 500,
        }
    }

    pub(super) fn unknown_directive(directive: &Value, map: &Map<String, Value>) -> Self {
        Self::UnknownDirective { directive: go_string_verb(directive), map: go_map_text(map) }
    }

    pub(super) fn no_merge_key(map: &Map<String, Value>, key: &'static str) -> Self {
        Self::NoMergeKey { map: go_map_text(map), key }
    }

    pub(super) fn not_a_list(actual: &Value) -> Self {
        Self::WrongType { expected: "[]interface {}", actual: go_type(actual) }
    }

    pub(super) fn not_an_object(actual: &Value) -> Self {
        Self::WrongType { expected: "map[string]interface {}", actual: go_type(actual) }
    }
}
