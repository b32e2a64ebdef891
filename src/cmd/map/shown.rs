//! The account that `map` shows: as tables, as JSON or as a page, and what its exit status says.

use super::{By, MapArgs, Taxonomy};
use crate::cmd::map_pages::{self, PageReport, Read};
use crate::cmd::{page_file, target};
use crate::map::model::MappingAccount;
use crate::map::{self, Account, MemoryMap};
use crate::show::json::{self, MapDocument};
use crate::show::text;
use crate::snapshot::Snapshot;
use std::io::{self, Write};

pub struct Shown<'a> {
    snapshot: &'a Snapshot,
    map: MemoryMap,
    account: Account,
    /// `None`: not asked for.
    pages: Option<PageReport>,
}

impl Shown<'_> {
    pub fn of<'a>(args: &MapArgs, (snapshot, read): &'a (Snapshot, Read)) -> anyhow::Result<Shown<'a>> {
        let map = map::join(snapshot);
        if let Err(broken) = map::law::check(&map, snapshot) {
            crate::say!("marusa: the books do not balance, please report this: {broken}");
        }
        let pages = args.wants_pages().then(|| map_pages::report(&args.pages, snapshot, &map, read));
        Ok(Shown { snapshot, account: Account::of(snapshot, &map), pages: pages.transpose()?, map })
    }

    pub fn write(&self, args: &MapArgs, out: &mut dyn Write) -> anyhow::Result<()> {
        if let Some(path) = &args.html {
            // A process that ended while it was read has an account, but no findings of its host.
            let live = args.target.as_deref().filter(|_| args.from.is_none());
            let live = live.and_then(|target| target::open_any(target).ok());
            return page_file::of_account(path, self.snapshot, &self.map, &self.account, live);
        }
        match args.json {
            true => Ok(json::print(out, &self.document(args.by()))?),
            false => Ok(self.text(args, out)?),
        }
    }

    /// 1: a requirement is not met.
    pub fn verdict(&self) -> u8 {
        u8::from(self.pages.as_ref().is_some_and(|pages| !pages.is_met()))
    }

    fn document(&self, by: By) -> MapDocument<'_> {
        let reasons = || map::why::by_span(self.snapshot, &self.map);
        let mappings = (by == By::Mapping).then(|| MappingAccount::all(self.snapshot, &self.map, &reasons()));
        let pages = self.pages.as_ref().map(|pages| pages.model(self.snapshot));
        MapDocument { account: &self.account, mappings, pages }
    }

    fn text(&self, args: &MapArgs, out: &mut dyn Write) -> io::Result<()> {
        // A probe wants its answer, not the account.
        let is_probe = args.by.is_none() && !args.pages.require.is_empty();
        if args.taxonomy == Taxonomy::Paper || !is_probe {
            text::head(out, &self.account)?;
            self.table(args, out)?;
            text::gap_rows(out, &self.account.gaps)?;
        }
        self.pages.iter().try_for_each(|pages| text::requirements(out, &pages.answers))
    }

    fn table(&self, args: &MapArgs, out: &mut dyn Write) -> io::Result<()> {
        let account = &self.account;
        match (args.taxonomy, args.by()) {
            (Taxonomy::Paper, _) => text::by_paper(out, account),
            (_, By::Area) => text::by_area_and_part(out, account),
            (_, By::Part) => text::by_part(out, account),
            (_, By::Mapping) => text::by_mapping(out, self.snapshot, &self.map),
            (_, By::Thread) => text::by_thread(out, account, args.each),
            (_, By::Library) => text::by_library(out, account, args.each),
            (_, By::PageSize) => {
                text::by_page_size(out, account)?;
                self.pages.iter().try_for_each(|pages| pages.text(out))
            }
            (_, By::Arena) => text::by_arena(out, account),
            (_, By::Holder) => text::by_holder(out, account),
            (_, By::Loader) => text::by_loader(out, account),
            (_, By::Buffer) => text::by_buffer(out, account),
        }
    }
}
