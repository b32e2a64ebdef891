//! Whether a field may refer to an object, by its declared type: a reference that is left over in a dead object, or that ZGC has
//! not corrected yet, leads to whatever lies there now.

use crate::base::Addr;
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::holders::classes::FieldsOf;
use crate::jvm::hotspot::window::Windows;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

const SUPERS_MAX: usize = 64;
const INTERFACES_MAX: u32 = 1024;
const OBJECT: &str = "java.lang.Object";

pub struct Types<'a> {
    windows: &'a Windows<'a>,
    fields: &'a FieldsOf<'a>,
    /// `Klass::_super`, `InstanceKlass::_transitive_interfaces`, and where an array of classes begins.
    super_class: Option<u64>,
    interfaces: Option<(u64, u64)>,
    known: RefCell<HashMap<Addr, Rc<HashSet<String>>>>,
}

impl<'a> Types<'a> {
    pub fn new(vm: &Hotspot, windows: &'a Windows<'a>, fields: &'a FieldsOf<'a>) -> Types<'a> {
        let offset = |owner, name| vm.structs.offset(owner, name).ok();
        let interfaces = offset("InstanceKlass", "_transitive_interfaces");
        Types {
            windows,
            fields,
            super_class: offset("Klass", "_super"),
            interfaces: interfaces.zip(offset("Array<Klass*>", "_data")),
            known: RefCell::default(),
        }
    }

    /// Whether a field with this signature may refer to an object of `class`.
    pub fn fits(&self, signature: &str, class: Addr) -> bool {
        let Some(wanted) = type_of(signature) else { return false };
        wanted == OBJECT || {
            let names = self.names(class);
            // Where the interfaces are not known nothing can be refused.
            names.contains(&wanted) || names.is_empty() || self.interfaces.is_none()
        }
    }

    /// Whether a field with this signature may refer to any object, so that its type is not evidence.
    pub fn fits_all(signature: &str) -> bool {
        type_of(signature).as_deref() == Some(OBJECT)
    }

    /// All that an object of the class is.
    fn names(&self, class: Addr) -> Rc<HashSet<String>> {
        let known = self.known.borrow().get(&class).cloned();
        known.unwrap_or_else(|| {
            let names = Rc::new(self.read(class));
            self.known.borrow_mut().insert(class, names.clone());
            names
        })
    }

    fn read(&self, class: Addr) -> HashSet<String> {
        let mut names: HashSet<String> = HashSet::new();
        let mut at = class;
        for _ in 0..SUPERS_MAX {
            let Some(name) = self.fields.name(at) else { break };
            if name.starts_with("[L") || name.starts_with("[[") {
                names.insert("[Ljava.lang.Object;".to_string());
            }
            names.insert(name);
            let next = self.super_class.and_then(|offset| self.windows.addr(at.plus(offset)).ok());
            at = next.unwrap_or_default();
        }
        let is_array = names.iter().any(|name| name.starts_with('['));
        for interface in if is_array { Vec::new() } else { self.interfaces(class) } {
            names.extend(self.fields.name(interface));
        }
        names
    }

    fn interfaces(&self, class: Addr) -> Vec<Addr> {
        let list = || {
            let (at, data) = self.interfaces?;
            let array = self.windows.addr(class.plus(at)).ok().filter(|array| !array.is_null())?;
            let length = u32::from_le_bytes(self.windows.array(array).ok()?).min(INTERFACES_MAX);
            let element = |index| self.windows.addr(array.plus(data + u64::from(index) * 8)).ok();
            Some((0..length).filter_map(element).collect())
        };
        list().unwrap_or_default()
    }
}

/// "Ljava/nio/ByteBuffer;" is the type "java.nio.ByteBuffer", "[Ljava/lang/Object;" the array "[Ljava.lang.Object;".
fn type_of(signature: &str) -> Option<String> {
    let name = match signature.as_bytes().first()? {
        b'L' => signature.strip_prefix('L')?.strip_suffix(';')?,
        b'[' => signature,
        _ => return None,
    };
    Some(name.replace('/', "."))
}

/// The signature of the elements of an array of this class.
pub fn element_of(array: &str) -> &str {
    array.strip_prefix('[').unwrap_or(array)
}

/// "java.lang.Object[]" for "[Ljava.lang.Object;".
pub fn shown(array: &str) -> String {
    let depth = array.bytes().take_while(|letter| *letter == b'[').count();
    let element = array[depth..].strip_prefix('L').and_then(|name| name.strip_suffix(';'));
    format!("{}{}", element.unwrap_or(&array[depth..]), "[]".repeat(depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_and_names() {
        assert_eq!(type_of("Ljava/nio/ByteBuffer;").as_deref(), Some("java.nio.ByteBuffer"));
        assert_eq!(type_of("[Ljava/lang/Object;").as_deref(), Some("[Ljava.lang.Object;"));
        assert_eq!((type_of("J"), type_of(""), type_of("Lx")), (None, None, None));
        assert_eq!(element_of("[[Lcom.app.A;"), "[Lcom.app.A;");
        assert_eq!(shown("[[Lcom.app.A;"), "com.app.A[][]");
        assert_eq!(shown("["), "[]");
    }
}
