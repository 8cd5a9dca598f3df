//! Which fee a redemption or a refund offers, and whether it is sent without a preflight.

/// Whether a transaction can wait until the policy allows the fee that the chain asks for, and until enough endpoints have simulated it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it can wait or it cannot")]
pub enum Urgency {
    /// It is a refund, or it makes the secret public.
    CanWait,
    /// The secret is public already, so that a redemption with a low fee or an unknown outcome is better than none.
    SecretIsOut,
}

impl Urgency {
    /// Returns the price to offer where the chain asks for `asked` and the policy allows `limit`. If that is less than `min`, below which
    /// no node would take the transaction, the price is not lowered, and the policy refuses it.
    #[must_use]
    pub const fn offer(self, asked: u128, min: u128, limit: u128) -> u128 {
        if matches!(self, Self::SecretIsOut) && asked > limit && min <= limit { limit } else { asked }
    }

    /// Returns the result of a preflight. Once the secret is public, a preflight that too few endpoints answer is no error.
    ///
    /// # Errors
    ///
    /// The error of the preflight, if it `is_refused` or the transaction can wait.
    pub fn unless_unknown<V, E>(self, preflight: Result<V, E>, is_refused: impl FnOnce(&E) -> bool) -> Result<(), E> {
        match preflight {
            Err(error) if self == Self::CanWait || is_refused(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_preflight_stops_only_what_can_wait() {
        let is_refused = |word: &&str| *word == "refused";
        for (urgency, stops) in [(Urgency::CanWait, true), (Urgency::SecretIsOut, false)] {
            assert_eq!(urgency.unless_unknown(Err::<(), _>("unknown"), is_refused).is_err(), stops);
            assert!(urgency.unless_unknown(Err::<(), _>("refused"), is_refused).is_err());
            assert!(urgency.unless_unknown(Ok::<_, &str>(1), is_refused).is_ok());
        }
    }

    #[test]
    fn the_limit_is_paid_only_once_the_secret_is_out_and_where_nodes_take_it() {
        assert_eq!(Urgency::CanWait.offer(9, 0, 5), 9);
        let offers = [(9, 0, 5), (9, 5, 5), (9, 6, 5), (4, 0, 5)].map(|(asked, min, limit)| Urgency::SecretIsOut.offer(asked, min, limit));
        assert_eq!(offers, [5, 5, 9, 4]);
    }
}
