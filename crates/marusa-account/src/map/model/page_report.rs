//! `map --by page-size` for programs: why bytes are on small pages, what the JVM claims, what was required, settings of the host.

use super::zeros::ZerosAccount;
use crate::base::Bytes;
use crate::map::Area;
use crate::map::bloat::Bloat;
use crate::map::page_claims::Claim;
use crate::map::page_use::PageUse;
use crate::map::require::Answer;
use crate::map::why::{CauseId, Finding, Reason};
use crate::os::host_pages::HostPages;
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;

/// All that is known of the pages besides their sizes.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PageReport {
    /// One for each part and reason; `bytes` of a part sum to what it has on small pages, except "never_touched".
    pub page_findings: Vec<FindingAccount>,
    pub page_claims: Vec<ClaimAccount>,
    /// `None`: the settings of the host were not read.
    pub host_pages: Option<HostAccount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zeros: Option<ZerosAccount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<RequirementAccount>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct FindingAccount {
    pub area: Area,
    pub part: String,
    pub reason: CauseId,
    pub bytes: Bytes,
    pub partly_touched_bytes: Bytes,
    pub evidence: String,
    pub remedy: String,
}

/// What the JVM says and what is.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ClaimAccount {
    pub about: String,
    pub source: String,
    pub says: String,
    pub verdict: &'static str,
    pub is: PageUseAccount,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PageUseAccount {
    pub resident_bytes: Bytes,
    pub pages: Vec<PagesAccount>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PagesAccount {
    pub provider: &'static str,
    pub page_bytes: Bytes,
    pub bytes: Bytes,
}

/// One --require.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct RequirementAccount {
    pub requirement: String,
    pub met: bool,
    pub fitting_bytes: Bytes,
    pub found: PageUseAccount,
    pub reasons: Vec<ReasonAccount>,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ReasonAccount {
    pub reason: CauseId,
    pub evidence: String,
    pub bytes: Bytes,
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct HostAccount {
    #[serde(flatten)]
    pub host: HostPages,
    pub thp_enabled_for_process: Option<bool>,
}

impl PageReport {
    pub fn of(
        snapshot: &Snapshot,
        findings: &[Finding],
        claims: &[Claim],
        answers: &[Answer],
        bloat: Option<&Bloat>,
    ) -> PageReport {
        let settings = snapshot.taken.page_settings.as_ref();
        PageReport {
            page_findings: findings.iter().map(FindingAccount::from).collect(),
            page_claims: claims.iter().map(ClaimAccount::from).collect(),
            host_pages: settings.map(|settings| HostAccount {
                host: settings.host.clone(),
                thp_enabled_for_process: snapshot.os.status.thp_enabled,
            }),
            zeros: bloat.map(ZerosAccount::from),
            requirements: answers.iter().map(RequirementAccount::from).collect(),
        }
    }
}

impl From<&Finding> for FindingAccount {
    fn from(finding: &Finding) -> FindingAccount {
        FindingAccount {
            area: finding.area,
            part: finding.part.clone(),
            reason: finding.reason.id(),
            bytes: finding.bytes,
            partly_touched_bytes: finding.partly_touched_bytes,
            evidence: finding.reason.text(),
            remedy: finding.remedy(),
        }
    }
}

impl From<&Claim> for ClaimAccount {
    fn from(claim: &Claim) -> ClaimAccount {
        ClaimAccount {
            about: claim.about.clone(),
            source: claim.source.clone(),
            says: claim.says.clone(),
            verdict: claim.verdict.word(),
            is: PageUseAccount::from(&claim.is),
        }
    }
}

impl From<&PageUse> for PageUseAccount {
    fn from(pages: &PageUse) -> PageUseAccount {
        let by = pages.by.iter().map(|((provider, page_bytes), bytes)| PagesAccount {
            provider: provider.name(),
            page_bytes: *page_bytes,
            bytes: *bytes,
        });
        PageUseAccount { resident_bytes: pages.resident_bytes, pages: by.collect() }
    }
}

impl From<&Answer> for RequirementAccount {
    fn from(answer: &Answer) -> RequirementAccount {
        let reason = |(reason, bytes): &(Reason, Bytes)| ReasonAccount {
            reason: reason.id(),
            evidence: reason.text(),
            bytes: *bytes,
        };
        RequirementAccount {
            requirement: answer.requirement.text.clone(),
            met: answer.met,
            fitting_bytes: answer.fitting_bytes,
            found: PageUseAccount::from(&answer.found),
            reasons: answer.reasons.iter().map(reason).collect(),
        }
    }
}
