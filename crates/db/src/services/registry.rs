//! The type of a service, and the registry that finds, describes and calls services.
//!
//! A [`ServiceRegistry`] is a table of [`Service`] rows sorted by name. `g.call()` and `g.call('--list')` show its
//! rows, the server checks the right that a row names, and `docs/services.md` is written from the rows. The database's
//! own rows are in [`DATABASE_SERVICES`](super::DATABASE_SERVICES); a server adds rows of its own.
//!
//! - **DB-4.** A service that is called outside of the caller's transaction acts at once and sees the current state. A
//!   rollback does not take it back.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use mangrove_analytics::registry::AlgorithmInfo;
use mangrove_flow::QueryControl;
use mangrove_flow::schedule::Tenant;
use mangrove_graph::{ElementKind, Error, ErrorKind, Result, Value};
use mangrove_plan::logical::Name;
use mangrove_steps::{ServiceCall, ServiceResults};

use crate::state::Database;

/// The service that lists the services, which is also the one that is called without a name.
pub const LIST_SERVICE: &str = "--list";

/// A service: one row of the registry.
pub struct Service {
    /// The name, which `call()` takes.
    pub name: &'static str,
    /// A description, in one line.
    pub summary: &'static str,
    /// The right that its caller needs.
    pub right: ServiceRight,
    /// The arguments that it knows.
    pub parameters: &'static [ServiceParameter],
    /// Its scope, with the function.
    pub function: ServiceFunction,
}

/// The right that a caller of a service needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceRight {
    /// To read the graph.
    Read,
    /// To write to the graph.
    Write,
    /// To administer the graph: the service changes how the database works or what it costs other clients.
    Admin,
    /// Without arguments [`ServiceRight::Read`], with any [`ServiceRight::Admin`].
    AdminWithArguments,
    /// With this argument [`ServiceRight::Write`], without it [`ServiceRight::Read`].
    WriteWith(&'static str),
    /// The function itself decides, object by object.
    PerObject,
}

impl ServiceRight {
    /// The right as a word.
    pub fn name(self) -> &'static str {
        match self {
            ServiceRight::Read => "read",
            ServiceRight::Write => "write",
            ServiceRight::Admin => "admin",
            ServiceRight::AdminWithArguments => "read; admin with arguments",
            ServiceRight::WriteWith(_) => "read; write to write values",
            ServiceRight::PerObject => "by object",
        }
    }
}

/// An argument of a service.
pub struct ServiceParameter {
    /// The name of the argument.
    pub name: &'static str,
    /// The type of its values.
    pub value_type: ParameterType,
    /// The meaning of the argument, in one line.
    pub summary: &'static str,
}

/// The type of an argument. Texts and flags are checked before the service runs; a service checks the other types
/// itself, together with the content of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterType {
    /// A string.
    Text,
    /// A boolean.
    Flag,
    /// A whole number.
    Integer,
    /// The id of an element, or a value that stands for one.
    Id,
    /// A string or a list of strings.
    Names,
    /// A list.
    List,
    /// A map.
    Map,
    /// A direction: `OUT`, `IN` or `BOTH`.
    Direction,
    /// A value whose type depends on another argument or on the setting.
    Any,
}

impl ParameterType {
    /// The type as a word.
    pub fn name(self) -> &'static str {
        match self {
            ParameterType::Text => "string",
            ParameterType::Flag => "boolean",
            ParameterType::Integer => "integer",
            ParameterType::Id => "id",
            ParameterType::Names => "string or list of strings",
            ParameterType::List => "list",
            ParameterType::Map => "map",
            ParameterType::Direction => "direction",
            ParameterType::Any => "any",
        }
    }
}

/// The function of the services of algorithms.
pub type RunAlgorithm = fn(&'static AlgorithmInfo, &Database, &Tenant, &ServiceCall<'_>) -> Result<ServiceResults>;

/// The scope of a service, with its function. A function returns the results of one call in order.
pub enum ServiceFunction {
    /// Lists the registry itself.
    List,
    /// Reads in the caller's transaction, called with the object of each row. Such a service is known to a read-only
    /// source, too, and ignores unknown arguments, as those of TinkerGraph do.
    InTransaction {
        /// The ways in which it may be called, as `call('--list')` names them: `Start`, `Streaming`.
        types: &'static [&'static str],
        /// Answers one call: the rows that the service returns.
        run: fn(&ServiceCall<'_>, &Arguments<'_>) -> Result<Vec<Value>>,
    },
    /// Runs an algorithm on what the caller's transaction sees. Executors that help count for the tenant.
    Algorithm(&'static AlgorithmInfo, RunAlgorithm),
    /// Reads in the caller's transaction, and what the database keeps beside the graph.
    InTransactionOn(fn(&Database, &ServiceCall<'_>, &Arguments<'_>) -> Result<Vec<Value>>),
    /// Works on the database, outside of the caller's transaction.
    OnDatabase(fn(&Database, &Arguments<'_>) -> Result<Vec<Value>>),
    /// Works on the host of the database, such as its server, outside of any transaction. The host is an argument of
    /// [`ServiceRegistry::call`].
    OnHost(fn(&dyn Any, &Arguments<'_>) -> Result<Vec<Value>>),
}

impl ServiceFunction {
    /// The scope as a word.
    pub fn scope(&self) -> &'static str {
        match self {
            ServiceFunction::List => "the registry",
            ServiceFunction::InTransaction { .. }
            | ServiceFunction::Algorithm(..)
            | ServiceFunction::InTransactionOn(_) => "the caller's transaction",
            ServiceFunction::OnDatabase(_) => "the database",
            ServiceFunction::OnHost(_) => "the server",
        }
    }
}

impl Service {
    /// The right that a call with these arguments needs: never one that depends on arguments.
    pub fn right_for(&self, arguments: &[(Name, Value)]) -> ServiceRight {
        match self.right {
            ServiceRight::AdminWithArguments if arguments.is_empty() => ServiceRight::Read,
            ServiceRight::AdminWithArguments => ServiceRight::Admin,
            ServiceRight::WriteWith(name) => match arguments.iter().any(|(given, _)| given == name) {
                true => ServiceRight::Write,
                false => ServiceRight::Read,
            },
            right => right,
        }
    }

    /// Returns true if the service ignores arguments that it does not know.
    fn is_lenient(&self) -> bool {
        matches!(self.function, ServiceFunction::List | ServiceFunction::InTransaction { .. })
    }

    /// The row of the service in the verbose list.
    fn described(&self) -> Value {
        let types = match self.function {
            ServiceFunction::InTransaction { types, .. } => types,
            _ => &["Start", "Streaming"],
        };
        let parameters = self.parameters.iter().map(|parameter| (parameter.name, parameter.summary.into()));
        let columns = match self.function {
            ServiceFunction::Algorithm(algorithm, _) => {
                Some(("columns", row(algorithm.columns.iter().map(|column| (column.name, column.meaning.into())))))
            }
            _ => None,
        };
        let described = [
            ("name", self.name.into()),
            ("type", Value::list(types.iter().map(|&name| name.into()).collect())),
            ("description", self.summary.into()),
            ("params", row(parameters)),
        ];
        row(described.into_iter().chain(columns))
    }
}

/// All services that can be called in one place, sorted by name.
pub struct ServiceRegistry {
    services: Vec<&'static Service>,
}

impl ServiceRegistry {
    /// The services of an embedded database.
    pub fn of_database() -> &'static Self {
        static REGISTRY: LazyLock<ServiceRegistry> = LazyLock::new(|| {
            let database = ServiceRegistry { services: Vec::new() }.with(super::DATABASE_SERVICES);
            database.with(super::algorithm_services())
        });
        &REGISTRY
    }

    /// The same services, and these.
    ///
    /// # Panics
    ///
    /// If two services have one name.
    #[must_use]
    pub fn with(&self, services: &'static [Service]) -> Self {
        let mut all: Vec<&'static Service> = self.services.iter().copied().chain(services).collect();
        all.sort_unstable_by_key(|service| service.name);
        assert!(all.windows(2).all(|pair| pair[0].name != pair[1].name), "a service has a name of its own");
        ServiceRegistry { services: all }
    }

    /// The services, sorted by name.
    pub fn services(&self) -> impl Iterator<Item = &'static Service> {
        self.services.iter().copied()
    }

    /// The service of a name; `None` names the list of services.
    pub fn find(&self, name: Option<&str>) -> Result<&'static Service> {
        let name = name.unwrap_or(LIST_SERVICE);
        self.services.iter().find(|service| service.name == name).copied().ok_or_else(|| {
            let hint = mangrove_gremlin::suggest(name, self.services.iter().map(|service| service.name));
            Error::new(ErrorKind::InvalidArgument, format!("there is no service '{name}'{hint}; call() lists them"))
        })
    }

    /// Checks the arguments and calls the service. Rights are the caller's to check before. Executors that help count for the
    /// tenant.
    pub fn call(
        &self,
        service: &'static Service,
        database: &Database,
        host: &dyn Any,
        tenant: &Tenant,
        call: &ServiceCall<'_>,
    ) -> Result<ServiceResults> {
        let arguments = Arguments { service, given: call.arguments, control: call.control };
        if !matches!(service.function, ServiceFunction::Algorithm(..)) {
            arguments.check()?;
        }
        let rows = match &service.function {
            // It checks its options itself.
            ServiceFunction::Algorithm(algorithm, run) => return run(algorithm, database, tenant, call),
            ServiceFunction::List => self.list(&arguments)?,
            ServiceFunction::InTransaction { run, .. } => run(call, &arguments)?,
            ServiceFunction::InTransactionOn(run) => run(database, call, &arguments)?,
            ServiceFunction::OnDatabase(run) => run(database, &arguments)?,
            ServiceFunction::OnHost(run) => run(host, &arguments)?,
        };
        Ok(ServiceResults::All(rows))
    }

    fn list(&self, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
        let (only, verbose) = (arguments.text("service")?, arguments.flag("verbose")?);
        let listed = self.services.iter().filter(|service| only.is_none_or(|name| service.name == name));
        Ok(listed.map(|service| if verbose { service.described() } else { service.name.into() }).collect())
    }
}

/// The arguments of one call, by name.
pub struct Arguments<'a> {
    pub(super) service: &'static Service,
    pub(super) given: &'a [(Name, Value)],
    /// The limits of the query that calls.
    pub(super) control: &'a Arc<QueryControl>,
}

impl<'a> Arguments<'a> {
    /// The name of the service, for errors.
    pub fn service(&self) -> &'static str {
        self.service.name
    }

    /// Fails if the query that calls is out of time or was cancelled: for services that take long.
    pub fn check_limits(&self) -> Result<()> {
        self.control.check()
    }

    /// The value of an argument. Of two with this name, the later one.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.given.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value)
    }

    /// The value of an argument that is a string.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.misfit(name, "a string", other)),
        }
    }

    /// The value of an argument that is a boolean. Without the argument: false.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.misfit(name, "true or false", other)),
        }
    }

    /// The kind of elements that the argument `element` names. Without the argument: vertices.
    pub fn element(&self) -> Result<ElementKind> {
        match self.text("element")? {
            None | Some("vertex") => Ok(ElementKind::Vertex),
            Some("edge") => Ok(ElementKind::Edge),
            Some(other) => Err(Error::invalid(format!("'element' is 'vertex' or 'edge', not '{other}'"))),
        }
    }

    /// The error for an argument whose value has a wrong type.
    pub fn misfit(&self, name: &str, wanted: &str, given: &Value) -> Error {
        Error::invalid(format!("{}: '{name}' is {wanted}, not a {}", self.service.name, given.type_name()))
    }

    /// The error for an argument that is missing.
    pub fn missing(&self, name: &str, wanted: &str) -> Error {
        Error::invalid(format!("{} needs with('{name}', …): {wanted}", self.service.name))
    }

    /// An error of an argument, with the name of the service.
    pub(super) fn located(&self, error: Error) -> Error {
        error.context(self.service.name)
    }

    /// Refuses names that the service does not know, since a misspelled one must not be ignored, and values of other
    /// types.
    fn check(&self) -> Result<()> {
        for (name, value) in self.given {
            let parameter = self.service.parameters.iter().find(|parameter| parameter.name == name);
            match parameter.map(|parameter| parameter.value_type) {
                None if self.service.is_lenient() => {}
                None => {
                    let names: Vec<&str> = self.service.parameters.iter().map(|parameter| parameter.name).collect();
                    let takes = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                    return Err(Error::invalid(format!("{} takes {takes}, not '{name}'", self.service.name)));
                }
                Some(ParameterType::Text) if !matches!(value, Value::String(_)) => {
                    return Err(self.misfit(name, "a string", value));
                }
                Some(ParameterType::Flag) if !matches!(value, Value::Bool(_)) => {
                    return Err(self.misfit(name, "true or false", value));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// A map with these entries.
pub fn row(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

/// A row of a table of services.
pub const fn service(
    name: &'static str,
    summary: &'static str,
    right: ServiceRight,
    parameters: &'static [ServiceParameter],
    function: ServiceFunction,
) -> Service {
    Service { name, summary, right, parameters, function }
}

/// A parameter in a row of a table of services.
pub const fn parameter(name: &'static str, value_type: ParameterType, summary: &'static str) -> ServiceParameter {
    ServiceParameter { name, value_type, summary }
}
