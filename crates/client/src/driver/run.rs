//! Drives many orders at once, each at a pace of its own.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream::{self, FuturesUnordered};
use futures_util::{Stream, StreamExt};

use super::{Chains, Change, DriveError, Driver, OrderStore, Owner, Progress, Status, Trouble};
use crate::request::OrderId;
use crate::retry::{jittered, random};
use crate::status::State;
use crate::track::MIN_POLL;
use countersign_transport::Transport;

/// The number of reports of an order that are remembered, to notice one that comes back.
const REMEMBERED_REPORTS: usize = 16;

impl<T: Transport, C: Chains, S: OrderStore, O: Owner> Driver<T, C, S, O> {
    /// Drives all stored orders concurrently until they end. The stream's items are their changes. Errors do not end the stream: the
    /// failed step is tried again. Orders without progress are polled at decreasing rates, down to the slowest pace.
    ///
    /// # Errors
    ///
    /// [`DriveError::Store`] if the orders cannot be listed.
    pub async fn run(&self) -> Result<impl Stream<Item = Change> + use<'_, T, C, S, O>, DriveError> {
        let orders = self.store.orders().await?;
        Ok(self.drive(orders))
    }

    /// Drives the given orders, like [`Driver::run`].
    pub fn drive(&self, orders: Vec<OrderId>) -> impl Stream<Item = Change> + use<'_, T, C, S, O> {
        let tasks: FuturesUnordered<_> = orders.into_iter().map(|id| self.next_change(Task::new(id))).collect();
        stream::unfold(tasks, move |mut tasks| async move {
            let (change, task) = tasks.next().await?;
            if let Some(task) = task {
                tasks.push(self.next_change(task));
            }
            Some((change, tasks))
        })
    }

    /// Advances one order until something changes. Returns `None` in place of the task once the order has ended.
    async fn next_change(&self, mut task: Task) -> (Change, Option<Task>) {
        loop {
            if !task.wait.is_zero() {
                self.flow.client().transport().sleep(jittered(task.wait, random())).await;
            }
            let result = self.advance(&task.id).await;
            let is_ended = matches!(&result, Ok(Progress { status: Status::Ended { .. }, acted: false, .. }));
            let report = Report::from(&result);
            task.wait = match &result {
                Ok(progress) if progress.acted => MIN_POLL,
                Ok(progress) if !matches!(progress.trouble, Some(Trouble::Failed(_))) && !task.seen.contains(&report) => {
                    self.pace.quickest.max(MIN_POLL)
                }
                Ok(_) => self.pace.slower(task.wait).max(MIN_POLL),
                Err(_) => self.pace.slowest.max(MIN_POLL),
            };
            // Only a repetition of the last report is left out. An older one that comes back is a change.
            let is_change = task.last.as_ref() != Some(&report);
            if !task.seen.contains(&report) {
                task.seen.truncate(REMEMBERED_REPORTS.saturating_sub(1));
                task.seen.push_front(report.clone());
            }
            task.last = Some(report);
            if is_change || is_ended {
                let change = Change { id: task.id.clone(), result };
                return (change, (!is_ended).then_some(task));
            }
        }
    }
}

/// What makes the result of a step differ from another one. Times and amounts that the service states are not part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Report {
    Progress { status: Status, trouble: Option<Trouble>, stated: Option<State> },
    Failed(DriveError),
}

impl From<&Result<Progress, DriveError>> for Report {
    fn from(result: &Result<Progress, DriveError>) -> Self {
        match result {
            Ok(Progress { status, trouble, stated, .. }) => Self::Progress {
                status: status.clone(),
                trouble: trouble.clone(),
                stated: stated.as_ref().map(|stated| stated.status.state),
            },
            Err(error) => Self::Failed(error.clone()),
        }
    }
}

/// The state of one driven order between two steps.
struct Task {
    id: OrderId,
    wait: Duration,
    last: Option<Report>,
    seen: VecDeque<Report>,
}

impl Task {
    const fn new(id: OrderId) -> Self {
        Self { id, wait: Duration::ZERO, last: None, seen: VecDeque::new() }
    }
}
