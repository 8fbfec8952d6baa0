//! The type of a value in error messages.

use mangrove_graph::Value;

/// Returns the name of a value's type with its article: "an int", "a list".
pub(crate) fn a_type(value: &Value) -> String {
    let name = value.type_name();
    let article = if name.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_its_article() {
        let named = [Value::I32(1), Value::Uuid(uuid::Uuid::nil()), Value::list(Vec::new()), Value::Null];
        assert_eq!(named.each_ref().map(a_type), ["an int", "a uuid", "a list", "a null"]);
    }
}
