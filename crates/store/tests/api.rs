//! Auto traits that callers rely on.

use countersign_store::backup::{Backup, BackupError};
use countersign_store::rescue::{Phrase, Rescue, RescueKey};
use countersign_store::{Error, Journal, LockedOrder, OrderDir, Store};

#[test]
fn values_can_move_between_threads() {
    fn check<T: Send + Sync + std::fmt::Debug + 'static>() {}
    check::<(Store, OrderDir, LockedOrder, Journal, Error)>();
    check::<(Phrase, Rescue, RescueKey)>();
    check::<(Backup, BackupError)>();
}
