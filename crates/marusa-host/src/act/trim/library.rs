//! The library that makes a JVM without `System.trim_native_heap` (8, 11, 17.0.8 and before) call `malloc_trim(0)` in a thread
//! of its own. In C it would be
//!
//! ```c
//! extern int malloc_trim(size_t) __attribute__((weak));
//! int Agent_OnAttach(void *vm, char *options, void *reserved) { return malloc_trim ? 100 + malloc_trim(0) : 102; }
//! ```
//!
//! It is put together here, byte by byte, and not compiled: so building Marusa needs no C compiler for the target's C library
//! (Marusa itself may be a static musl program), the target gets the same 700 bytes from every build, and all of them can be
//! read below. It has no constructor, no thread, no state, and needs nothing but what the JVM has loaded anyway.
//!
//! The code is never 0 (`JNI_OK`): a JVM keeps the agents that return 0 on a list, and unloads the others (16 and later,
//! jvmtiExport.cpp, JDK-8252657) or at least forgets them (8, 11: the two pages stay mapped).
//!
//! Format: elf(5); what glibc asks of a library: elf/get-dynamic-info.h, elf/dl-load.c (2.17 to 2.43); both take DT_HASH.

/// What `Agent_OnAttach` returns: malloc_trim gave nothing back, it did, or the process has no malloc_trim.
pub const NOTHING_TRIMMED: i32 = 100;
pub const TRIMMED: i32 = 101;
pub const NO_MALLOC_TRIM: i32 = 102;

/// The second segment lies this far behind the first, and each is aligned to it: the largest page size there is.
const PAGE: u64 = 0x10000;
const HASH: u64 = 0x120;
const SYMBOLS: u64 = 0x138;
const RELOCATIONS: u64 = 0x180;
const NAMES: u64 = 0x198;
const CODE: u64 = 0x1c0;
const DYNAMIC: u64 = 0x200;
/// The word that the dynamic linker fills with the address of malloc_trim.
const SLOT: u64 = 0x290;
const END: u64 = 0x298;

const NAME_BYTES: &[u8] = b"\0Agent_OnAttach\0malloc_trim\0";
const ON_ATTACH: u32 = 1;
const MALLOC_TRIM: u32 = 16;

/// The machines for which there is code: `e_machine`, the relocation that stores a symbol's address, and the instructions.
struct Machine {
    number: u16,
    store_address: u64,
    code: &'static [u8],
}

const X86_64: Machine = Machine {
    number: 62,       // EM_X86_64
    store_address: 6, // R_X86_64_GLOB_DAT
    code: &[
        0x48, 0x83, 0xec, 0x08, // sub rsp, 8
        0x48, 0x8b, 0x15, 0xc5, 0x00, 0x01, 0x00, // mov rdx, [rip + SLOT]
        0xb8, 0x66, 0x00, 0x00, 0x00, // mov eax, 102
        0x48, 0x85, 0xd2, // test rdx, rdx
        0x74, 0x07, // jz out
        0x31, 0xff, // xor edi, edi
        0xff, 0xd2, // call rdx
        0x83, 0xc0, 0x64, // add eax, 100
        0x48, 0x83, 0xc4, 0x08, // out: add rsp, 8
        0xc3, // ret
    ],
};

const AARCH64: Machine = Machine {
    number: 183,         // EM_AARCH64
    store_address: 1025, // R_AARCH64_GLOB_DAT
    code: &[
        0xfd, 0x7b, 0xbf, 0xa9, // stp x29, x30, [sp, #-16]!
        0xfd, 0x03, 0x00, 0x91, // mov x29, sp
        0x90, 0x00, 0x00, 0x90, // adrp x16, page of SLOT
        0x10, 0x4a, 0x41, 0xf9, // ldr x16, [x16, #0x290]
        0xc0, 0x0c, 0x80, 0x52, // mov w0, #102
        0x90, 0x00, 0x00, 0xb4, // cbz x16, out
        0xe0, 0x03, 0x1f, 0x2a, // mov w0, wzr
        0x00, 0x02, 0x3f, 0xd6, // blr x16
        0x00, 0x90, 0x01, 0x11, // add w0, w0, #100
        0xfd, 0x7b, 0xc1, 0xa8, // out: ldp x29, x30, [sp], #16
        0xc0, 0x03, 0x5f, 0xd6, // ret
    ],
};

/// The library for the machine that Marusa runs on, which is the target's. `None`: no code was written for it.
pub fn bytes() -> Option<Vec<u8>> {
    match std::env::consts::ARCH {
        "x86_64" => Some(image(&X86_64)),
        "aarch64" => Some(image(&AARCH64)),
        _ => None,
    }
}

fn image(machine: &Machine) -> Vec<u8> {
    let mut image = Image(Vec::new());
    header(&mut image, machine);
    program_headers(&mut image);
    // One bucket, which begins with symbol 1, and the chain 1, 2, end.
    image.at(HASH).halves(&[1, 3, 1, 0, 2, 0]);
    symbols(&mut image);
    image.at(RELOCATIONS).words(&[PAGE + SLOT, 2 << 32 | machine.store_address, 0]);
    image.at(NAMES).0.extend_from_slice(NAME_BYTES);
    image.at(CODE).0.extend_from_slice(machine.code);
    dynamic(&mut image);
    image.at(SLOT).words(&[0]);
    debug_assert_eq!(image.0.len() as u64, END);
    image.0
}

/// Elf64_Ehdr: a shared object without section headers.
fn header(image: &mut Image, machine: &Machine) {
    const SHARED_OBJECT: u32 = 3;
    image.0.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    image.halves(&[SHARED_OBJECT | u32::from(machine.number) << 16, 1]);
    image.words(&[0, 64, 0]);
    // Flags, sizes of the two headers, four program headers; a section header would have 64 bytes.
    image.halves(&[0, 64 | 56 << 16, 4 | 64 << 16, 0]);
}

/// Elf64_Phdr: code that cannot be written, data that cannot be executed, and a stack that neither.
fn program_headers(image: &mut Image) {
    const LOAD: u32 = 1;
    const DYNAMIC_SECTION: u32 = 2;
    const STACK: u32 = 0x6474_e551;
    let (execute, write, read): (u32, u32, u32) = (1, 2, 4);
    let data = [DYNAMIC, PAGE + DYNAMIC, PAGE + DYNAMIC, END - DYNAMIC, END - DYNAMIC];
    for (kind, rights, words, alignment) in [
        (LOAD, read | execute, [0, 0, 0, DYNAMIC, DYNAMIC], PAGE),
        (LOAD, read | write, data, PAGE),
        (
            DYNAMIC_SECTION,
            read | write,
            [DYNAMIC, PAGE + DYNAMIC, PAGE + DYNAMIC, SLOT - DYNAMIC, SLOT - DYNAMIC],
            8,
        ),
        (STACK, read | write, [0; 5], 16),
    ] {
        image.halves(&[kind, rights]);
        image.words(&words);
        image.words(&[alignment]);
    }
}

/// Elf64_Sym: none, the function we bring, and the one we hope for (weak: its absence is not an error).
fn symbols(image: &mut Image) {
    const FUNCTION: u32 = 2;
    const GLOBAL: u32 = 1 << 4;
    const WEAK: u32 = 2 << 4;
    let some_section = 1 << 16;
    image.at(SYMBOLS).words(&[0, 0, 0]);
    image.halves(&[ON_ATTACH, GLOBAL | FUNCTION | some_section]);
    image.words(&[CODE, DYNAMIC - CODE]);
    image.halves(&[MALLOC_TRIM, WEAK | FUNCTION]);
    image.words(&[0, 0]);
}

/// Elf64_Dyn: tag and value; ends with 0.
fn dynamic(image: &mut Image) {
    let (hash_table, string_table, symbol_table) = (4, 5, 6);
    let (rela, rela_bytes, rela_entry) = (7, 8, 9);
    let (string_bytes, symbol_entry) = (10, 11);
    image.at(DYNAMIC).words(&[hash_table, HASH, string_table, NAMES, symbol_table, SYMBOLS]);
    image.words(&[string_bytes, NAME_BYTES.len() as u64, symbol_entry, 24]);
    image.words(&[rela, RELOCATIONS, rela_bytes, 24, rela_entry, 24, 0, 0]);
}

/// Bytes that are written from the front to the end.
struct Image(Vec<u8>);

impl Image {
    /// Fills with zeros up to `offset`, which must not have been passed.
    fn at(&mut self, offset: u64) -> &mut Image {
        debug_assert!(self.0.len() as u64 <= offset);
        self.0.resize(offset as usize, 0);
        self
    }
    fn halves(&mut self, values: &[u32]) {
        values.iter().for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }
    fn words(&mut self, values: &[u64]) {
        values.iter().for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_fits_and_reads_the_slot() {
        for machine in [&X86_64, &AARCH64] {
            assert!(CODE + machine.code.len() as u64 <= DYNAMIC);
            assert_eq!(image(machine).len() as u64, END);
        }
        let displacement = u32::from_le_bytes(X86_64.code[7..11].try_into().expect("four bytes"));
        assert_eq!(CODE + 11 + u64::from(displacement), PAGE + SLOT, "relative to the next instruction");
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn the_dynamic_linker_takes_it_and_it_trims() {
        use std::ffi::{CString, c_char, c_void};
        let path = std::env::temp_dir().join(format!("marusa-library-{}.so", std::process::id()));
        std::fs::write(&path, bytes().expect("a known machine")).expect("written");
        let name = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
        // SAFETY: the library is the one made above, whose function has this type and uses no argument.
        let code = unsafe {
            let library = libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null(), "{:?}", std::ffi::CStr::from_ptr(libc::dlerror()));
            let function = libc::dlsym(library, c"Agent_OnAttach".as_ptr());
            assert!(!function.is_null());
            type OnAttach = extern "C" fn(*mut c_void, *mut c_char, *mut c_void) -> i32;
            let function: OnAttach = std::mem::transmute(function);
            let null = std::ptr::null_mut();
            let code = function(null, null.cast(), null);
            assert_eq!(libc::dlclose(library), 0);
            code
        };
        std::fs::remove_file(&path).expect("removed");
        assert!(matches!(code, NOTHING_TRIMMED | TRIMMED), "{code}");
    }
}
