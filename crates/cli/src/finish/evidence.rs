//! Evidence for `countersign redeem --self`: whoever sees a printed redemption has the secret.

use std::io::IsTerminal as _;

use countersign::recover::{Leg, Recovery};
use countersign::{
    Policy, Registry,
    evidence::{HtlcTerms, Stage},
    text,
};
use countersign_client::Http;
use countersign_client::driver::{Chains as _, OrderState};
use countersign_node::{Ends, Nodes};
use countersign_store::Store;

use super::{Kept, RedeemArgs};
use crate::consent::{self, Question};
use crate::failure::Failure;
use crate::session::Session;
use crate::{amount, contracts, service, show};

impl Kept {
    /// Requires that the endpoints of the destination chain prove the solver's payment, where it is connected, and that the redemption can
    /// succeed. Nothing is asked once the secret was sent.
    pub(super) fn check_evidence(
        &self,
        args: &RedeemArgs,
        recovery: &Recovery,
        store: &Store,
        (registry, policy): (&Registry, &Policy),
        session: &Session,
    ) -> Result<(), Failure> {
        let chain = Leg::Destination.of(&self.record).asset.chain();
        if self.order.as_ref().is_some_and(OrderState::secret_was_sent) || !args.nodes.is_named()? {
            return Ok(());
        }
        let nodes = args.nodes.connect(registry, session)?;
        if !nodes.has(chain) {
            return Ok(());
        }
        let policy = self.order.as_ref().and_then(|order| order.pins.as_ref()).map_or(policy, |pins| &pins.policy);
        let held = self.check_held(&nodes, registry, policy, session);
        let failure = match held.and_then(|()| self.check_success(args, &nodes, recovery, store, (registry, policy), session)) {
            // A statement of the service alone does not release the secret.
            Ok(()) if self.terms.is_none() && !args.without_evidence => return self.confirm_stated(registry, session),
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        let message = format!("{}; whoever sees the redemption has the secret, and can take your payment", failure.message());
        if args.without_evidence {
            session.progress(&format!("printed without evidence, as you asked: {message}"));
            return Ok(());
        }
        let message = format!("{message}: nothing was printed; wait, or pass --without-evidence to print it nevertheless");
        Err(match failure {
            Failure::Network { code, .. } => Failure::Network { code, message },
            _ => Failure::Held { code: "evidence_needed", message },
        })
    }

    /// Requires that the destination holds what the order promises, in a final block and with time left.
    fn check_held(&self, nodes: &Nodes<Http>, registry: &Registry, policy: &Policy, session: &Session) -> Result<(), Failure> {
        let swap = Leg::Destination.of(&self.record);
        let terms = match &self.terms {
            Some(terms) => terms.destination.clone(),
            // Without the request, what the destination must hold is what the service has stated.
            None => HtlcTerms::stated(&self.record, Leg::Destination, registry)?,
        };
        let asset = Leg::Destination.pinned(swap, registry)?;
        if self.terms.is_none() {
            let pays = amount::shown(swap.amount, &swap.asset, Some(registry));
            session.progress(&format!(
                "the order's request is not stored, so only the service says what the redemption pays: {pays} to {}; check both",
                text::escape_untrusted(&swap.redeemer)
            ));
        }
        let quorum = service::run(session, async { Ok(nodes.htlc(&terms).await?) })?;
        let held = quorum.check_held(&policy.finality_of(asset, terms.amount), show::now());
        held.map_err(|hold| Failure::Held { code: hold.code().name(), message: hold.to_string() })
    }

    /// Requires that the redemption can succeed, because even one that fails shows the secret. One that is built from its chain has a
    /// preflight; for one that is built from a wallet context, everything is asked here. On Bitcoin-like chains the rules of the recovery
    /// itself judge the context.
    fn check_success(
        &self,
        args: &RedeemArgs,
        nodes: &Nodes<Http>,
        recovery: &Recovery,
        store: &Store,
        (registry, policy): (&Registry, &Policy),
        session: &Session,
    ) -> Result<(), Failure> {
        let (swap, signing) = (Leg::Destination.of(&self.record), &args.own.signing);
        let is_offline = signing.has_wallet() && !self.is_bitcoin(Leg::Destination, registry);
        let stage = if is_offline { Stage::BeforeHandingOut } else { Stage::BeforeSecret };
        let account = |members: &[&str], default: &str| -> Result<String, Failure> {
            let given = if is_offline { signing.wallet.account(members)? } else { None };
            Ok(given.unwrap_or_else(|| default.to_owned()))
        };
        // On Sui a sponsor pays the gas.
        let payer = account(&["sponsor", "sender"], &swap.redeemer)?;
        let rent_sponsor = account(&["rent_sponsor"], &swap.initiator)?;
        let permission = if is_offline { signing.wallet.permission()? } else { None };
        let contracts = contracts::kept(store)?;
        let ends = Ends::of_record(&self.record, registry).redeemed_by(Some(&payer)).under_permission(permission.as_ref());
        let ends = ends.described(&contracts);
        service::run(session, async {
            nodes.preconditions(&ends, stage, args.ending.speed(), policy).await.check()?;
            if is_offline {
                nodes.check_offline(recovery, swap.asset.chain(), &rent_sponsor).await?;
            }
            Ok(())
        })
    }

    /// Asks the owner to confirm what a restored order pays, because only the service states it.
    fn confirm_stated(&self, registry: &Registry, session: &Session) -> Result<(), Failure> {
        if std::io::stdin().is_terminal() {
            let after_no = "nothing was printed, and the secret has not left; the same command asks again".to_owned();
            let question = Question { text: "does the order pay you this?", after_no, is_full: false };
            return consent::ask(&consent::restored(&self.record, registry, show::now()), None, &question, session);
        }
        let message = "only the service says what the redemption pays: nothing was printed; compare the amount and the receiver with what you \
                       agreed to, then pass --without-evidence to print it";
        Err(Failure::Held { code: "evidence_needed", message: message.to_owned() })
    }
}
