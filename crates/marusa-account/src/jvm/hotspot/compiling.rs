//! What each compiler thread compiles now, and how much its arenas have.
//!
//! `CompilerThread::_env` is the `ciEnv` of the compilation, on the thread's stack; its `_task` has the method
//! (src/hotspot/share/ci/ciEnv.hpp, compiler/compileTask.hpp, JDK 8 to 25). Between compilations `_env` is null. The JVMCI
//! compilers have none.

use super::Hotspot;
use super::symbols::Names;
use crate::base::limits::ARENA_CHUNKS_MAX;
use crate::base::{Addr, Bytes, Gap, Known, Range, Why};
use crate::jvm::types::{Compiling, JvmThread, ThreadKind};
use crate::os::{Fault, budget};
use std::collections::BTreeSet;

/// Compiler threads that are looked at; a JVM on 128 CPUs has 20.
const COMPILERS_MAX: usize = 256;
/// What is searched for arenas, from the compiler's own object on the stack up to the end of its `ciEnv`: C2's `Compile` has
/// some kilobytes, and a few frames lie between the two.
const STACK_BYTES_MAX: u64 = 64 << 10;
/// `ciEnv` has 224 bytes in JDK 8 and 1,272 in JDK 25; its arena comes first.
const ENV_BYTES: u64 = 224;
/// A `CompilerThread` has 2,296 bytes in JDK 25.
const THREAD_BYTES_MAX: u64 = 4096;
/// `_compiler_data` follows `_task` and `_log`; JDK 25 no longer lists it.
const DATA_AFTER_TASK: u64 = 16;
/// `Chunk`: the next one, its length and, from JDK 25 on, a stamp of the compilation (src/hotspot/share/memory/arena.hpp).
const CHUNK_HEADER_BYTES: [u64; 2] = [16, 24];
/// The words of an `Arena` behind its tags: the first and the current chunk, the high-water mark and the end of the current one.
const ARENA_WORDS: usize = 4;

/// Notes what each compiler thread compiles.
pub fn read(vm: &Hotspot, threads: &mut [JvmThread], gaps: &mut Vec<Gap>) {
    let mut first_gap = None;
    let compilers = threads.iter_mut().filter(|thread| thread.kind == ThreadKind::Compiler);
    for thread in compilers.take(COMPILERS_MAX) {
        let Some(object) = thread.object else { continue };
        match compiling(vm, object, thread.stack.as_ref().ok()) {
            Ok(found) => thread.compiling = found,
            Err(gap) => first_gap = first_gap.or(Some(gap)),
        }
    }
    // A compilation that ended while it was read does not justify a second reading; old files lack it.
    gaps.extend(first_gap.filter(|gap| gap.why == Why::NotInThisRuntime));
}

fn compiling(vm: &Hotspot, thread: Addr, stack: Option<&Range>) -> Known<Option<Compiling>> {
    let env = vm.addr(thread, "CompilerThread", "_env")?;
    if env.is_null() {
        return Ok(None);
    }
    let task = vm.addr(env, "ciEnv", "_task")?;
    if task.is_null() {
        return Ok(None);
    }
    let number = |name| {
        let at = task.plus(vm.structs.offset("CompileTask", name).ok()?);
        vm.memory().i32(at).ok()
    };
    Ok(Some(Compiling {
        method: method(vm, vm.addr(task, "CompileTask", "_method")?)?,
        // None, simple, limited and full profile, full optimization (compiler/compilerDefinitions.hpp, CompLevel).
        level: number("_comp_level").and_then(|level| u32::try_from(level).ok()).filter(|level| *level <= 4),
        // InvocationEntryBci (-1): the whole method.
        is_osr: number("_osr_bci").filter(|bci| *bci >= -1).map(|bci| bci >= 0),
        arena_bytes: stack.and_then(|stack| arenas(vm, thread, env, *stack).ok()).filter(|bytes| *bytes > 0),
    }))
}

/// "com.example.Main::run".
fn method(vm: &Hotspot, method: Addr) -> Known<String> {
    let fixed = vm.addr(method, "Method", "_constMethod")?;
    let pool = vm.addr(fixed, "ConstMethod", "_constants")?;
    let class = vm.addr(pool, "ConstantPool", "_pool_holder")?;
    let index = fixed.plus(vm.structs.offset("ConstMethod", "_name_index")?);
    let index = vm.memory().u16(index).map_err(|fault| fault.gap("ConstMethod::_name_index"))?;
    let entry = pool.plus(vm.structs.size_of("ConstantPool")? + u64::from(index) * 8);
    let name = vm.memory().addr(entry).map_err(|fault| fault.gap("a method's name"))?;
    let class = symbol(vm, vm.addr(class, "Klass", "_name")?)?;
    Ok(format!("{}::{}", class.replace('/', "."), symbol(vm, name)?))
}

fn symbol(vm: &Hotspot, at: Addr) -> Known<String> {
    let text = Names::read(vm)?.bytes(vm.memory(), at).unwrap_or_default();
    // A task that was freed since leads anywhere.
    let is_name = !text.is_empty() && !text.iter().any(|byte| *byte < 0x20);
    is_name
        .then(|| String::from_utf8_lossy(&text).into_owned())
        .ok_or_else(|| Gap::new("the name of a compiled method", Why::Torn))
}

/// The chunks of all arenas: the ones that the thread points to, and those in the objects of the compilation on its stack.
fn arenas(vm: &Hotspot, thread: Addr, env: Addr, stack: Range) -> Result<Bytes, Fault> {
    let mut chunks = Chunks { vm, known: BTreeSet::new(), left: ARENA_CHUNKS_MAX, bytes: 0 };
    let size = vm.structs.size_of("CompilerThread").unwrap_or(0).min(THREAD_BYTES_MAX);
    for pointer in vm.memory().peek_words(thread, size as usize / 8)? {
        chunks.add_arena_at(Addr(pointer));
    }
    let of_thread = chunks.bytes;
    let offset = |name| vm.structs.offset("ciEnv", name).ok();
    let data = offset("_compiler_data").or_else(|| Some(offset("_task")? + DATA_AFTER_TASK));
    let data = data.and_then(|at| vm.memory().addr(env.plus(at)).ok()).unwrap_or(env);
    let is_below = data <= env && stack.has(data) && stack.has(env) && env.0 - data.0 <= STACK_BYTES_MAX;
    let from = if is_below && data.is_aligned(8) { data } else { env };
    let end = Addr((env.0 + ENV_BYTES).min(stack.end.0));
    if from.0 < end.0 {
        let words = vm.memory().peek_words(from, ((end.0 - from.0) / 8) as usize)?;
        words.windows(ARENA_WORDS).for_each(|four| chunks.add(four));
    }
    // A compilation has arenas of its own; a frozen file does not have them, and a part would mislead.
    Ok(if chunks.bytes > of_thread { chunks.bytes } else { 0 })
}

/// The chunks that were counted.
struct Chunks<'a> {
    vm: &'a Hotspot<'a>,
    known: BTreeSet<u64>,
    /// That may still be looked at.
    left: usize,
    bytes: Bytes,
}

impl Chunks<'_> {
    /// The tags, and in later releases the size, come before the four words, in earlier ones the size comes after them.
    fn add_arena_at(&mut self, arena: Addr) {
        let may_be_arena = arena.is_aligned(8) && self.vm.target.mapping(arena).is_some();
        let words = may_be_arena.then(|| self.vm.memory().peek_words(arena, ARENA_WORDS + 2).ok()).flatten();
        words.iter().flat_map(|words| words.windows(ARENA_WORDS)).for_each(|four| self.add(four));
    }

    /// Where the words are those of an arena, all chunks from the first to the current one, which ends where the arena says.
    fn add(&mut self, words: &[u64]) {
        let [first, current, high, end] = *words else { return };
        let is_arena = first != 0 && current < high && high <= end && (first | current | high | end) & 7 == 0;
        if !is_arena || self.known.contains(&first) {
            return;
        }
        if let Some((chunks, bytes)) = self.walk(first, current, end) {
            self.known.extend(chunks);
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    fn walk(&mut self, first: u64, current: u64, end: u64) -> Option<(Vec<u64>, Bytes)> {
        let (mut chunks, mut bytes, mut chunk) = (Vec::new(), 0_u64, first);
        loop {
            self.left = self.left.checked_sub(1)?;
            if chunk & 7 != 0 || budget::check().is_err() {
                return None;
            }
            let header = self.vm.memory().peek_words(Addr(chunk), 2).ok()?;
            let [next, length] = header[..] else { return None };
            chunks.push(chunk);
            bytes = bytes.checked_add(length)?;
            if chunk == current {
                let header = end.checked_sub(chunk)?.checked_sub(length)?;
                let headers = header.checked_mul(chunks.len() as u64)?;
                return CHUNK_HEADER_BYTES.contains(&header).then_some((chunks, bytes.checked_add(headers)?));
            }
            chunk = next;
        }
    }
}
