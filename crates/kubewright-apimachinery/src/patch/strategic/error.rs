//! What can be wrong with a strategic merge patch, in upstream's words.

use serde_json::{Map, Value};

use super::print::{go_map_text, go_string_verb, go_type};
use crate::field::quote;

/// Why a strategic merge patch cannot be applied. The texts are what a server answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategicPatchError {
    /// The patch or the document is not a JSON object.
    #[error("json: cannot unmarshal {0} into Go value of type map[string]interface {{}}")]
    NotAnObject(&'static str),
    /// A key starts with `$deleteFromPrimitiveList` but names no field.
    #[error("invalid patch format of primitive list")]
    PrimitiveListFormat,
    /// `$retainKeys` is not a list, or does not name all that the patch sets.
    #[error("invalid patch format of retainKeys")]
    RetainKeysFormat,
    /// A key starts with `$setElementOrder` but names no field.
    #[error("invalid patch format of setElementOrder list")]
    SetElementOrderFormat,
    /// A merged list holds lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// An element of a merged list does not say which one it is.
    #[error("map: {map} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The element, as Go prints it.
        map: String,
        /// The missing key.
        key: &'static str,
    },
    /// A value is of another type than the patch needs there.
    #[error("expected a {expected}, but received a {actual}")]
    WrongType {
        /// Go's name of the type that is needed.
        expected: &'static str,
        /// Go's name of the type that is there.
        actual: &'static str,
    },
    /// `$patch` is none of the known words.
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownDirective {
        /// What `$patch` says.
        directive: String,
        /// The object that holds it, as Go prints it.
        map: String,
    },
    /// `$patch: merge` stands in an element of a list.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeInList,
    /// A list of objects is merged, but its type names no merge key.
    #[error("cannot merge lists without merge key for {0}")]
    NoKeyInType(&'static str),
    /// The type has no such field.
    #[error("unable to find api field in struct {ty} for the json field {}", quote(.field))]
    UnknownField {
        /// Name of the type.
        ty: &'static str,
        /// The field of the patch.
        field: String,
    },
    /// Objects are merged where the type has no fields.
    #[error("merging an object in json but data type is not struct, instead is: {0}")]
    NotAStruct(&'static str),
    /// Lists are merged, or ordered, where the type has no list.
    #[error("expected slice or array type, but got: {0}")]
    NotAList(&'static str),
    /// The type of the field is a list of lists.
    #[error("unexpected slice of slice")]
    ListOfListsInType,
    /// The elements of a merged list are of several types.
    #[error("list element types are not identical: {0}")]
    MixedElements(String),
    /// An order is given for a list without elements.
    #[error("no elements in any of the given slices")]
    NoElements,
    /// An element at this position is not an object, as those beside it are.
    #[error("value for key {0} is not a map")]
    NotAMap(usize),
    /// The list in the patch is in another order than `$setElementOrder` says, or has more elements.
    #[error("The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n")]
    OrderMismatch {
        /// The list in the patch, as Go prints it.
        patch: String,
        /// The list of the directive, as Go prints it.
        order: String,
    },
}

impl StrategicPatchError {
    /// The HTTP status of the answer. Upstream takes only some of these for the user's mistake.
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
