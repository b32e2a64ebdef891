//! Whether the JVM is the one that the plan was made for, and was started with the plan's options.

use super::causes::Cause;
use super::{Look, Promise};
use crate::base::{Bytes, bytes_of, size};
use crate::jvm::JvmView;
use crate::map::page_claims::Asked;
use crate::map::why::CauseId;

/// A JVM rounds its heap up to whole regions or pages: G1's regions have 32 MiB at most.
const HEAP_ROUNDED_BY_MAX: Bytes = 32 << 20;

/// An option of the plan, as the JVM has it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Same,
    Missing,
    /// What it is instead.
    Differs(String),
    /// It was given, and the JVM itself has switched it off.
    SwitchedOff,
}

/// What is not as planned, the weightiest first. A JVM without a plan has nothing that it could differ from.
pub fn mismatches(promise: &Promise, look: &Look) -> Vec<Cause> {
    let Some(plan) = &promise.plan else { return Vec::new() };
    let mut causes = Vec::new();
    let Ok(jvm) = &look.snapshot.jvm else { return causes };
    if promise.is_of_vm() {
        causes.extend(other_jdk(promise, jvm));
        causes.extend(other_gc(promise, jvm));
        causes.extend(other_heap(promise, jvm));
    } else {
        causes.extend(other_java(promise, jvm));
    }
    causes.extend(other_options(promise, look, jvm));
    for cause in causes.iter_mut().filter(|cause| cause.next.is_empty()) {
        cause.next = format!(
            "a plan for this JVM (`marusa pages plan {}`), or the JVM of {plan}",
            look.snapshot.os.process.pid
        );
    }
    causes
}

fn other_jdk(promise: &Promise, jvm: &JvmView) -> Option<Cause> {
    let (planned, is) = (promise.subject.as_ref()?.feature, *jvm.major.as_ref().ok()?);
    (planned != is).then(|| {
        Cause::new(
            CauseId::OtherJdk,
            format!("the plan is for JDK {planned}, this JVM is JDK {is}: it reserves other sizes"),
        )
        .breaking()
    })
}

fn other_gc(promise: &Promise, jvm: &JvmView) -> Option<Cause> {
    let (planned, is) = (promise.subject.as_ref()?.gc, *jvm.gc.as_ref().ok()?);
    let what =
        || format!("the plan is for {}, this JVM runs {}: its tables differ", planned.name(), is.name());
    (planned != is).then(|| Cause::new(CauseId::OtherGc, what()).breaking())
}

/// A smaller heap takes fewer pages than were promised, a larger one more than there are.
fn other_heap(promise: &Promise, jvm: &JvmView) -> Option<Cause> {
    let planned = promise.subject.as_ref()?.heap_max_bytes;
    let is: Bytes = jvm.flags.get("MaxHeapSize")?.parse().ok()?;
    let slack = match promise.needs.iter().map(|need| need.page_bytes).max() {
        Some(page_bytes) => page_bytes.max(HEAP_ROUNDED_BY_MAX),
        None => HEAP_ROUNDED_BY_MAX,
    };
    let is_same =
        is >= planned && is - planned < slack || planned > is && planned - is < HEAP_ROUNDED_BY_MAX / 32;
    (!is_same).then(|| {
        let what = format!("the plan is for a heap of {}, this JVM has -Xmx {}", size(planned), size(is));
        Cause::new(CauseId::OtherHeap, what).breaking()
    })
}

/// The code plan's libraries lie in one directory: a JVM from elsewhere has others.
fn other_java(promise: &Promise, jvm: &JvmView) -> Option<Cause> {
    let home = promise.subject.as_ref()?.java_home.as_deref()?;
    let is_below = jvm.library.strip_prefix(home).is_some_and(|rest| rest.starts_with('/'));
    (!is_below).then(|| {
        let what = format!("the plan is for {home}/bin/java, this JVM's libjvm is {}", jvm.library);
        Cause::new(CauseId::OtherJava, what)
            .breaking()
            .next(format!("start the program with {home}/bin/java"))
    })
}

fn other_options(promise: &Promise, look: &Look, jvm: &JvmView) -> Vec<Cause> {
    let asked = Asked::of(look.snapshot);
    let words: Vec<&str> = look.snapshot.os.process.arguments.iter().map(String::as_str).collect();
    let (mut missing, mut differing) = (Vec::new(), Vec::new());
    for option in &promise.jvm_options {
        match state(option, &words, jvm, &asked) {
            State::Missing => missing.push(option.as_str()),
            State::Differs(is) => differing.push(format!("{option} (it is {is})")),
            State::Same | State::SwitchedOff => {}
        }
    }
    let mut causes = Vec::new();
    if !missing.is_empty() {
        let list = missing.join(" ");
        let cause = Cause::new(CauseId::OptionsMissing, format!("the JVM was started without {list}"));
        causes.push(cause.next(format!("restart it with {list}")));
    }
    if !differing.is_empty() {
        let cause = Cause::new(CauseId::OptionsDiffer, format!("the plan asks for {}", differing.join(", ")));
        causes.push(cause.next("restart the JVM with the plan's options".to_string()));
    }
    causes
}

/// By the JVM's own flags, since options may come from JAVA_TOOL_OPTIONS or a file; else by the words of the command.
fn state(option: &str, words: &[&str], jvm: &JvmView, asked: &Asked) -> State {
    let in_words = words.contains(&option);
    let by_words = if in_words { State::Same } else { State::Missing };
    // The sizes of the heap are looked at by `other_heap`.
    if ["-Xms", "-Xmx", "/"].iter().any(|start| option.starts_with(start)) {
        return State::Same;
    }
    let Some(rest) = option.strip_prefix("-XX:") else { return by_words };
    let (name, wanted) = match (rest.strip_prefix('+'), rest.strip_prefix('-'), rest.split_once('=')) {
        (Some(name), _, _) => (name, "true"),
        (_, Some(name), _) => (name, "false"),
        (_, _, Some((name, value))) => (name, value),
        _ => return by_words,
    };
    let Some(is) = jvm.flags.get(name) else { return by_words };
    let same = is == wanted || bytes_of(wanted).is_some_and(|bytes| is.parse() == Ok(bytes));
    match () {
        () if same => State::Same,
        () if wanted == "true" && asked.refused && in_words => State::SwitchedOff,
        () if wanted == "true" => State::Missing,
        () if wanted == "false" => State::Differs(format!("-XX:+{name}")),
        () => State::Differs(is.clone()),
    }
}
