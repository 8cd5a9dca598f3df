//! `countersign chains|assets|liquidity|fee|volume|schemas|policy|health`: public lists and values of the service.

use countersign::wire::{AssetRecord, ChainRecord, Earnings, Fees};
use countersign::{AssetId, Registry, number, report::Amount, text};

use crate::exit::{OK, REFUSED};
use crate::failure::{Failure, usage};
use crate::input::RegistryArgs;
use crate::quote::asset;
use crate::session::Session;
use crate::{amount, service, show};

/// The service, with query parameters that its interface accepts without documenting them.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    service: service::ServiceArgs,
    /// An additional query parameter. Can be given several times.
    #[arg(long = "query", value_name = "NAME=VALUE")]
    query: Vec<String>,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl Args {
    fn extra(&self) -> Result<Vec<(&str, &str)>, Failure> {
        let pair = |text: &'_ String| text.find('=').is_some();
        if !self.query.iter().all(pair) {
            return Err(usage("a query parameter must have the form NAME=VALUE"));
        }
        Ok(self.query.iter().filter_map(|text| text.split_once('=')).collect())
    }
}

#[derive(clap::Args)]
pub(crate) struct SchemaArgs {
    #[command(flatten)]
    service: service::ServiceArgs,
    /// The schema to show. By default the names of all schemas are listed.
    name: Option<String>,
}

#[derive(clap::Subcommand)]
pub(crate) enum PolicyCommand {
    /// Checks whether the service's rules allow a route. The exit code is 1 if they do not.
    Check {
        #[command(flatten)]
        service: service::ServiceArgs,
        /// Source asset.
        from: String,
        /// Destination asset.
        to: String,
    },
}

pub(crate) fn chains(args: &Args, session: &Session) -> Result<u8, Failure> {
    let client = args.service.client(session)?;
    let answer = service::run(session, async { Ok(client.chains(&args.extra()?).await?) })?;
    if session.json {
        show::answer(&answer.body)?;
        return Ok(OK);
    }
    let row = |chain: ChainRecord| {
        let [name, native, explorer] = [chain.name, chain.native_asset_id, chain.explorer_url].map(Option::unwrap_or_default);
        vec![chain.chain, chain.id, name, native, explorer]
    };
    let rows: Vec<_> = answer.value.into_iter().map(row).collect();
    show::table(&["chain", "id", "name", "native asset id", "explorer url"], &rows)?;
    Ok(OK)
}

pub(crate) fn assets(args: &Args, session: &Session) -> Result<u8, Failure> {
    let client = args.service.client(session)?;
    let answer = service::run(session, async { Ok(client.assets(&args.extra()?).await?) })?;
    if session.json {
        show::answer(&answer.body)?;
        return Ok(OK);
    }
    let row = |asset: AssetRecord| {
        // The row has its own decimals, so that no registry is needed.
        let range = |text: Option<String>| {
            let amount = text.as_deref().and_then(|text| number::decimal(text).ok());
            let shown = amount.map(|units| Amount::new(units, asset.decimals, asset.id.symbol()).to_string());
            shown.or(text).unwrap_or_else(|| "-".to_owned())
        };
        let (min, max) = (range(asset.min_amount.clone()), range(asset.max_amount.clone()));
        let (htlc, token) =
            (asset.htlc.map_or_else(|| "-".to_owned(), |it| it.address), asset.token.map_or_else(|| "native".to_owned(), |it| it.address));
        vec![asset.id.to_string(), asset.name.unwrap_or_default(), asset.decimals.to_string(), htlc, token, min, max]
    };
    let rows: Vec<_> = answer.value.into_iter().map(row).collect();
    show::table(&["id", "name", "decimals", "htlc", "token", "min amount", "max amount"], &rows)?;
    Ok(OK)
}

pub(crate) fn liquidity(args: &Args, session: &Session) -> Result<u8, Failure> {
    let client = args.service.client(session)?;
    let answer = service::run(session, async { Ok(client.liquidity(&args.extra()?).await?) })?;
    if session.json {
        show::answer(&answer.body)?;
        return Ok(OK);
    }
    let registry = args.registry.read()?;
    let units = |text: &str, asset: &AssetId| match number::decimal(text) {
        Ok(units) => amount::shown(units, asset, registry.as_ref()),
        Err(_) => text.to_owned(),
    };
    let rows: Vec<_> = answer
        .value
        .iter()
        .flat_map(|solver| {
            solver.liquidity.iter().map(|held| {
                vec![
                    solver.solver_id.clone(),
                    solver.address.clone(),
                    held.asset.to_string(),
                    units(&held.balance, &held.asset),
                    units(&held.virtual_balance, &held.asset),
                ]
            })
        })
        .collect();
    show::table(&["solver id", "address", "asset", "balance", "virtual balance"], &rows)?;
    Ok(OK)
}

pub(crate) fn fee(args: &Args, session: &Session) -> Result<u8, Failure> {
    let client = args.service.client(session)?;
    let answer = service::run(session, async { Ok(client.fee(&args.extra()?).await?) })?;
    if session.json {
        show::answer(&answer.body)?;
        return Ok(OK);
    }
    match answer.value {
        Fees::Earned(rows) => earnings(&rows, args.registry.read()?.as_ref())?,
        Fees::Total(total) => show::field("fees", &text::escape_untrusted(&total))?,
        _ => {
            let message = "the response has an unknown form: use --json".to_owned();
            return Err(Failure::Network { code: "response_unknown", message });
        }
    }
    Ok(OK)
}

/// Prints earnings as a table.
pub(crate) fn earnings(rows: &[Earnings], registry: Option<&Registry>) -> Result<(), Failure> {
    let row = |row: &Earnings| {
        let shown = |amount| amount::shown(amount, &row.asset, registry);
        let claim = row.claim_amount.map_or_else(|| "nothing".to_owned(), shown);
        vec![row.asset.to_string(), row.affiliate.clone(), shown(row.total_earnings), row.total_earnings_usd.clone(), claim]
    };
    Ok(show::table(
        &["asset", "affiliate", "total earnings", "total earnings usd", "claim amount"],
        &rows.iter().map(row).collect::<Vec<_>>(),
    )?)
}

pub(crate) fn volume(args: &Args, session: &Session) -> Result<u8, Failure> {
    let client = args.service.client(session)?;
    let answer = service::run(session, async { Ok(client.volume(&args.extra()?).await?) })?;
    if session.json {
        show::answer(&answer.body)?;
    } else {
        show::field("volume", &text::escape_untrusted(&answer.value))?;
    }
    Ok(OK)
}

pub(crate) fn schemas(args: &SchemaArgs, session: &Session) -> Result<u8, Failure> {
    let client = args.service.client(session)?;
    if let Some(name) = &args.name {
        // A schema is shown as JSON, because it has no other form.
        let answer = service::run(session, async { Ok(client.schema(name).await?) })?;
        show::answer(&answer.body)?;
        return Ok(OK);
    }
    let answer = service::run(session, async { Ok(client.schemas().await?) })?;
    if session.json {
        show::answer(&answer.body)?;
        return Ok(OK);
    }
    show::table(&["name"], &answer.value.into_iter().map(|schema| vec![schema.name]).collect::<Vec<_>>())?;
    Ok(OK)
}

pub(crate) fn policy(command: &PolicyCommand, session: &Session) -> Result<u8, Failure> {
    let PolicyCommand::Check { service, from, to } = command;
    let (from, to) = (asset(from)?, asset(to)?);
    let client = service.client(session)?;
    let answer = service::run(session, async { Ok(client.policy().await?) })?;
    let verdict = answer.value.check(&from, &to);
    let end = if verdict.allowed { OK } else { REFUSED };
    if session.json {
        show::json(&verdict)?;
        return Ok(end);
    }
    show::field("route", &format!("{from} -> {to} {}", if verdict.allowed { "is allowed" } else { "is not allowed" }))?;
    let rule = verdict.rule.as_deref().map(|rule| format!(", {}", text::quote_untrusted(rule))).unwrap_or_default();
    show::field("because", &format!("{}{rule}", verdict.because))?;
    if verdict.differs {
        show::field("note", "the two known interpretations of the rules differ here; the stricter one applies")?;
    }
    Ok(end)
}

pub(crate) fn health(args: &service::ServiceArgs, session: &Session) -> Result<u8, Failure> {
    let client = args.client(session)?;
    let answer = service::run(session, async { Ok(client.health().await?) })?;
    if session.json {
        show::answer(&answer.body)?;
    } else {
        show::field("service", &answer.value.map_or_else(|| "healthy".to_owned(), |text| text::escape_untrusted(&text)))?;
    }
    Ok(OK)
}
