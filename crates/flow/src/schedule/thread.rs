//! What the operating system knows of an executor's thread: its CPU time and its priority.

/// Returns the CPU time of this thread, in nanoseconds.
///
/// Turns are measured in CPU time, not in wall time: a task must not pay for other programs that the system ran during
/// its turn. The call takes a few hundred nanoseconds, against the hundreds of microseconds of a turn.
pub(super) fn cpu_nanos() -> u64 {
    // The checker runs all threads of a model on one thread of the system.
    if cfg!(feature = "model") {
        return 0;
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
    seconds * 1_000_000_000 + nanos
}

/// The lowest priority that there is.
const NICE_MAX: i32 = 19;

/// Lowers the priority of this thread: adds `nice` to the nice value of the process.
///
/// A failure is no error. The thread then has the priority of the process.
#[cfg(target_os = "linux")]
pub(super) fn lower_priority(nice: u32) {
    use rustix::process::{getpriority_process, setpriority_process};
    let Ok(now) = getpriority_process(None) else { return };
    let lower = now.saturating_add(i32::try_from(nice).unwrap_or(NICE_MAX)).min(NICE_MAX);
    // On Linux the id of a thread is accepted here and means this thread alone.
    let _ = setpriority_process(Some(rustix::thread::gettid()), lower);
}

/// Only Linux gives a thread a nice value of its own.
#[cfg(not(target_os = "linux"))]
pub(super) fn lower_priority(_: u32) {}

#[cfg(all(test, target_os = "linux", not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn only_the_cpu_time_of_this_thread_counts() {
        let before = cpu_nanos();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let slept = cpu_nanos() - before;
        let mut sum = 0_u64;
        for n in 0..20_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(n));
        }
        let worked = cpu_nanos() - before - slept;
        assert!(slept < worked, "50 ms of sleep took {slept} ns of CPU, the loop {worked} ns");
    }

    #[test]
    fn the_priority_is_that_of_one_thread() {
        let nice = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
        let before = nice();
        let lowered = std::thread::Builder::new().spawn(move || {
            lower_priority(5);
            nice()
        });
        assert_eq!(lowered.unwrap().join().unwrap(), (before + 5).min(NICE_MAX));
        assert_eq!(nice(), before);
    }
}
