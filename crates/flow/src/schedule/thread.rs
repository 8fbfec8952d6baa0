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

/// The time for which the system lets a thread of low priority run before it looks whether another one should, in
/// nanoseconds. It is the shortest that Linux accepts.
#[cfg(target_os = "linux")]
const SLICE_NANOS: u64 = 100_000;

/// Lowers the priority of this thread: adds `nice` to the nice value of the process, and asks the system for short time
/// slices.
///
/// A thread that wakes up does not get the core of a running thread before the slice of that one is over, whatever
/// their nice values are. With the slices that Linux gives by default, a light request waited for up to 2 ms on a core
/// that an executor used.
///
/// A failure is no error. The thread then has the priority of the process, or slices as the system gives them.
#[cfg(target_os = "linux")]
pub(super) fn lower_priority(nice: u32) {
    use rustix::process::{getpriority_process, setpriority_process};
    let Ok(now) = getpriority_process(None) else { return };
    let lower = now.saturating_add(i32::try_from(nice).unwrap_or(NICE_MAX)).min(NICE_MAX);
    if !set_scheduling(lower, SLICE_NANOS) {
        // On Linux the id of a thread is accepted here and means this thread alone.
        let _ = setpriority_process(Some(rustix::thread::gettid()), lower);
    }
}

/// Sets the nice value and the length of the time slices of this thread. Linux before 6.12 accepts the length and
/// ignores it. Returns false if the call failed.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe crate has this system call")]
fn set_scheduling(nice: i32, slice_nanos: u64) -> bool {
    /// The first version of Linux's `struct sched_attr`.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_nanos: u64,
        deadline_nanos: u64,
        period_nanos: u64,
    }
    /// The policy of the thread stays as it is.
    const SCHED_FLAG_KEEP_POLICY: u64 = 0x08;
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: 0,
        flags: SCHED_FLAG_KEEP_POLICY,
        nice,
        priority: 0,
        runtime_nanos: slice_nanos,
        deadline_nanos: 0,
        period_nanos: 0,
    };
    // SAFETY: the kernel reads `size` bytes of the attributes, which live until the call returns, and keeps no pointer to
    // them. The thread 0 is the one that calls; there are no flags of the call.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    outcome == 0
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
