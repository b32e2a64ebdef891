//! Compiled code, by the loader of its method's class: `nmethod::_method`, `Method::_constMethod`, `ConstMethod::_constants`,
//! `ConstantPool::_pool_holder`, `_class_loader_data` (vmStructs, JDK 8 to 25).

use super::class_graph::addr_now;
use super::groups::Groups;
use super::{Hotspot, code_cache};
use crate::base::{Addr, Gap, Known, Why};

/// A method that was unloaded, or is being made just now, has no owner.
pub fn add(vm: &Hotspot, groups: &mut Groups) -> Known<()> {
    let structs = vm.structs;
    let steps = [
        structs.offset_of_any(&[("nmethod", "_method"), ("CompiledMethod", "_method")])?,
        structs.offset("Method", "_constMethod")?,
        structs.offset("ConstMethod", "_constants")?,
        structs.offset("ConstantPool", "_pool_holder")?,
        structs.offset("InstanceKlass", "_class_loader_data")?,
    ];
    let mut lost = 0_u64;
    code_cache::each_method(vm, &mut |windows, method, bytes| {
        let follow = |at: Addr, offset: &u64| match at.is_null() {
            true => Ok(at),
            // Metadata of a class that was loaded just now lies in new pages.
            false => windows.addr(at.plus(*offset)).or_else(|_| addr_now(vm, at.plus(*offset))),
        };
        match steps.iter().try_fold(method, follow) {
            Ok(loader) => {
                if let Some(group) = groups.of(loader) {
                    let row = groups.row(group);
                    row.code_bytes = row.code_bytes.map(|sum| sum.saturating_add(bytes));
                }
            }
            Err(_) => lost += 1,
        }
    })?;
    match lost {
        0 => Ok(()),
        lost => Err(Gap::new(format!("class loaders of {lost} compiled methods"), Why::Torn)),
    }
}
