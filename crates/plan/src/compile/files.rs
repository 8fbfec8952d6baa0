//! `io()` with `with()`, `read()` and `write()`.

use mangrove_graph::{Result, Value};
use mangrove_gremlin::Argument as Given;

use super::arguments::{describe, misfit, name, operand};
use super::groups::{Call, Modulator};
use crate::logical::files::{FileFormat, FileStep};
use crate::logical::{Operand, Step};

const READER: &str = "~tinkerpop.io.reader";
const WRITER: &str = "~tinkerpop.io.writer";

/// `io(path)`, as the first step.
pub(super) fn file(call: &mut Call<'_>) -> Result<Step> {
    if !call.first {
        return Err(call.site.unsupported("belongs at the start of a traversal, as in g.io(\"graph.json\").read()"));
    }
    let path = match call.arguments {
        [given @ (Given::Value(Value::String(_)) | Given::Parameter(_))] => operand(&call.site, given)?,
        given => return Err(misfit(&call.site, "the path of a file", given)),
    };
    let (read, write) = (call.take_one("read")?, call.take_one("write")?);
    let writes_file = match (&read, &write) {
        (Some(_), None) => false,
        (None, Some(_)) => true,
        (None, None) => return Err(call.site.unsupported("needs to know which way: end it with read() or write()")),
        (Some(_), Some(write)) => return Err(write.site.unsupported("read() stands here already; keep one of them")),
    };
    for mode in read.iter().chain(&write) {
        if !mode.arguments.is_empty() {
            return Err(misfit(&mode.site, "no arguments", mode.arguments));
        }
    }
    let mut format = None;
    for modulator in call.take("with") {
        let (is_of, named) = option(&modulator)?;
        if is_of == if writes_file { WRITER } else { READER } {
            format = Some(named);
        }
    }
    if let (None, Operand::Literal(Value::String(path))) = (format, &path) {
        // The error is found here, where the position of the step is known.
        FileFormat::of_name(path).map_err(|e| e.context(call.site))?;
    }
    Ok(Step::File(FileStep { path, format, writes_file }))
}

/// One `with()`: the option, which is for reading or for writing, and the format that it names.
fn option(modulator: &Modulator<'_>) -> Result<(&'static str, FileFormat)> {
    let site = &modulator.site;
    let [key, value] = modulator.arguments else {
        return Err(misfit(site, "IO.reader or IO.writer and a format, such as IO.graphson", modulator.arguments));
    };
    let is_of = match name(site, key, "an option of io()")?.as_str() {
        READER => READER,
        WRITER => WRITER,
        other => {
            return Err(site.unsupported(format_args!("io() has the options IO.reader and IO.writer, not '{other}'")));
        }
    };
    let Given::Value(Value::String(named)) = value else {
        return Err(site.invalid(format_args!("a format is IO.graphml or IO.graphson, not {}", describe(value))));
    };
    Ok((is_of, FileFormat::named(named).map_err(|e| e.context(site))?))
}
