//! What `map` reads: a running JVM, a frozen file or a core; with the pages, where they are asked for.

use super::{By, MapArgs};
use crate::act::attach;
use crate::cmd::map_pages::{self, Read};
use crate::cmd::{audit, target};
use crate::os::{budget, zeros};
use crate::snapshot::{LoaderDetail, Snapshot, Want, page_settings};

fn want(args: &MapArgs) -> Want {
    let is_mapping = args.by == Some(By::Mapping);
    let has_loaders = args.by == Some(By::Loader) || args.html.is_some();
    // smaps says what is locked in memory.
    Want {
        page_sizes: args.wants_pages() || is_mapping || args.html.is_some(),
        smaps: is_mapping || args.pages.zeros,
        holders: matches!(args.by, Some(By::Holder | By::Library)) || args.html.is_some(),
        loaders: if has_loaders { LoaderDetail::All } else { LoaderDetail::None },
        buffers: args.by == Some(By::Buffer),
        ..Want::default()
    }
}

/// The snapshot, and all else that was read.
pub fn read(args: &MapArgs) -> anyhow::Result<(Snapshot, Read)> {
    if let Some(path) = &args.from {
        let mut snapshot = target::thaw(path, budget::limits(), want(args))?;
        snapshot.keep_only(want(args));
        return Ok((snapshot, Read::default()));
    }
    let process = target::open_any(args.target.as_deref().unwrap_or_default())?;
    let attached = args.pages.ask.then(|| attach::open(&process)).transpose();
    let attached = attached.map_err(|error| audit::refused(&error))?;
    let mut snapshot = target::take(&process, want(args))?;
    let mut read = Read::default();
    if want(args).page_sizes {
        snapshot.taken.page_settings = Some(page_settings::read(&process, &snapshot));
    }
    if args.wants_pages() {
        read.said = map_pages::said(&process, attached.as_ref(), &mut snapshot.os.gaps);
        snapshot.taken.attached = attached.is_some();
    }
    if attached.is_some_and(|attached| attached.receipt.listener_started) {
        crate::say!("marusa: the JVM now has one more thread, the Attach Listener, until it ends");
    }
    // Looked at here: reading the mappings once more before would take a sixth of the time where there are many.
    target::check_jvm(&process, &snapshot.os.mappings)?;
    if args.pages.zeros {
        match zeros::read(&process, &snapshot.os, &snapshot.stacks(), zeros::Effort::default()) {
            Ok(zeros) => {
                snapshot.os.gaps.extend(zeros.gaps.iter().cloned());
                read.zeros = Some(zeros);
            }
            Err(gap) => snapshot.os.gaps.push(gap),
        }
    }
    Ok((snapshot, read))
}
