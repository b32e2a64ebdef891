//! Reading: the host is watched for a while, and the JVMs are read in the meantime. Whatever cannot be read of one JVM leaves the
//! others as they are: it is noted with the JVM's pid.

use super::{Facts, HostFacts, JvmFacts};
use crate::base::limits::{DOCTOR_JVMS_MAX, DOCTOR_SLOW, TARGET_LISTED};
use crate::base::{Bytes, Gap, Known, Why};
use crate::os::access;
use crate::os::budget::{self, Pool};
use crate::os::process::{OpenError, Process};
use crate::snapshot::discover::{self, Jvm, Listing};
use crate::snapshot::hidden::Hidden;
use crate::snapshot::{Snapshot, page_settings::PageSettings};
use std::time::{Duration, Instant};

/// Who is examined next to the host.
pub enum Who {
    All,
    One(Process),
    /// No JVM at all.
    Nobody,
}

/// All facts read, and about which targets.
#[derive(Debug, Default)]
pub struct Gathered {
    pub facts: Facts,
    /// By pid; the ones that could not be read among them.
    pub patients: Vec<Patient>,
    pub hidden: Hidden,
    /// Why the JVMs of the host could not be listed.
    pub unlisted: Option<Gap>,
    /// Who holds malloc's blocks is read too.
    pub has_holders: bool,
}

/// A JVM, by what people know it by.
#[derive(Clone, Debug, Default, schemars::JsonSchema, serde::Serialize)]
pub struct Patient {
    pub pid: i32,
    /// The main class, the jar or the module.
    pub main: Option<String>,
    /// "Kafka", where the main class is that of a known server or tool.
    pub server: Option<String>,
    pub user: String,
    pub container: Option<String>,
    /// "21.0.8+9".
    pub version: Option<String>,
    pub gc: Option<String>,
    pub resident_bytes: Option<Bytes>,
    /// Why nothing was read of it.
    #[serde(skip)]
    pub unread: Option<Gap>,
}

impl Patient {
    fn of(jvm: &Jvm) -> Patient {
        Patient {
            pid: jvm.process.pid,
            main: jvm.main.clone().ok(),
            server: jvm.server.clone(),
            user: jvm.process.user.clone(),
            container: jvm.container_name.clone().or_else(|| jvm.process.container.clone()),
            version: jvm.version.clone().ok(),
            gc: jvm.gc.clone().ok(),
            resident_bytes: jvm.resident_bytes.clone().ok(),
            unread: None,
        }
    }

    /// A JVM of a recording.
    pub fn recorded(facts: &crate::record::writer::JvmFacts) -> Patient {
        Patient {
            main: facts.main.clone(),
            server: facts.server.clone(),
            user: facts.user.clone(),
            container: facts.container.clone(),
            version: facts.version.clone(),
            gc: facts.gc.clone(),
            ..unknown(facts.pid)
        }
    }

    /// A JVM of a frozen snapshot.
    fn kept(snapshot: &Snapshot) -> Patient {
        let jvm = snapshot.jvm.as_ref().ok();
        let process = &snapshot.os.process;
        Patient {
            user: process.user.clone(),
            container: process.container.clone(),
            version: jvm.and_then(|jvm| jvm.version.clone().ok()),
            gc: jvm.and_then(|jvm| Some(jvm.gc.clone().ok()?.name().to_string())),
            resident_bytes: snapshot.os.status.resident_with_hugetlb_bytes(),
            ..unknown(process.pid)
        }
    }
}

/// Watches the host for `watch`, or for as long as reading takes, if that is longer. `me`: our own process. `has_holders`: who
/// holds malloc's blocks is read too.
pub fn gather(who: Who, watch: Duration, me: &Process, has_holders: bool) -> Gathered {
    let watched = HostFacts::start();
    let started = Instant::now();
    let mut gathered = Gathered { has_holders, ..Gathered::default() };
    match who {
        Who::Nobody => {}
        Who::One(process) => {
            let patient = discover::one(process.pid).as_ref().map(Patient::of);
            let mut alone = Pool::new(budget::limits().time, budget::limits().time);
            gathered.read(patient.unwrap_or_else(|| unknown(process.pid)), Ok(process), &mut alone);
        }
        Who::All => gathered.read_all(),
    }
    std::thread::sleep(watch.saturating_sub(started.elapsed()));
    gathered.facts.host = watched.finish(me);
    gathered.facts.jvms.iter_mut().for_each(|jvm| jvm.bounds.watched());
    gathered
}

/// What a frozen snapshot or a core holds: nothing of the host but the settings of its pages, where they were kept.
pub fn kept(snapshot: Snapshot) -> Gathered {
    let pages = snapshot.taken.page_settings.as_ref().map(|PageSettings { host, .. }| host.clone());
    let gap = Gap::new("the host: its counters, its memory and its settings", Why::NotRecorded)
        .hint("only what is wrong within the JVM can be found");
    let host = HostFacts {
        kernel: snapshot.taken.kernel.clone(),
        pages: pages.unwrap_or_default(),
        gaps: vec![gap],
        ..HostFacts::default()
    };
    let patient = Patient::kept(&snapshot);
    let jvms = vec![JvmFacts::of(patient.pid, snapshot, None)];
    Gathered { facts: Facts { host, jvms }, patients: vec![patient], ..Gathered::default() }
}

impl Gathered {
    fn read_all(&mut self) {
        let listing = discover::list(TARGET_LISTED).unwrap_or_else(|gap| {
            self.unlisted = Some(gap);
            Listing::default()
        });
        self.hidden = listing.hidden.clone();
        self.read_listed(&listing.jvms);
        // Whether it is a JVM was not found out.
        let is_listed = |pid: i32| listing.jvms.binary_search_by_key(&pid, |jvm| jvm.process.pid).is_ok();
        let unlisted = listing.given_up.into_iter().filter(|(pid, _)| !is_listed(*pid));
        self.patients.extend(unlisted.map(|(pid, gap)| Patient { unread: Some(gap), ..unknown(pid) }));
    }

    fn read_listed(&mut self, jvms: &[Jvm]) {
        let mut pool = Pool::new(DOCTOR_SLOW.0, DOCTOR_SLOW.1);
        for (index, jvm) in jvms.iter().enumerate() {
            let opened = match index < DOCTOR_JVMS_MAX {
                true => Process::open(jvm.process.pid).map_err(|error| unopened(&error)),
                false => Err(Gap::new("the JVM", Why::OverLimit)
                    .hint(format!("{DOCTOR_JVMS_MAX} JVMs are examined at once; name this one as TARGET"))),
            };
            // Another process may have got the pid since it was listed.
            let same = opened.and_then(|process| match process.start_ticks == jvm.process.start_ticks {
                true => Ok(process),
                false => Err(Gap::new("the JVM", Why::Gone)),
            });
            self.read(Patient::of(jvm), same, &mut pool);
        }
    }

    fn read(&mut self, patient: Patient, process: Known<Process>, pool: &mut Pool) {
        let read = process.and_then(|process| {
            let read = pool.within(budget::limits(), || {
                let facts = JvmFacts::read(&process, self.has_holders)?;
                // A rule must not judge what was read in part.
                budget::ended().map_or(Ok(facts), Err)
            });
            read.map_err(|gap| match gap.why {
                Why::Denied => gap.hint(access::refused(&process)),
                _ => gap,
            })
        });
        let unread = match read {
            Ok(facts) => {
                self.facts.jvms.push(facts);
                None
            }
            Err(gap) => Some(gap),
        };
        self.patients.push(Patient { unread, ..patient });
    }
}

fn unknown(pid: i32) -> Patient {
    Patient { pid, ..Patient::default() }
}

fn unopened(error: &OpenError) -> Gap {
    let why = match error {
        OpenError::Denied(..) | OpenError::Hidden(..) => Why::Denied,
        _ => Why::Gone,
    };
    Gap::new("the JVM", why).hint(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::identity::Identity;
    use crate::os::target::ProcessFacts;

    #[test]
    fn the_host_alone_is_watched_for_as_long_as_is_said() {
        let me = Process::open(std::process::id() as i32).expect("myself");
        let gathered = gather(Who::Nobody, Duration::from_millis(30), &me, false);
        assert!(gathered.facts.host.seconds >= 0.03 && gathered.facts.jvms.is_empty());
        assert!(gathered.facts.host.memory_bytes().is_some());
    }

    #[test]
    fn a_process_that_is_no_jvm_is_read_as_far_as_it_goes() {
        let me = || Process::open(std::process::id() as i32).expect("myself");
        let gathered = gather(Who::One(me()), Duration::from_millis(1), &me(), false);
        assert_eq!(gathered.patients.len(), 1);
        assert!(gathered.facts.jvms.iter().all(|jvm| jvm.jvm().is_none()));
    }

    /// All of them are long gone, which is reported only of the ones that were looked for.
    #[test]
    fn of_more_jvms_than_are_examined_each_is_listed() {
        let listed = |number: usize| Jvm {
            process: ProcessFacts { pid: i32::MAX - number as i32, ..ProcessFacts::default() },
            container_name: None,
            identity: Identity::default(),
            jvm_id: Err(Gap::new("JVM id", Why::Gone)),
            vm: Err(Gap::new("VM", Why::Gone)),
            version: Err(Gap::new("version", Why::Gone)),
            gc: Err(Gap::new("collector", Why::Gone)),
            max_heap_bytes: Err(Gap::new("heap", Why::Gone)),
            resident_bytes: Ok(1 << 20),
            page_mode: Err(Gap::new("pages", Why::Gone)),
            main: Ok(format!("Main{number}")),
            server: None,
        };
        let jvms: Vec<Jvm> = (0..DOCTOR_JVMS_MAX + 2).map(listed).collect();
        let mut gathered = Gathered::default();
        gathered.read_listed(&jvms);
        let whys: Vec<Why> =
            gathered.patients.iter().filter_map(|it| Some(it.unread.as_ref()?.why)).collect();
        assert_eq!(whys.len(), DOCTOR_JVMS_MAX + 2);
        assert!(whys[..DOCTOR_JVMS_MAX].iter().all(|why| *why == Why::Gone));
        assert_eq!(whys[DOCTOR_JVMS_MAX..], [Why::OverLimit, Why::OverLimit]);
        let last = gathered.patients.last().expect("patients");
        assert_eq!(last.main.as_deref(), Some("Main501"));
        assert!(last.unread.as_ref().is_some_and(|gap| gap.to_string().contains("500 JVMs")));
    }

    #[test]
    fn one_that_ended_is_said_and_the_others_are_read() {
        let me = || Process::open(std::process::id() as i32).expect("myself");
        let mut gathered = Gathered::default();
        let mut pool = Pool::new(DOCTOR_SLOW.0, DOCTOR_SLOW.1);
        gathered.read(unknown(7), Err(unopened(&OpenError::None(7))), &mut pool);
        gathered.read(unknown(me().pid), Ok(me()), &mut pool);
        assert_eq!(gathered.patients[0].unread.as_ref().map(|gap| gap.why), Some(Why::Gone));
        assert_eq!((gathered.patients[1].unread.clone(), gathered.facts.jvms.len()), (None, 1));
    }
}
