//! The suites, one a file.

mod adaptive;
mod analytics;
mod caches;
mod collection;
mod columns;
mod durability;
mod files;
mod gdi;
mod hop;
mod indexes;
mod insert;
mod instances;
mod isolation;
mod khop;
mod large;
mod load;
mod locality;
mod lsqb;
mod machine;
mod memory;
mod mixes;
mod optimizations;
mod papers;
mod planning;
mod plans;
mod point;
mod policies;
mod reads;
mod scan;
mod scopes;
mod shares;
mod supernode;
mod turnover;
mod wire;

use mangrove::Result;

use crate::harness::{Operation, Schedule, measure, verify};
use crate::options::{Options, Suite};
use crate::report::{Growing, Row};
use crate::served::Served;
use crate::ways::{Question, Way};

/// Runs the suites that the options name.
pub fn run(options: &Options, report: &mut Growing<'_>) -> Result<()> {
    let context = Context { options, schedule: Schedule::of(options) };
    options.suites.iter().try_for_each(|suite| match suite {
        Suite::Machine => machine::run(&context, report),
        Suite::Memory => memory::run(&context, report),
        Suite::Load => load::run(&context, report),
        Suite::Files => files::run(&context, report),
        Suite::Point => point::run(&context, report),
        Suite::Hop => hop::run(&context, report),
        Suite::Indexes => indexes::run(&context, report),
        Suite::Scan => scan::run(&context, report),
        Suite::Columns => columns::run(&context, report),
        Suite::Insert => insert::run(&context, report),
        Suite::LinkBench | Suite::ReadMostly | Suite::ReadIntensive | Suite::WriteIntensive | Suite::Lbv => {
            mixes::run(&context, *suite, report)
        }
        Suite::Optimizations => optimizations::run(&context, report),
        Suite::Collection => collection::run(&context, report),
        Suite::Locality => {
            turnover::run(&context, report)?;
            locality::run(&context, report)
        }
        Suite::Supernode => supernode::run(&context, report),
        Suite::Large => large::run(&context, report),
        Suite::Durability => durability::run(&context, report),
        Suite::Wire => wire::run(&context, report),
        Suite::KHop => khop::run(&context, report),
        Suite::Lsqb => lsqb::run(&context, report),
        Suite::ShortReads | Suite::ComplexReads => reads::run(&context, *suite, report),
        Suite::Cq => papers::run(&context, *suite, "banyan-cq", report),
        Suite::Grasper => papers::run(&context, *suite, "grasper", report),
        Suite::Barriers => papers::run(&context, *suite, "barriers", report),
        Suite::Scopes => scopes::run(&context, report),
        Suite::Instances => instances::run(&context, report),
        Suite::Policies => policies::run(&context, report),
        Suite::Adaptive => adaptive::run(&context, report),
        Suite::Plans => plans::run(&context, report),
        Suite::Planning => planning::run(&context, report),
        Suite::Caches => caches::run(&context, report),
        Suite::Isolation => isolation::run(&context, report),
        Suite::Shares => shares::run(&context, report),
        Suite::Analytics => analytics::run(&context, report),
        Suite::Gdi => gdi::run(&context, report),
    })
}

/// The objects that all suites use.
struct Context<'a> {
    options: &'a Options,
    schedule: Schedule,
}

/// A case that several variants read.
struct ReadCase<'a> {
    suite: Suite,
    name: &'a str,
    /// Inputs are below this.
    input_count: u64,
    /// The number of things that one operation reads; times are divided by it.
    unit_count: f64,
    context: &'a Context<'a>,
    /// The median of the bare variant, after it was measured.
    bare: Option<f64>,
}

impl<'a> ReadCase<'a> {
    fn new(suite: Suite, name: &'a str, input_count: u64, context: &'a Context<'a>) -> Self {
        ReadCase { suite, name, input_count, unit_count: 1.0, context, bare: None }
    }

    /// Times the bare variant, with which the others are compared.
    fn measure_bare(&mut self, report: &mut Growing<'_>, make: impl Fn() -> Box<dyn Operation>) -> Result<()> {
        if !self.context.options.wants(self.name, "bare") {
            return Ok(());
        }
        let schedule = self.context.schedule;
        let mut operations: Vec<_> = (0..schedule.threads).map(|_| make()).collect();
        let timing = measure(schedule, self.input_count, &mut operations)?.divided_by(self.unit_count);
        self.bare = Some(timing.median);
        report.push(Row::time(self.suite.name(), self.name, "bare", timing));
        Ok(())
    }

    /// Compares a variant with the bare one, and times it.
    fn measure(
        &self,
        report: &mut Growing<'_>,
        variant: &str,
        target: Option<f64>,
        reference: &mut dyn Operation,
        make: impl Fn() -> Result<Box<dyn Operation>>,
    ) -> Result<()> {
        if !self.context.options.wants(self.name, variant) {
            return Ok(());
        }
        let schedule = self.context.schedule;
        let mut operations = (0..schedule.threads).map(|_| make()).collect::<Result<Vec<_>>>()?;
        let what = format!("{} {}, {variant}", self.suite.name(), self.name);
        verify(&what, &mut *operations[0], self.input_count, &mut |input| reference.perform(input))?;
        let timing = measure(schedule, self.input_count, &mut operations)?.divided_by(self.unit_count);
        report.push(Row::time(self.suite.name(), self.name, variant, timing).beside(self.bare).aiming_at(target));
        Ok(())
    }

    /// Runs a question in every way.
    fn measure_ways(
        &self,
        report: &mut Growing<'_>,
        question: &Question,
        targets: impl Fn(Way) -> Option<f64>,
        reference: &mut dyn Operation,
        database: &mangrove::Database,
        served: &Served,
    ) -> Result<()> {
        Way::ALL.into_iter().try_for_each(|way| {
            self.measure(report, way.name(), targets(way), reference, || question.ask(way, database, served))
        })
    }
}

/// The target of a Gremlin query: 50 times faster than the best embedded rival if prepared, 10 times as text. The
/// rival's time is its median, in milliseconds.
fn against_rival(rival_ms: f64) -> impl Fn(Way) -> Option<f64> {
    move |way| match way {
        Way::Prepared => Some(rival_ms * 1e6 / 50.0),
        Way::Text => Some(rival_ms * 1e6 / 10.0),
        Way::Server => None,
    }
}
