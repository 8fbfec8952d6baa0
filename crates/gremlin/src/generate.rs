//! Generators of values and bytecode for property tests.
//!
//! They make only values and bytecode that both the language and the wire can express, in the normal form that both
//! readers produce: collections of literals are literals, and predicates are in normal form (WIRE-4).

use std::str::FromStr;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{DateTime, Direction, Duration, Token, Value};
use num_bigint::BigInt;
use proptest::collection::vec;
use proptest::prelude::*;
use smol_str::SmolStr;
use uuid::Uuid;

use crate::bytecode::*;
use crate::collections;
use crate::script::names;

fn text() -> impl Strategy<Value = SmolStr> {
    prop_oneof![any::<String>(), "[a-z']{0,4}"].prop_map(SmolStr::from)
}

/// A name no keyword, token or strategy claims.
fn word() -> impl Strategy<Value = SmolStr> {
    "v_[a-z0-9_]{0,6}".prop_map(SmolStr::from)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<i16>().prop_map(Value::I16),
        any::<i32>().prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64),
        any::<i128>().prop_map(|n| Value::BigInt(Arc::new(BigInt::from(n)))),
        proptest::num::f32::NORMAL.prop_map(Value::F32),
        proptest::num::f64::NORMAL.prop_map(Value::F64),
        Just(Value::F64(f64::INFINITY)),
        (any::<i64>(), -400_i32..400).prop_map(|(digits, exponent)| {
            let number = BigDecimal::from_str(&format!("{digits}e{exponent}")).unwrap();
            Value::Decimal(Arc::new(number))
        }),
        text().prop_map(Value::String),
        vec(any::<u8>(), 0..5).prop_map(|bytes| Value::Bytes(bytes.into())),
        any::<u128>().prop_map(|bits| Value::Uuid(Uuid::from_u128(bits))),
        // Within the years that text spells with four digits.
        (-60_000_000_000_i64..250_000_000_000, 0_u32..1000, -17 * 60..17 * 60_i32).prop_map(
            |(seconds, millis, minutes)| {
                Value::DateTime(DateTime { seconds, nanos: millis * 1_000_000, offset_seconds: minutes * 60 })
            }
        ),
        (any::<i64>(), 0_u32..1_000_000_000).prop_map(|(seconds, nanos)| Value::Duration(Duration { seconds, nanos })),
        prop_oneof![Just(Token::Id), Just(Token::Label), Just(Token::Key), Just(Token::Value)].prop_map(Value::Token),
        prop_oneof![Just(Direction::Out), Just(Direction::In), Just(Direction::Both)].prop_map(Value::Direction),
    ]
}

/// Values that both the language and the wire spell.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::list),
            vec(inner.clone(), 0..4).prop_map(collections::set),
            vec((inner.clone(), inner), 0..4).prop_map(collections::map),
        ]
    })
}

fn leaf() -> impl Strategy<Value = Argument> {
    prop_oneof![
        6 => value().prop_map(Argument::Value),
        1 => word().prop_map(Argument::Parameter),
        1 => scalar().prop_map(Argument::Vertex),
        1 => scalar().prop_map(Argument::Edge),
        4 => enum_value(),
    ]
}

fn enum_value() -> impl Strategy<Value = Argument> {
    let date_unit = proptest::sample::select(names::DATE_UNITS);
    let type_name = proptest::sample::select(names::TYPE_NAMES);
    prop_oneof![
        prop_oneof![Just(Order::Asc), Just(Order::Desc), Just(Order::Shuffle)].prop_map(Argument::Order),
        prop_oneof![Just(Scope::Local), Just(Scope::Global)].prop_map(Argument::Scope),
        prop_oneof![Just(Pop::First), Just(Pop::All), Just(Pop::Mixed)].prop_map(Argument::Pop),
        prop_oneof![Just(Column::Keys), Just(Column::Values)].prop_map(Argument::Column),
        cardinality().prop_map(Argument::Cardinality),
        prop_oneof![Just(Merge::OnCreate), Just(Merge::OutV)].prop_map(Argument::Merge),
        prop_oneof![Just(Operator::Sum), Just(Operator::And), Just(Operator::SumLong)].prop_map(Argument::Operator),
        prop_oneof![Just(Pick::Any), Just(Pick::None), Just(Pick::Unproductive)].prop_map(Argument::Pick),
        Just(Argument::NormSack),
        date_unit.prop_map(|unit| Argument::DateUnit(unit.into())),
        type_name.prop_map(|name| Argument::Type(name.into())),
    ]
}

fn cardinality() -> impl Strategy<Value = Cardinality> {
    prop_oneof![Just(Cardinality::Single), Just(Cardinality::List), Just(Cardinality::Set)]
}

fn predicate(operand: BoxedStrategy<Argument>) -> impl Strategy<Value = Predicate> {
    let simple = prop_oneof![
        operand.clone().prop_map(|operand| Predicate::compare(Comparison::Gte, operand)),
        vec(operand.clone(), 0..3).prop_map(Predicate::Within),
        vec(operand.clone(), 0..3).prop_map(Predicate::Without),
        operand.clone().prop_map(|operand| Predicate::Text(TextOperation::Regex, Box::new(operand))),
        operand.prop_map(|operand| Predicate::TypeOf(Box::new(operand))),
    ];
    simple.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.and(b)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.or(b)),
            inner.prop_map(Predicate::negate),
        ]
    })
}

/// Arguments as both readers make them.
pub(crate) fn argument() -> impl Strategy<Value = Argument> {
    leaf().prop_recursive(3, 32, 4, |inner| {
        let strategy_names = prop_oneof![Just("SubgraphStrategy"), Just("ReadOnlyStrategy")];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(collections::list_argument),
            vec((inner.clone(), inner.clone()), 0..3).prop_map(collections::map_argument),
            steps(inner.clone().boxed()).prop_map(|steps| Argument::Traversal(Bytecode { source: Vec::new(), steps })),
            predicate(inner.clone().boxed()).prop_map(Argument::Predicate),
            (cardinality(), inner.clone()).prop_map(|(c, value)| Argument::CardinalityValue(c, Box::new(value))),
            (strategy_names, vec((text(), inner), 0..3))
                .prop_map(|(name, options)| Argument::Strategy(name.into(), options)),
        ]
    })
}

fn steps(argument: BoxedStrategy<Argument>) -> impl Strategy<Value = Vec<Instruction>> {
    // `not(p)` of a lone predicate is a predicate in the language, and no step that takes one.
    let names: Vec<&str> = names::STEPS.iter().copied().filter(|name| *name != "not").collect();
    let step = (proptest::sample::select(names), vec(argument, 0..3))
        .prop_map(|(name, arguments)| Instruction::new(name, arguments));
    vec(step, 0..4)
}

/// Whole traversals.
pub(crate) fn bytecode() -> impl Strategy<Value = Bytecode> {
    let argument = argument().boxed();
    let source = (proptest::sample::select(names::SOURCE_METHODS), vec(argument.clone(), 0..3))
        .prop_map(|(name, arguments)| Instruction::new(name, arguments));
    let start = (proptest::sample::select(names::START_STEPS), vec(argument.clone(), 0..3))
        .prop_map(|(name, arguments)| Instruction::new(name, arguments));
    (vec(source, 0..3), start, steps(argument)).prop_map(|(source, start, steps)| {
        let steps = std::iter::once(start).chain(steps).collect();
        Bytecode { source, steps }
    })
}
